import { expect, test } from 'vitest';
import { sleep } from '../src/base/world.ts';
import { Simulation } from './virtual-world.ts';

test('virtual time: timers -> run in the order of their moment, then of their making; cancelled ones do not', async () => {
  const { time } = new Simulation({ seed: 1 });
  const seen: string[] = [];
  for (const [name, delayMs] of [
    ['c', 30],
    ['a', 10],
    ['b', 20],
    ['a2', 10],
  ] as const)
    time.schedule(delayMs, () => seen.push(`${name}@${time.nowMs}`));
  time.schedule(15, () => seen.push('cancelled')).cancel();
  await time.advance(100);
  expect([seen, time.nowMs, time.pending]).toEqual([['a@10', 'a2@10', 'b@20', 'c@30'], 100, 0]);
});

test('virtual time: something that does not happen -> fails loudly after its virtual time', async () => {
  const { time } = new Simulation({ seed: 1 });
  await expect(time.until(() => false, { withinMs: 1000, what: 'pigs fly' })).rejects.toThrow(
    'pigs fly: did not happen within 1000 virtual ms',
  );
});

test('virtual world: the same seed -> the same random; another seed -> another', () => {
  const draw = (seed: number) => {
    const { random } = new Simulation({ seed }).world('a');
    return [random.float(), random.uuid(), Buffer.from(random.bytes(4)).toString('hex')].join();
  };
  expect(draw(1)).toBe(draw(1));
  expect(draw(1)).not.toBe(draw(2));
});

test('virtual world: clocks -> wall clocks are off as told, monotonic ones go together', async () => {
  const sim = new Simulation({ seed: 1 });
  const [a, b] = [sim.world('a'), sim.world('b', { wallSkewMs: 5000 })];
  await sim.time.advance(1234);
  expect(b.clock.wallMs() - a.clock.wallMs()).toBe(5000);
  expect([a.clock.monotonicMs(), b.clock.monotonicMs()]).toEqual([1234, 1234]);
});

test('virtual world: a clock that drifts -> all of its process drifts, timers too', async () => {
  const sim = new Simulation({ seed: 1 });
  const [fast, slow] = [sim.world('fast', { clockRate: 1.25 }), sim.world('slow', { clockRate: 0.8 })];
  const rang: number[] = [];
  for (const world of [slow, fast]) world.timers.after(1000, () => rang.push(sim.time.nowMs));
  const before = [fast, slow].map(({ clock }) => clock.wallMs());
  await sim.time.advance(2000);
  expect(rang).toEqual([800, 1250]);
  expect([fast, slow].map(({ clock }) => clock.monotonicMs())).toEqual([2500, 1600]);
  expect([fast, slow].map(({ clock }, index) => clock.wallMs() - before[index]!)).toEqual([2500, 1600]);
});

test('virtual world: revoked -> its timers are gone, what it waits for never comes, its disk outlives it', async () => {
  const sim = new Simulation({ seed: 1 });
  sim.network.listen('https://x', async () => ({ status: 200, headers: {}, body: Buffer.from('') }));
  const world = sim.world('a');
  await world.disk.write('/f', Buffer.from('kept'));
  const seen: string[] = [];
  const note = (what: string) => () => seen.push(what);
  world.timers.after(100, note('timer'));
  sleep(world.timers, 100).then(note('sleep'), note('sleep failed'));
  const transport = world.network.http({ server: 'https://x' });
  transport.send({ method: 'GET', path: '/', headers: {} }).then(note('answer'), note('failure'));
  world.revoke();
  transport.send({ method: 'GET', path: '/', headers: {} }).then(note('answer'), note('failure'));
  await sim.time.advance(10_000);
  expect(seen).toEqual([]);
  expect(Buffer.from((await sim.world('a').disk.read('/f'))!).toString()).toBe('kept');
});

test('virtual network: a link -> up answers, refused fails at once, silent never answers', async () => {
  const sim = new Simulation({ seed: 1 });
  sim.network.listen('https://x', async () => ({ status: 204, headers: {}, body: Buffer.from('') }));
  const transport = sim.world('a').network.http({ server: 'https://x' });
  const ask = () => transport.send({ method: 'GET', path: '/', headers: {} });
  expect((await sim.time.settle(ask())).status).toBe(204);
  sim.network.setLink('a', 'https://x', 'refused');
  await expect(sim.time.settle(ask())).rejects.toThrow('https://x: connection refused');
  sim.network.setLink('a', 'https://x', 'silent');
  await expect(sim.time.settle(ask(), { withinMs: 60_000 })).rejects.toThrow('did not happen');
});
