// Our own changes are told from others' without knowing our number on the node.

import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { OwnWriters } from './own-writers.ts';

function start(ourPid: number | 'refused' | 'unseen') {
  const sim = new Simulation({ seed: 1 });
  const foreign: number[] = [];
  let asked = 0;
  let pid = ourPid;
  const writers: OwnWriters = new OwnWriters({
    world: sim.world('node'),
    introduce: async (mark) => {
      asked += 1;
      if (pid === 'refused') throw new Error('not permitted');
      if (pid !== 'unseen') writers.seen({ pid, mark });
    },
    onForeign: (change) => foreign.push(change.pid),
  });
  const change = async (by: number) => {
    writers.seen({ pid: by, line: 'add element inet portolan svc4' });
    await sim.time.drain();
  };
  return { sim, writers, foreign, change, asked: () => asked, become: (next: number) => (pid = next) };
}

test('own changes: a number that we cannot know -> asked for once, and ours from then on', async () => {
  const { foreign, change, asked } = start(4711);
  for (let i = 0; i < 20; i++) await change(4711);
  expect([foreign, asked()]).toEqual([[], 1]);
});

test('own changes: another process among ours -> each of its changes is told, ours are not', async () => {
  const { foreign, change } = start(4711);
  await change(4711);
  await change(99);
  await change(4711);
  await change(99);
  expect(foreign).toEqual([99, 99]);
});

test('own changes: our program was started anew -> its new number is asked for, and the mark of another is not believed', async () => {
  const { writers, foreign, change, become } = start(4711);
  await change(4711);
  writers.seen({ pid: 99, mark: 'portolan_self_0000' });
  become(4712);
  await change(4712);
  await change(99);
  expect(foreign).toEqual([99]);
});

test.each(['refused', 'unseen'] as const)(
  'own changes: the question is %s -> taken for another’s, nothing is left out',
  async (how) => {
    const { sim, foreign, change } = start(how);
    await change(99);
    await change(98);
    await sim.time.advance(5000);
    expect(foreign).toEqual(how === 'refused' ? [99, 98] : [99, 98]);
  },
);
