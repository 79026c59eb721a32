import { expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import { createMemoryStore } from '../open-store.ts';
import { TestWorld } from './testing/test-world.ts';

test('store metrics: commits, a compaction and sizes are there to read', async () => {
  const metrics = createMetrics();
  const store = createMemoryStore({ world: new TestWorld().world, metrics });
  const put = (key: string) => store.commit({ compares: [], writes: [{ key, value: new Uint8Array(100) }] });
  await Promise.all([put('/a'), put('/b'), put('/b')]);
  await store.compact(2);
  const text = await metrics.text();
  const lines = [
    'portolan_store_commits_total 3',
    'portolan_store_compactions_total 1',
    'portolan_store_batch_commits_bucket{le="2"} 0',
    'portolan_store_batch_commits_bucket{le="4"} 1',
    'portolan_store_batch_duration_seconds_count 2',
    'portolan_store_revision 3',
    'portolan_store_floor_revision 2',
    'portolan_store_live_bytes 332',
    'portolan_store_writable 1',
  ];
  for (const line of lines) expect(text).toContain(`\n${line}\n`);
  await store.close();
});
