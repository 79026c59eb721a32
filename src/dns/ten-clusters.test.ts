// Ten clusters behind one cache. The long run, with a million queries, is `npm run chaos:dns`.

import { expect, test } from 'vitest';
import { runTenClusters } from './testing/ten-clusters.ts';

test('dns: 50,000 interleaved queries of ten clusters through one cache -> ten answers, none for another cluster', async () => {
  const { wrong, distinct, hitRatio } = await runTenClusters({ count: 50_000, isClusterInKey: true });
  expect(wrong).toBe(0);
  expect(distinct.size).toBe(10);
  expect(hitRatio).toBeGreaterThan(0.9);
});

test('dns: the same with the cluster left out of the key -> it is noticed', async () => {
  const { wrong } = await runTenClusters({ count: 1000, isClusterInKey: false });
  expect(wrong).toBeGreaterThan(100);
});
