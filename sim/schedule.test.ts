import { describe, expect, test } from 'vitest';
import { type BrokenVersion, brokenVersions } from './broken.ts';
import { runSchedule } from './schedule.ts';

describe('schedule', () => {
  test('schedule: 20 random runs -> all clustersets in order after they calm', async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
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
      expect(await violationsOf(name)).not.toEqual([]);
    }, 120_000);
  }
});

/** Where a search begins that is known to end soon. Seeds age: if one is caught later, that is found too. */
const firstSeeds: Partial<Record<BrokenVersion, number>> = {
  'address reuse': 25,
  'lease ignored': 42,
};

async function violationsOf(name: BrokenVersion): Promise<readonly string[]> {
  const first = firstSeeds[name] ?? 1;
  for (let seed = first; seed < first + 40; seed += 1) {
    const { violations } = await runSchedule({ seed, createAgent: brokenVersions[name] });
    if (violations.length > 0) return violations;
  }
  return [];
}
