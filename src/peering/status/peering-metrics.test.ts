import { expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import type { Consumer } from '../consumer/consumer.ts';
import type { Owner } from '../owner/owner.ts';
import { type AbsentConsumer, measurePeering } from './peering-metrics.ts';

function setUp() {
  const metrics = createMetrics();
  const taken = {
    ...{ peer: 'acme', unacknowledged: 2, behindSinceMs: 95_000, fullSyncMs: 60_000, aliveMs: 99_000, awayMs: 0 },
    ...{ state: { kind: 'updating' }, staleSinceMs: undefined as number | undefined },
  };
  const given = {
    ...{ peer: 'acme', lag: 7, unacknowledged: 3, behindSinceMs: undefined, fullSyncMs: undefined, aliveMs: 98_000 },
    snapshotRefused: '',
  };
  const state = { given: [given], taken: [taken], absent: [] as AbsentConsumer[] };
  const owner = { reports: () => state.given } as unknown as Owner;
  const consumer = { reports: () => state.taken } as unknown as Consumer;
  const measured = { owner, absent: () => state.absent, consumer: () => consumer, wallMs: () => 100_000 };
  const meter = measurePeering(metrics, measured);
  return { metrics, meter, state, taken };
}

test.each([
  ['lag in services', 'lag_services{peer="acme",side="owner"} 7'],
  ['lag in services, taking', 'lag_services{peer="acme",side="consumer"} 2'],
  ['lag in seconds', 'lag_seconds{peer="acme",side="consumer"} 5'],
  ['lag in seconds, not behind', 'lag_seconds{peer="acme",side="owner"} 0'],
  ['un-acked', 'unacknowledged{peer="acme",side="owner"} 3'],
  ['un-acked, taking', 'unacknowledged{peer="acme",side="consumer"} 2'],
  ['time of the last full sync', 'last_full_sync_timestamp_seconds{peer="acme",side="consumer"} 60'],
  ['a stream', 'connected{peer="acme",side="owner"} 1'],
  ['a stream, taking', 'connected{peer="acme",side="consumer"} 1'],
  ['nothing stopped', 'stopped{peer="acme",side="consumer"} 0'],
  ['nothing stale', 'stale{peer="acme",side="consumer"} 0'],
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

test('metrics: the owner is away, or refuses us -> not connected, stale, stopped, and seconds that grow', async () => {
  const { metrics, state, taken } = setUp();
  const away = { ...taken, state: { kind: 'stopped' }, awayMs: 40_000, staleSinceMs: 60_000, behindSinceMs: undefined };
  state.taken = [away as never];
  const text = await metrics.text();
  for (const line of ['connected 0', 'stopped 1', 'stale 1', 'lag_seconds 40']) {
    const [name, value] = line.split(' ');
    expect(text).toContain(`portolan_peering_${name}{peer="acme",side="consumer"} ${value}\n`);
  }
});

test('metrics: a consumer left -> its lines stay: not connected, everything behind, since when, when it was last in step', async () => {
  const { metrics, state } = setUp();
  state.given = [];
  state.absent = [{ peer: 'acme', services: 9, sinceMs: 70_000, isRefused: true, aliveMs: 69_000, fullSyncMs: 50_000 }];
  const text = await metrics.text();
  const lines = ['connected 0', 'stopped 1', 'lag_services 9', 'lag_seconds 30', 'last_contact_timestamp_seconds 69'];
  for (const line of [...lines, 'last_full_sync_timestamp_seconds 50']) {
    const [name, value] = line.split(' ');
    expect(text).toContain(`portolan_peering_${name}{peer="acme",side="owner"} ${value}\n`);
  }
});
