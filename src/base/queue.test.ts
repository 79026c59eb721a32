import { expect, test } from 'vitest';
import { Simulation } from '../../sim/virtual-world.ts';
import { createMetrics } from './metrics.ts';
import { Queue, type QueueOptions } from './queue.ts';
import { sleep } from './world.ts';

test('queue: a key added many times before its turn -> worked on once', async () => {
  const { sim, queue, done } = start({ workMs: 10 });
  for (let count = 0; count < 5; count += 1) queue.add('a');
  await sim.time.advance(1000);
  expect(done).toEqual(['a']);
});

test('queue: a key added while it is worked on -> worked on again afterwards, never twice at once', async () => {
  const { sim, queue, done, peak } = start({ workMs: 100, concurrency: 4 });
  queue.add('a');
  await sim.time.advance(50);
  queue.add('a');
  queue.add('a');
  await sim.time.advance(1000);
  expect(done).toEqual(['a', 'a']);
  expect(peak('a')).toBe(1);
});

test('queue: many keys -> first come, first served, at most N at once', async () => {
  const { sim, queue, done, started, peak } = start({ workMs: 10, concurrency: 3 });
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
  for (const key of keys) queue.add(key);
  await sim.time.advance(1000);
  expect(started).toEqual(keys);
  expect(done).toEqual(keys);
  expect(peak()).toBe(3);
});

test('queue: work fails -> comes back after growing delays with jitter; success forgets the failures', async () => {
  const { sim, queue, started, startedMs, failing } = start({ backoff: { firstMs: 100, delayMsMax: 1000 } });
  failing.add('a');
  queue.add('a');
  await sim.time.advance(10_000);
  const gaps = startedMs.slice(1).map((at, index) => at - startedMs[index]!);
  expect(gaps[0]).toBeGreaterThanOrEqual(50);
  expect(gaps[0]).toBeLessThanOrEqual(100);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1000);
  expect(Math.min(...gaps.slice(5))).toBeGreaterThanOrEqual(500);
  failing.clear();
  await sim.time.advance(2000);
  const settled = started.length;
  await sim.time.advance(10_000);
  expect(started.length).toBe(settled);
  failing.add('a');
  startedMs.length = 0;
  queue.add('a');
  await sim.time.advance(150);
  expect(startedMs[1]! - startedMs[0]!).toBeLessThanOrEqual(100);
});

test('queue: one key fails for ever -> the others are not held up', async () => {
  const { sim, queue, done, failing } = start({});
  failing.add('bad');
  for (const key of ['bad', 'b', 'c']) queue.add(key);
  await sim.time.advance(5);
  expect(done).toEqual(['b', 'c']);
});

test('queue: several delays for a key -> the earliest counts, an add now wins over all', async () => {
  const { sim, queue, startedMs } = start({});
  queue.addAfter('a', 500);
  queue.addAfter('a', 200);
  queue.addAfter('a', 900);
  await sim.time.advance(2000);
  expect(startedMs).toEqual([200]);
  queue.addAfter('a', 500);
  queue.add('a');
  await sim.time.advance(2000);
  expect(startedMs).toEqual([200, 2000]);
});

test('queue: work asks to come back later -> it does', async () => {
  const { sim, queue, startedMs } = start({ requeueAfterMs: 300 });
  queue.add('a');
  await sim.time.advance(1000);
  expect(startedMs).toEqual([0, 300, 600, 900]);
});

test('queue: keys added before the start -> kept, folded, worked on from then', async () => {
  const { sim, queue, done } = start({ isStarted: false });
  queue.add('a');
  queue.add('a');
  await sim.time.advance(1000);
  expect([done, queue.depth]).toEqual([[], 1]);
  queue.start();
  await sim.time.advance(10);
  expect(done).toEqual(['a']);
});

test('queue: stopped -> work under way ends, the rest is dropped, later keys are not taken', async () => {
  const { sim, queue, done } = start({ workMs: 100 });
  queue.add('a');
  queue.add('b');
  queue.addAfter('c', 10);
  await sim.time.advance(5);
  const stopped = queue.stop();
  queue.add('d');
  await sim.time.settle(stopped);
  expect(sim.time.nowMs).toBe(100);
  await sim.time.advance(10_000);
  expect(done).toEqual(['a']);
});

test('queue: stopped while keys wait -> none of them is shown as waiting', async () => {
  const metrics = createMetrics();
  const { sim, queue } = start({ metrics, workMs: 100 });
  for (const key of ['a', 'b', 'c']) queue.add(key);
  await sim.time.advance(5);
  expect(await metrics.text()).toContain('portolan_queue_depth{queue="test"} 2');
  await sim.time.settle(queue.stop());
  expect(await metrics.text()).toContain('portolan_queue_depth{queue="test"} 0');
});

test('queue: metrics -> adds, retries, depth and durations by queue', async () => {
  const metrics = createMetrics();
  const { sim, queue, failing } = start({ metrics, workMs: 2000, backoff: { firstMs: 10, delayMsMax: 10 } });
  failing.add('a');
  for (const key of ['a', 'a', 'b', 'c']) queue.add(key);
  await sim.time.advance(100);
  expect(await metrics.text()).toContain('portolan_queue_depth{queue="test"} 2');
  failing.clear();
  await sim.time.advance(60_000);
  const text = await metrics.text();
  expect(text).toContain('portolan_queue_depth{queue="test"} 0');
  expect(text).toContain('portolan_queue_adds_total{queue="test"} 5');
  expect(text).toContain('portolan_queue_retries_total{queue="test"} 1');
  expect(text).toContain('portolan_queue_work_seconds_sum{queue="test"} 8');
});

interface TestOptions extends Partial<QueueOptions> {
  readonly workMs?: number;
  readonly requeueAfterMs?: number;
  readonly isStarted?: boolean;
}

function start({ workMs = 0, requeueAfterMs, isStarted = true, ...options }: TestOptions) {
  const sim = new Simulation({ seed: 5 });
  const world = sim.world('test');
  const done: string[] = [];
  const started: string[] = [];
  const startedMs: number[] = [];
  const failing = new Set<string>();
  const now: string[] = [];
  const peaks = new Map<string | undefined, number>();
  const work = async (key: string) => {
    started.push(key);
    startedMs.push(sim.time.nowMs);
    now.push(key);
    peaks.set(undefined, Math.max(peaks.get(undefined) ?? 0, now.length));
    peaks.set(key, Math.max(peaks.get(key) ?? 0, now.filter((other) => other === key).length));
    const isFailing = failing.has(key);
    if (workMs > 0) await sleep(world.timers, workMs);
    now.splice(now.indexOf(key), 1);
    if (isFailing) throw new Error('failing');
    done.push(key);
    return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
  };
  const queue = new Queue({ name: 'test', world, work, ...options });
  if (isStarted) queue.start();
  return { sim, queue, done, started, startedMs, failing, peak: (key?: string) => peaks.get(key) };
}
