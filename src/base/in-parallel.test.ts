import { expect, test } from 'vitest';
import { inParallel } from './in-parallel.ts';

test('in parallel: ten things, three at a time -> all done, never more than three under way', async () => {
  const done: number[] = [];
  let underWay = 0;
  let most = 0;
  await inParallel(Array(10).keys(), { atOnceMax: 3 }, async (item) => {
    most = Math.max(most, ++underWay);
    await Promise.resolve();
    done.push(item);
    underWay -= 1;
  });
  expect([done.length, most]).toEqual([10, 3]);
});

test('in parallel: two fail -> the others are done all the same, then the first failure is thrown', async () => {
  const done: number[] = [];
  const work = inParallel([0, 1, 2, 3, 4], { atOnceMax: 2 }, async (item) => {
    if (item % 2 === 1) throw new Error(`no ${item}`);
    done.push(item);
  });
  await expect(work).rejects.toThrow('no 1');
  expect(done).toEqual([0, 2, 4]);
});

test('in parallel: nothing to do -> done', async () => {
  await inParallel([], { atOnceMax: 3 }, () => Promise.reject(new Error('never')));
});
