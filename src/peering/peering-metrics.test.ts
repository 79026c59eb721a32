import { expect, test } from 'vitest';
import { createMetrics } from '../base/metrics.ts';
import type { Consumer } from './consumer.ts';
import type { Owner } from './owner.ts';
import { measurePeering } from './peering-metrics.ts';

function setUp() {
  const metrics = createMetrics();
  const taken = { peer: 'acme', unacknowledged: 2, behindSinceMs: 95_000, fullSyncMs: 60_000, aliveMs: 99_000 };
  const given = { peer: 'acme', lag: 7, unacknowledged: 3, behindSinceMs: undefined, fullSyncMs: undefined };
  const state = { given: [{ ...given, aliveMs: 98_000 }] };
  const owner = { reports: () => state.given } as unknown as Owner;
  const consumer = { reports: () => [taken] } as unknown as Consumer;
  const meter = measurePeering(metrics, { owner, consumer: () => consumer, wallMs: () => 100_000 });
  return { metrics, meter, state };
}

test.each([
  ['lag in services', 'lag_services{peer="acme",side="owner"} 7'],
  ['lag in services, taking', 'lag_services{peer="acme",side="consumer"} 2'],
  ['lag in seconds', 'lag_seconds{peer="acme",side="consumer"} 5'],
  ['lag in seconds, not behind', 'lag_seconds{peer="acme",side="owner"} 0'],
  ['un-acked', 'unacknowledged{peer="acme",side="owner"} 3'],
  ['un-acked, taking', 'unacknowledged{peer="acme",side="consumer"} 2'],
  ['time of the last full sync', 'last_full_sync_timestamp_seconds{peer="acme",side="consumer"} 60'],
  ['last sign of life', 'last_contact_timestamp_seconds{peer="acme",side="owner"} 98'],
])('metrics: %s -> %s', async (_what, line) => {
  expect(await setUp().metrics.text()).toContain(`portolan_peering_${line}\n`);
});

test('metrics: never synced, or gone -> no line rather than a wrong one', async () => {
  const { metrics, state } = setUp();
  expect(await metrics.text()).not.toContain('last_full_sync_timestamp_seconds{peer="acme",side="owner"}');
  state.given = [];
  expect(await metrics.text()).not.toContain('side="owner"');
});

test('metrics: refusals -> counted by side and by the field that was wrong, whatever words a peer chooses', async () => {
  const { metrics, meter } = setUp();
  meter.refused({ peer: 'acme', side: 'consumer', reason: 'san: Required value' });
  meter.refused({ peer: 'acme', side: 'consumer', reason: 'endpoints[0].port: Invalid value: 0' });
  meter.refused({ peer: 'acme', side: 'owner', reason: 'we do not want it' });
  meter.refused({ peer: 'acme', side: 'owner', reason: '' });
  const text = await metrics.text();
  expect(text).toContain('portolan_peering_refusals_total{peer="acme",side="consumer",reason="san"} 1');
  expect(text).toContain('portolan_peering_refusals_total{peer="acme",side="consumer",reason="endpoints"} 1');
  expect(text).toContain('portolan_peering_refusals_total{peer="acme",side="owner",reason="other"} 2');
});
