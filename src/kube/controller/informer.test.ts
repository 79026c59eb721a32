import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog } from '../../base/log.ts';
import { createClient } from '../client/client.ts';
import { keyOf } from '../objects/object.ts';
import { json, ScriptedHome, status } from '../testing/scripted-home.ts';
import { server, start, synced, type Top, type } from '../testing/watched-home.ts';
import { createInformer } from './informer.ts';

describe('informer', () => {
  test('informer: a thousand objects -> listed in pages of the asked size, then watched from the revision of the list', async () => {
    const home = new ScriptedHome(type);
    for (let count = 0; count < 1001; count += 1) home.put(`top-${count}`);
    const { sim, informer } = start(home, { pageSize: 500 });
    await sim.time.until(() => informer.hasSynced, { withinMs: 1000 });
    expect(informer.size).toBe(1001);
    expect(home.count('list')).toBe(3);
    await sim.time.until(() => home.watchers === 1, { withinMs: 1000 });
    expect(home.requests.at(-1)).toContain(`resourceVersion=${home.revision}`);
    expect(home.requests.at(-1)).toContain('allowWatchBookmarks=true');
  });

  test('informer: created, changed, deleted -> told once each, with the new and the old', async () => {
    const { sim, home, told } = await synced();
    home.put('a', { spin: 1 });
    home.put('a', { spin: 2 });
    home.delete('a');
    await sim.time.advance(100);
    expect(told).toEqual(['shop/a: - -> 1', 'shop/a: 1 -> 2', 'shop/a: 2 -> -']);
  });

  test('informer: the watch is broken again and again -> resumed where it was, nothing missed, no second list', async () => {
    const { sim, home, informer, told } = await synced();
    home.put('a', { spin: 1 });
    await sim.time.advance(10);
    for (const spin of [2, 3, 4]) {
      sim.network.breakStreams({ server });
      home.put('a', { spin });
      await sim.time.until(() => informer.get('shop/a')?.spin === spin, { withinMs: 60_000 });
    }
    expect(home.count('list')).toBe(1);
    expect(told).toEqual(['shop/a: - -> 1', 'shop/a: 1 -> 2', 'shop/a: 2 -> 3', 'shop/a: 3 -> 4']);
  });

  test('informer: the home ends a watch in good order -> resumed at once', async () => {
    const { sim, home } = await synced(['a'], { hasLease: true });
    await sim.time.advance(10_000);
    home.endWatches();
    await sim.time.until(() => home.watchers === 1, { withinMs: 100 });
    expect(home.count('list')).toBe(1);
  });

  test('informer: watches that end at once without bringing anything -> asked for ever more rarely', async () => {
    const { sim, home } = await synced();
    home.intercept = (url) =>
      url.searchParams.has('watch') ? { status: 200, headers: {}, body: (async function* () {})() } : undefined;
    home.endWatches();
    const before = home.count('watch');
    await sim.time.advance(300_000);
    expect(home.count('watch') - before).toBeLessThan(45);
  });

  test('informer: deleted while nobody watched and the revision is gone -> list again, the delete is told', async () => {
    const { sim, home, informer, told } = await synced(['a', 'b']);
    told.length = 0;
    sim.network.setLink('agent', server, 'refused');
    home.delete('a');
    home.put('c', { spin: 7 });
    home.floor = home.revision;
    await sim.time.advance(60_000);
    expect([...informer.keys()].sort()).toEqual(['shop/a', 'shop/b']);
    sim.network.setLink('agent', server, 'up');
    await sim.time.until(() => informer.get('shop/c') !== undefined, { withinMs: 60_000 });
    await sim.time.advance(100);
    expect(told).toEqual(['shop/c: - -> 7', 'shop/a: 0 -> -']);
    expect(informer.get('shop/a')).toBeUndefined();
  });

  test('informer: 410 inside the stream -> list again, the delete is told', async () => {
    const { sim, home, told } = await synced(['a']);
    told.length = 0;
    // The event is lost: the stream ends with the error before it could be sent.
    home.endWatches({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } });
    home.delete('a');
    home.floor = home.revision;
    await sim.time.advance(1000);
    expect(told).toEqual(['shop/a: 0 -> -']);
    expect(home.count('list')).toBe(2);
  });

  test('informer: the home is back, or was listed anew -> said, so that whoever writes there looks again', async () => {
    const { sim, home, informer } = await synced(['a'], { hasLease: true });
    let returns = 0;
    informer.onReturn(() => (returns += 1));
    sim.network.setLink('agent', server, 'refused');
    sim.network.breakStreams({ server });
    await sim.time.advance(5_000);
    expect(returns).toBe(0);
    sim.network.setLink('agent', server, 'up');
    await sim.time.advance(60_000);
    expect([returns, home.count('list')]).toEqual([1, 1]);
    informer.relist();
    await sim.time.advance(1_000);
    expect([returns, home.count('list')]).toEqual([2, 2]);
  });

  test('informer: told that the home may have been put back -> lists again, although the watch goes on', async () => {
    const { sim, home, informer, told } = await synced(['a']);
    home.objects.delete('a');
    informer.relist();
    await sim.time.advance(1_000);
    expect([told.at(-1), informer.size, home.watchers]).toEqual(['shop/a: 0 -> -', 0, 1]);
  });

  test('informer: deleted and made anew under the same name meanwhile -> the delete is told before the add', async () => {
    const { sim, home, told } = await synced(['a']);
    told.length = 0;
    sim.network.setLink('agent', server, 'refused');
    home.delete('a');
    home.put('a', { spin: 9 });
    home.floor = home.revision;
    sim.network.setLink('agent', server, 'up');
    await sim.time.advance(60_000);
    expect(told).toEqual(['shop/a: 0 -> -', 'shop/a: - -> 9']);
  });

  test('informer: the list expires between its pages -> begun again, after two such without pages', async () => {
    const home = new ScriptedHome(type);
    for (let count = 0; count < 30; count += 1) home.put(`top-${count}`);
    home.intercept = (url) => (url.searchParams.has('continue') ? status(410, 'Expired', 'too old') : undefined);
    const { sim, informer } = start(home, { pageSize: 10 });
    await sim.time.until(() => informer.hasSynced, { withinMs: 60_000 });
    expect(informer.size).toBe(30);
    expect(home.requests.filter((path) => path.includes('limit=')).at(-1)).toContain('limit=0');
  });

  test('informer: an object seen again with the same resourceVersion -> nobody is told', async () => {
    const { sim, home, told } = await synced(['a', 'b']);
    told.length = 0;
    home.floor = home.revision + 1;
    home.revision += 1;
    home.endWatches({ type: 'ERROR', object: { code: 410 } });
    await sim.time.advance(5000);
    expect(home.count('list')).toBe(2);
    expect(told).toEqual([]);
  });

  test('informer: the home is away -> what is known stays and is said to be old, since when; then current again', async () => {
    const { sim, home, informer } = await synced(['a']);
    const lost = sim.time.nowMs;
    expect(informer.status()).toMatchObject({ state: { kind: 'watching' }, staleSinceMs: undefined });
    sim.network.setLink('agent', server, 'refused');
    await sim.time.advance(120_000);
    const { state, staleSinceMs } = informer.status();
    expect(state).toMatchObject({
      kind: 'failing',
      error: expect.stringContaining('https://home: connection refused'),
    });
    expect(staleSinceMs).toBeLessThanOrEqual(lost);
    expect(informer.size).toBe(1);
    sim.network.setLink('agent', server, 'up');
    await sim.time.until(() => home.watchers === 1, { withinMs: 30_000 });
    await sim.time.advance(10);
    expect(informer.status()).toMatchObject({ state: { kind: 'watching' }, staleSinceMs: undefined });
  });

  test('informer: the home fails for an hour -> tried after 0.8 to 15 s with jitter, and quickly again after it was back', async () => {
    const { sim, home } = await synced();
    const tries: number[] = [];
    home.intercept = () => {
      tries.push(sim.time.nowMs);
      return status(500, 'InternalError', 'sick');
    };
    home.endWatches();
    await sim.time.advance(3_600_000);
    const gaps = tries.slice(1).map((at, index) => at - tries[index]!);
    expect(gaps[0]).toBeGreaterThan(800);
    expect(gaps[0]).toBeLessThan(4000);
    expect(Math.max(...gaps)).toBeLessThan(15_100);
    expect(Math.min(...gaps.slice(10))).toBeGreaterThan(7_400);
    expect(new Set(gaps.slice(10).map(Math.round)).size).toBeGreaterThan(20);
    home.intercept = () => undefined;
    await sim.time.until(() => home.watchers === 1, { withinMs: 31_000 });
    await sim.time.advance(10_000);
    const broken = sim.time.nowMs;
    sim.network.breakStreams({ server });
    await sim.time.until(() => home.watchers === 1, { withinMs: 3000 });
    expect(sim.time.nowMs - broken).toBeGreaterThan(700);
  });

  test('informer: a silent network -> the watch is taken for dead and opened again', async () => {
    const { sim, home, informer } = await synced(['a']);
    sim.network.setLink('agent', server, 'silent');
    await sim.time.advance(700_000);
    expect(informer.status().state.kind).toBe('failing');
    home.delete('a');
    sim.network.setLink('agent', server, 'up');
    await sim.time.until(() => informer.size === 0, { withinMs: 120_000 });
  });

  test('informer: a network falls silent that brought bookmarks before -> noticed after two and a half of them', async () => {
    const { sim, home, informer } = await synced(['a'], { hasLease: true });
    home.bookmark();
    await sim.time.advance(100);
    sim.network.setLink('agent', server, 'silent');
    await sim.time.advance(149_000);
    expect(informer.status().state.kind).toBe('watching');
    await sim.time.advance(32_000);
    expect(informer.status()).toMatchObject({ state: { kind: 'failing' }, staleSinceMs: expect.any(Number) });
    home.delete('a');
    sim.network.setLink('agent', server, 'up');
    await sim.time.until(() => informer.size === 0, { withinMs: 60_000 });
    expect(home.count('list')).toBe(1);
  });

  test('informer: the network is silent for a moment while a list is asked for -> asked for again soon', async () => {
    const home = new ScriptedHome(type);
    home.put('a');
    const { sim, informer } = start(home);
    // However often it was refused before.
    sim.network.setLink('agent', server, 'refused');
    await sim.time.advance(600_000);
    sim.network.setLink('agent', server, 'silent');
    await sim.time.advance(20_000);
    sim.network.setLink('agent', server, 'up');
    await sim.time.until(() => informer.hasSynced, { withinMs: 45_000 });
  });

  test('informer: a home that takes 50 s for a list -> gets the time', async () => {
    const home = new ScriptedHome(type);
    home.put('a');
    const answer = home.handle;
    home.handle = async (request) => {
      if (request.path.includes('limit')) await new Promise<void>((resolve) => timers.after(50_000, resolve));
      return answer(request);
    };
    const { sim, informer } = start(home);
    const { timers } = sim.world('home');
    await sim.time.until(() => informer.hasSynced, { withinMs: 200_000 });
  });

  test('informer: a home that is there but has long had nothing to tell, a transport with its own error for an end -> watched again, no outage', async () => {
    const home = new ScriptedHome(type);
    home.put('a');
    const lines: string[] = [];
    const sim = new Simulation({ seed: 7 });
    sim.network.listen(server, home.handle);
    const world = sim.world('agent');
    const log = createLog({ clock: world.clock, level: 'info', write: (line) => void lines.push(line) });
    const client = createClient(world.network.http({ server }), { world, userAgent: 'test' });
    const ownWords = async function* <T>(events: AsyncIterable<T>): AsyncGenerator<T> {
      try {
        yield* events;
      } catch {
        throw new Error('');
      }
    };
    const watch: typeof client.watch = async (...asked) => ownWords(await client.watch(...asked)) as never;
    const informer = createInformer<Top, Top>({ client: { ...client, watch }, world, type, log });
    informer.start();
    await sim.time.until(() => informer.status().state.kind === 'watching', { withinMs: 1000 });
    home.bookmark();
    await sim.time.advance(200_000);
    expect(home.count('watch')).toBeGreaterThan(1);
    expect(lines.filter((line) => line.includes('does not answer'))).toEqual([]);
    expect(informer.status()).toMatchObject({ state: { kind: 'watching' }, staleSinceMs: undefined });
    informer.stop();
  });

  test('informer: silence by clocks that drift -> noticed all the same, also where sums come out a hair short', async () => {
    for (let clockRate = 0.99; clockRate < 1.01; clockRate += 0.000_31) {
      const { sim, home } = await synced([], { clockRate });
      for (let round = 0; round < 7; round += 1) {
        await sim.time.advance(31_234.567);
        home.bookmark();
      }
      const before = home.count('watch');
      await sim.time.advance(170_000);
      expect(home.count('watch')).toBe(before + 1);
    }
  });

  test('informer: a home that has nothing to tell for long -> asked anew once, never called failing', async () => {
    const { sim, home, informer } = await synced(['a'], { hasLease: true });
    const states = new Set<string>();
    informer.onStatus(({ state }) => states.add(state.kind));
    home.bookmark();
    await sim.time.advance(290_000);
    expect([home.count('watch'), home.count('list'), home.watchers, ...states]).toEqual([2, 1, 1]);
  });

  test('informer: the home forbids -> what is known stays', async () => {
    const { sim, home, informer } = await synced(['a']);
    home.intercept = () => status(403, 'Forbidden', 'no');
    home.endWatches();
    await sim.time.advance(600_000);
    expect(informer.size).toBe(1);
    expect(informer.status().state.kind).toBe('failing');
  });

  test('informer: the kind is not served yet -> synced and empty once discovery said so twice, filled when it comes', async () => {
    const home = new ScriptedHome(type);
    home.isServed = false;
    const { sim, informer } = start(home);
    await sim.time.advance(15_000);
    expect(informer.hasSynced).toBe(false);
    await sim.time.until(() => informer.hasSynced, { withinMs: 60_000 });
    expect(informer.status().state).toEqual({ kind: 'unserved' });
    home.isServed = true;
    home.put('a');
    await sim.time.until(() => informer.size === 1, { withinMs: 35_000 });
    await sim.time.until(() => informer.status().state.kind === 'watching', { withinMs: 100 });
  });

  test('informer: the kind is taken away for good -> its objects are told as deleted, but not before the second look', async () => {
    const { sim, home, informer, told } = await synced(['a']);
    told.length = 0;
    home.isServed = false;
    home.endWatches();
    await sim.time.advance(10_000);
    expect(told).toEqual([]);
    expect(informer.status().state.kind).toBe('failing');
    await sim.time.advance(60_000);
    expect(told).toEqual(['shop/a: 0 -> -']);
    expect(informer.status()).toMatchObject({ state: { kind: 'unserved' }, staleSinceMs: undefined });
  });

  test('informer: the kind is missing before and after an outage -> the time in between does not count as a second look', async () => {
    const { sim, home, told } = await synced(['a']);
    told.length = 0;
    home.isServed = false;
    home.endWatches();
    await sim.time.advance(3000);
    sim.network.setLink('agent', server, 'refused');
    await sim.time.advance(3_600_000);
    sim.network.setLink('agent', server, 'up');
    const looks = home.count('list');
    await sim.time.until(() => home.count('list') > looks, { withinMs: 31_000 });
    await sim.time.advance(10_000);
    home.isServed = true;
    await sim.time.advance(60_000);
    expect(told).toEqual([]);
  });

  test('informer: 404 from something that is no home, discovery too -> what is known stays', async () => {
    const { sim, home, informer, told } = await synced(['a']);
    told.length = 0;
    home.intercept = () => ({ status: 404, headers: {}, body: Buffer.from('<html>nginx</html>') });
    home.endWatches();
    await sim.time.advance(600_000);
    expect(told).toEqual([]);
    expect(informer.size).toBe(1);
  });

  test('informer: bookmarks -> a watch that has had its time is followed by one from the last of them', async () => {
    const { sim, home } = await synced(['a']);
    const seconds = Number(/timeoutSeconds=(\d+)/.exec(home.requests.at(-1)!)![1]);
    await sim.time.advance(seconds * 1000 - 500);
    home.bookmark();
    await sim.time.advance(100);
    const revision = home.revision;
    home.floor = revision;
    home.endWatches();
    await sim.time.until(() => home.watchers === 1, { withinMs: 5000 });
    expect([home.requests.at(-1), home.count('list')]).toEqual([expect.stringContaining(`Version=${revision}`), 1]);
  });

  test('informer: selectors -> sent with list and watch', async () => {
    const home = new ScriptedHome(type);
    const { sim } = start(home, { namespace: 'shop', labelSelector: 'a=b,c', fieldSelector: 'metadata.name=x' });
    await sim.time.until(() => home.watchers === 1, { withinMs: 1000 });
    for (const path of home.requests) {
      expect(path).toContain('/apis/toys.test/v1/namespaces/shop/tops?');
      expect(path).toContain('labelSelector=a%3Db%2Cc');
      expect(path).toContain('fieldSelector=metadata.name%3Dx');
    }
  });

  test('informer: a keep hook -> only what it returns is kept, what it drops or chokes on is left out', async () => {
    const home = new ScriptedHome(type);
    home.put('a', { spin: 1, ballast: 'x'.repeat(100) });
    home.put('b', { spin: -1 });
    home.put('c', { spin: 'nonsense' });
    const keep = (object: Top) => {
      if (typeof object.spin !== 'number') throw new Error('cannot read spin');
      return object.spin < 0 ? undefined : ({ metadata: object.metadata, spin: object.spin } as Top);
    };
    const { sim, informer } = start(home, { keep });
    await sim.time.until(() => informer.hasSynced, { withinMs: 1000 });
    expect([...informer.values()]).toEqual([{ metadata: expect.anything(), spin: 1 }]);
    home.put('a', { spin: -5 });
    await sim.time.advance(100);
    expect(informer.size).toBe(0);
  });

  test('informer: an index -> follows adds, changes and deletes', async () => {
    const home = new ScriptedHome(type);
    for (const name of ['a', 'b', 'c']) home.put(name, { colors: ['red', name] });
    const { sim, informer } = start(home, { indexes: { color: (top) => (top.colors as string[]) ?? [] } });
    await sim.time.until(() => informer.hasSynced, { withinMs: 1000 });
    const named = (color: string) => informer.byIndex('color', color).map(keyOf).sort();
    expect(named('red')).toEqual(['shop/a', 'shop/b', 'shop/c']);
    home.put('b', { colors: ['blue'] });
    home.delete('a');
    await sim.time.advance(100);
    expect([named('red'), named('blue'), named('a'), named('b')]).toEqual([['shop/c'], ['shop/b'], [], []]);
    expect(informer.countByIndex('color', 'red')).toBe(1);
    expect(() => informer.byIndex('size', 'big')).toThrow(/no index/);
  });

  test('informer: a handler that throws -> the others are told all the same', async () => {
    const { sim, home, informer, told } = await synced();
    informer.on(() => {
      throw new Error('clumsy');
    });
    const late: string[] = [];
    informer.on((key) => late.push(key));
    home.put('a');
    await sim.time.advance(100);
    expect([told.length, late]).toEqual([1, ['shop/a']]);
  });

  test('informer: a late handler -> first hears of everything that is known', async () => {
    const { informer } = await synced(['a', 'b']);
    const keys: string[] = [];
    informer.on((key) => keys.push(key));
    expect(keys).toEqual(['shop/a', 'shop/b']);
  });

  test('informer: stopped -> no more events, no more requests; started again -> resumes', async () => {
    const { sim, home, informer, told } = await synced(['a'], { hasLease: true });
    told.length = 0;
    informer.stop();
    home.put('b');
    const requests = home.requests.length;
    await sim.time.advance(600_000);
    expect([told, home.requests.length - requests, home.watchers]).toEqual([[], 0, 0]);
    informer.start();
    await sim.time.advance(1000);
    expect([told, home.count('list')]).toEqual([['shop/b: - -> 0'], 1]);
  });

  test('informer: one run with one seed -> the same run again', async () => {
    const run = async () => {
      const { sim, home } = await synced();
      home.intercept = () => json(500, {});
      home.endWatches();
      await sim.time.advance(600_000);
      return home.requests.join('\n');
    };
    expect(await run()).toBe(await run());
  });
});
