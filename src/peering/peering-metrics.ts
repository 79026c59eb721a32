// What peering measures: how far behind each side is, what was refused and for what field, when a catalog was last whole.

import type { Metrics } from '../base/metrics.ts';
import type { Consumer } from './consumer.ts';
import type { Owner } from './owner.ts';

export interface PeeringMeter {
  refused(refusal: { readonly peer: string; readonly side: 'owner' | 'consumer'; readonly reason: string }): void;
  /** Somebody was turned away who came in the name of this peer, or in nobody's that we know. */
  unauthenticated(claimed: string | undefined): void;
}

export interface Measured {
  readonly owner: Owner;
  readonly consumer: () => Consumer | undefined;
  readonly wallMs: () => number;
}

interface Sample {
  readonly peer: string;
  readonly lag: number;
  readonly unacknowledged: number;
  readonly notes?: ReadonlyMap<string, string>;
  readonly behindSinceMs: number | undefined;
  readonly fullSyncMs: number | undefined;
  readonly aliveMs: number | undefined;
}

const fields = ['fqdn', 'id', 'san', 'protocols', 'endpoints', 'operation', 'resource_url', 'resource', 'the message'];

export function measurePeering(metrics: Metrics, measured: Measured): PeeringMeter {
  const labelNames = ['peer', 'side'];
  const gauge = (name: string, help: string, value: (sample: Sample) => number | undefined) =>
    metrics.gauge({
      name: `peering_${name}`,
      help,
      labelNames,
      collect: (own) => {
        own.reset();
        for (const [side, sample] of samples(measured)) {
          const found = value(sample);
          if (found !== undefined) own.set({ peer: sample.peer, side }, found);
        }
      },
    });
  const sinceNow = (ms: number | undefined) => (ms === undefined ? 0 : Math.max(0, measured.wallMs() - ms) / 1000);
  gauge('lag_services', 'services the consumer does not have in their newest form', ({ lag }) => lag);
  gauge('lag_seconds', 'since when a consumer is behind without a break', (sample) => sinceNow(sample.behindSinceMs));
  gauge('unacknowledged', 'messages that were not answered yet', (sample) => sample.unacknowledged);
  gauge('notes', 'services that a peer took and has something to say of', ({ notes }) => notes?.size);
  gauge('last_full_sync_timestamp_seconds', 'when the whole catalog was last in place', (sample) =>
    sample.fullSyncMs === undefined ? undefined : sample.fullSyncMs / 1000,
  );
  gauge('last_contact_timestamp_seconds', 'the last sign of life', (sample) =>
    sample.aliveMs === undefined ? undefined : sample.aliveMs / 1000,
  );
  const refusals = metrics.counter({
    name: 'peering_refusals_total',
    help: 'services refused, by the field that was wrong',
    labelNames: [...labelNames, 'reason'],
  });
  const callers = metrics.counter({
    name: 'peering_unauthenticated_total',
    help: 'calls refused as Unauthenticated, by the peer in whose name they came; empty for nobody that is known',
    labelNames: ['peer'],
  });
  return {
    unauthenticated: (claimed = '') => callers.inc({ peer: claimed }),
    refused: ({ peer, side, reason }) => refusals.inc({ peer, side, reason: fieldIn(reason) }),
  };
}

// A peer chooses the words of its refusals; a metric must not have a label for each of them.
function fieldIn(reason: string): string {
  const field = /^(?:spec\.)?([A-Za-z_ ]+)/.exec(reason)?.[1] ?? '';
  return fields.includes(field) ? field : 'other';
}

function* samples({ owner, consumer }: Measured): Generator<['owner' | 'consumer', Sample]> {
  for (const report of owner.reports()) yield ['owner', report];
  for (const report of consumer()?.reports() ?? []) yield ['consumer', { ...report, lag: report.unacknowledged }];
}
