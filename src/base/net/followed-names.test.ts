import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../log.ts';
import { FollowedNames } from './followed-names.ts';

function setUp() {
  const sim = new Simulation({ seed: 1 });
  const answers = new Map<string, string[]>();
  const state = { ttlSeconds: 60, asked: 0, atOnce: 0, atOnceMax: 0, changes: [] as string[][] };
  const world = sim.world('test');
  const names = new FollowedNames({
    timers: world.timers,
    log: silentLog,
    onChange: (owners) => state.changes.push([...owners]),
    lookUp: async (name) => {
      state.asked += 1;
      state.atOnce += 1;
      state.atOnceMax = Math.max(state.atOnceMax, state.atOnce);
      await new Promise<void>((resolve) => world.timers.after(10, resolve));
      state.atOnce -= 1;
      const addresses = answers.get(name);
      if (addresses === undefined) throw new Error('no nameserver answers');
      return { addresses, ttlSeconds: state.ttlSeconds };
    },
  });
  return { sim, answers, state, names };
}

test('followed names: an answer moves -> looked up again when its time is over, and its owners are told once', async () => {
  const { sim, answers, state, names } = setUp();
  answers.set('a.example', ['192.0.2.2', '192.0.2.1']);
  names.follow('one', ['a.example']);
  names.follow('two', ['a.example']);
  expect(names.addresses('a.example')).toBeUndefined();
  await sim.time.advance(1000);
  expect(names.addresses('a.example')).toEqual(['192.0.2.1', '192.0.2.2']);
  expect([state.asked, state.changes]).toEqual([1, [['one', 'two']]]);
  answers.set('a.example', ['192.0.2.1', '192.0.2.2']);
  await sim.time.advance(61_000);
  expect([state.asked, state.changes.length]).toEqual([2, 1]);
  answers.set('a.example', ['192.0.2.3']);
  await sim.time.advance(61_000);
  expect([names.addresses('a.example'), state.changes.length]).toEqual([['192.0.2.3'], 2]);
});

test('followed names: nobody answers -> the addresses stay, tried again every five seconds; back -> the new ones', async () => {
  const { sim, answers, state, names } = setUp();
  answers.set('a.example', ['192.0.2.1']);
  names.follow('one', ['a.example']);
  await sim.time.advance(1000);
  answers.clear();
  await sim.time.advance(120_000);
  expect(names.addresses('a.example')).toEqual(['192.0.2.1']);
  expect(state.asked).toBeGreaterThan(10);
  answers.set('a.example', ['192.0.2.9']);
  await sim.time.advance(6000);
  expect(names.addresses('a.example')).toEqual(['192.0.2.9']);
});

test.each([
  [0, 5],
  [7, 7],
  [86_400, 300],
])('followed names: an answer for %d s -> asked again after %d s', async (ttlSeconds, seconds) => {
  const { sim, answers, state, names } = setUp();
  state.ttlSeconds = ttlSeconds;
  answers.set('a.example', []);
  names.follow('one', ['a.example']);
  await sim.time.advance(500);
  await sim.time.advance(1000 * seconds - 1000);
  expect(state.asked).toBe(1);
  await sim.time.advance(1000);
  expect(state.asked).toBe(2);
});

test('followed names: a thousand names -> eight are asked at a time; none is followed any more -> none is asked', async () => {
  const { sim, answers, state, names } = setUp();
  const all = Array.from({ length: 1000 }, (_, index) => `${index}.example`);
  for (const name of all) answers.set(name, ['192.0.2.1']);
  names.follow('one', all);
  let isAsked = false;
  void names.whenAsked(60_000).then(() => (isAsked = true));
  await sim.time.advance(1000);
  expect(isAsked).toBe(false);
  await sim.time.advance(1000);
  expect([isAsked, state.asked, state.atOnceMax]).toEqual([true, 1000, 8]);
  names.follow('one', []);
  await sim.time.advance(400_000);
  expect(state.asked).toBe(1000);
});

test('followed names: nobody answers at all -> those who wait for the first answers go on after their patience', async () => {
  const { sim, names } = setUp();
  names.follow('one', ['a.example']);
  let isAsked = false;
  void names.whenAsked(3000).then(() => (isAsked = true));
  await sim.time.advance(5);
  expect(isAsked).toBe(false);
  await sim.time.advance(3000);
  expect([isAsked, names.addresses('a.example')]).toEqual([true, undefined]);
  names.stop();
});
