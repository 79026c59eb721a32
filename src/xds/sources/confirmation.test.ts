// When a home that is away no longer vouches for who may call.

import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { Confirmation } from './confirmation.ts';

test('confirmation: the home is away for a while -> nothing; for longer than it holds -> over; back -> at once not', async () => {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('xds');
  const changes: boolean[] = [];
  let sinceMs: number | undefined;
  const confirmation = new Confirmation({
    ...{ world, holdsMs: 600_000, staleSinceMs: () => sinceMs },
    onChange: (isOver) => changes.push(isOver),
  });
  const pass = (ms: number) => simulation.time.advance(ms);
  await pass(3_600_000);
  sinceMs = world.clock.monotonicMs();
  await pass(599_000);
  expect([confirmation.isOver, changes]).toEqual([false, []]);
  await pass(7000);
  expect([confirmation.isOver, changes]).toEqual([true, [true]]);
  sinceMs = undefined;
  await pass(5000);
  expect([confirmation.isOver, changes]).toEqual([false, [true, false]]);
  confirmation.stop();
  sinceMs = 0;
  await pass(3_600_000);
  expect(changes).toHaveLength(2);
});
