import { describe, expect, test } from 'vitest';
import { explainMerge } from './explain-merge.ts';
import { mergeShards } from './merge.ts';
import type { Shard } from './shard.ts';
import { shardOf } from './testing/shard-text.ts';

/** Shards whose ports count how often they are looked at. */
function watched(count: number): { shards: Shard[]; looks: () => number } {
  let looks = 0;
  const ports = (offset: number) =>
    Array.from({ length: count }, (_, index) => ({
      get name() {
        looks += 1;
        return `p${index}`;
      },
      protocol: 'TCP' as const,
      port: index + 1 + offset,
    }));
  const shards = ['east 2020', 'west 2021', 'north 2022 type=Headless'].map((line, index) => ({
    ...shardOf(line),
    ports: ports(index * 7),
  }));
  return { shards, looks: () => looks };
}

describe('merge ports', () => {
  for (const policy of ['union', 'intersection'] as const) {
    test(`merge ports: ten times as many ports, all in conflict (${policy}) -> about ten times the work`, () => {
      const work = (count: number) => {
        const { shards, looks } = watched(count);
        const merge = mergeShards({ shards, ports: policy });
        expect(merge?.conflicts.length).toBeGreaterThanOrEqual(count);
        explainMerge({ shards, ports: policy });
        return looks();
      };
      expect(work(1000) / work(100)).toBeLessThan(20);
    });
  }
});
