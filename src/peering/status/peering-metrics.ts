// The metrics of peering: lag of each side, refusals by field, time of the last complete catalog.

import type { Metrics } from '../../base/metrics.ts';
import type { Consumer } from '../consumer/consumer.ts';
import type { LinkReport } from '../consumer/consumer-link.ts';
import type { Owner } from '../owner/owner.ts';
import type { LinkState } from '../session/connection.ts';

export interface PeeringMeter {
  refused(refusal: { readonly peer: string; readonly side: 'owner' | 'consumer'; readonly reason: string }): void;
  /** A caller was refused who claimed to be this peer, or an unknown one. */
  unauthenticated(claimed: string | undefined): void;
}

export interface Measured {
  readonly owner: Owner;
  readonly absent: () => Iterable<AbsentConsumer>;
  readonly consumer: () => Consumer | undefined;
  readonly wallMs: () => number;
}

/** A peer that takes from us, or should, and has no stream. */
export interface AbsentConsumer {
  readonly peer: string;
  /** The wanted number of services. */
  readonly services: number;
  readonly sinceMs: number;
  /** It came since, and was turned away. */
  readonly isRefused: boolean;
  readonly aliveMs: number | undefined;
  readonly fullSyncMs: number | undefined;
}

interface Sample {
  readonly peer: string;
  readonly lag: number;
  readonly lagMs: number;
  readonly unacknowledged: number;
  readonly notes?: ReadonlyMap<string, string>;
  readonly fullSyncMs: number | undefined;
  readonly aliveMs: number | undefined;
  readonly isConnected: boolean;
  /** Until something changes or a retry is requested. */
  readonly isStopped: boolean;
  readonly isStale: boolean;
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
  gauge('connected', '1 while there is a stream that the owner took up.', ({ isConnected }) => Number(isConnected));
  gauge('stopped', '1 after a refusal that is not retried by itself.', ({ isStopped }) => Number(isStopped));
  gauge('stale', '1 while the services that the consumer stores are stale.', ({ isStale }) => Number(isStale));
  gauge('lag_services', 'Services the consumer does not have in their newest form.', ({ lag }) => lag);
  gauge('lag_seconds', 'Since when a consumer is behind, or away from its owner.', ({ lagMs }) => lagMs / 1000);
  gauge('unacknowledged', 'Messages that were not answered yet.', (sample) => sample.unacknowledged);
  gauge('notes', 'Services that a peer took and has something to say of.', ({ notes }) => notes?.size);
  gauge('last_full_sync_timestamp_seconds', 'When the whole catalog was last in place.', (sample) =>
    sample.fullSyncMs === undefined ? undefined : sample.fullSyncMs / 1000,
  );
  gauge('last_contact_timestamp_seconds', 'The last sign of life.', (sample) =>
    sample.aliveMs === undefined ? undefined : sample.aliveMs / 1000,
  );
  const refusals = metrics.counter({
    name: 'peering_refusals_total',
    help: 'Services refused, by the field that was wrong.',
    labelNames: [...labelNames, 'reason'],
  });
  const callers = metrics.counter({
    name: 'peering_unauthenticated_total',
    help: 'Calls refused as Unauthenticated, by the peer in whose name they came; empty for nobody that is known.',
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

function* samples({ owner, absent, consumer, wallMs }: Measured): Generator<['owner' | 'consumer', Sample]> {
  const since = (ms: number | undefined) => (ms === undefined ? 0 : Math.max(0, wallMs() - ms));
  for (const report of owner.reports()) {
    const isStale = report.snapshotRefused !== '';
    const state = { isConnected: true, isStopped: false, isStale, lagMs: since(report.behindSinceMs) };
    yield ['owner', { ...report, ...state }];
  }
  for (const { services: lag, sinceMs, isRefused, ...rest } of absent()) {
    const state = { isConnected: false, isStopped: isRefused, isStale: true, lagMs: since(sinceMs) };
    yield ['owner', { ...rest, ...state, lag, unacknowledged: 0 }];
  }
  for (const report of consumer()?.reports() ?? []) yield ['consumer', consumerSample(report, since)];
}

const withoutStream = new Set<LinkState['kind']>(['dialing', 'backingOff', 'stopped', 'suspended', 'misconfigured']);

function consumerSample(report: LinkReport & { peer: string }, since: (ms: number | undefined) => number): Sample {
  const { kind } = report.state;
  return {
    ...report,
    lag: report.unacknowledged,
    lagMs: Math.max(since(report.behindSinceMs), report.awayMs),
    isConnected: !withoutStream.has(kind),
    isStopped: kind === 'stopped' || kind === 'misconfigured',
    isStale: report.staleSinceMs !== undefined,
  };
}
