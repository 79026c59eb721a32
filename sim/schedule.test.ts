import { describe, expect, test } from 'vitest';
import { type BrokenVersion, brokenVersions } from './broken.ts';
import { runSchedule } from './schedule.ts';

describe('schedule', () => {
  test('schedule: 30 random runs -> all clustersets in order after they calm', async () => {
    for (let seed = 1; seed <= 30; seed += 1) {
      const { violations } = await runSchedule({ seed });
      expect(violations, `seed ${seed}`).toEqual([]);
    }
  }, 120_000);

  test('schedule: the same seed twice -> the same trace; another seed -> another', async () => {
    const traces = new Set<string>();
    for (const seed of [41, 42, 43]) {
      const first = await runSchedule({ seed });
      const second = await runSchedule({ seed });
      expect(second.trace).toBe(first.trace);
      traces.add(first.trace);
    }
    expect(traces.size).toBe(3);
  }, 60_000);

  for (const name of Object.keys(brokenVersions) as BrokenVersion[]) {
    test(`schedule: a broken version (${name}) -> caught`, async () => {
      expect(await seedsUntilCaught(name)).toBeLessThanOrEqual(40);
    }, 120_000);
  }
});

async function seedsUntilCaught(name: BrokenVersion): Promise<number> {
  for (let seed = 1; seed <= 40; seed += 1) {
    const { violations } = await runSchedule({ seed, createAgent: brokenVersions[name] });
    if (violations.length > 0) return seed;
  }
  return Number.POSITIVE_INFINITY;
}
