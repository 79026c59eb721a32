// The counters of the DNS server in the registry of its process: queries by zone and rcode, time per answer by zone,
// the time from an endpoint's change to its answer, use of the cache, and how the servers do that are asked.

import { rcodeNames } from '../../base/dns/codes.ts';
import type { ComputedMetric, ComputedValue, Metrics } from '../../base/metrics.ts';
import { propagationBuckets, propagationSeconds } from '../../base/propagation-time.ts';
import type { Clock } from '../../base/world.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import { latencyBounds, readCounters, type ZoneLatency } from './observe.ts';
import type { ServerTotals } from './server-stats.ts';

export interface DnsMetricsOptions {
  readonly metrics: Metrics;
  readonly counters: () => readonly SharedArrayBuffer[];
  /** A federation's may come to lie elsewhere. */
  readonly zones: () => readonly Zone[];
  readonly workerRestarts?: () => number;
}

export function registerDnsMetrics({ metrics, counters, zones, workerRestarts }: DnsMetricsOptions): void {
  const zoneName = (id: number) => zones().find((zone) => zone.id === id)?.name ?? 'other';
  metrics.computed({
    name: 'dns_queries_total',
    help: 'Answered queries by zone and rcode.',
    type: 'counter',
    values: () =>
      readCounters(counters()).byZoneAndRcode.map(({ zone, rcode, count }) => ({
        labels: { zone: zoneName(zone), rcode: rcodeNames[rcode] ?? String(rcode) },
        value: count,
      })),
  });
  metrics.computed({
    name: 'dns_query_seconds',
    help: 'Time from a query read to its answer written, by zone.',
    type: 'histogram',
    values: (name) =>
      readCounters(counters()).latencies.flatMap((latency) => histogramValues(name, zoneName(latency.zone), latency)),
  });
  metrics.computed({
    name: 'dns_packets_dropped_total',
    help: 'Packets without an answer: from port 0, or that ended in an error of ours.',
    type: 'counter',
    values: () => droppedValues(counters()),
  });
  metrics.computed({
    name: 'dns_cache_total',
    help: 'Queries passed on: answered from the cache, by an old answer, or by asking (hit, stale, miss).',
    type: 'counter',
    values: () => cacheValues(counters()),
  });
  metrics.computed({
    name: 'dns_cache_refreshes_total',
    help: 'Answers of the cache that were asked for again before their time was over.',
    type: 'counter',
    values: () => [{ labels: {}, value: readCounters(counters()).tally.cacheRefreshed }],
  });
  registerServers(metrics, counters);
  metrics.computed({
    name: 'dns_worker_restarts_total',
    help: 'Threads that ended and were replaced.',
    type: 'counter',
    values: () => [{ labels: {}, value: workerRestarts?.() ?? 0 }],
  });
}

/** Metrics of upstream servers. */
function registerServers(metrics: Metrics, counters: DnsMetricsOptions['counters']): void {
  const add = (what: string, help: string, type: ComputedMetric['type'], valueIn: (server: ServerTotals) => number) =>
    metrics.computed({
      name: `dns_upstream_${what}`,
      help,
      type,
      values: () =>
        readCounters(counters()).servers.map((totals) => ({
          labels: { server: totals.server },
          value: valueIn(totals),
        })),
    });
  add('questions_total', 'Questions sent to a server.', 'counter', ({ asked }) => asked);
  add('unanswered_total', 'Questions it did not answer in time.', 'counter', ({ unanswered }) => unanswered);
  add('failures_total', 'Answers that were a failure, such as SERVFAIL.', 'counter', ({ failed }) => failed);
  add('up', '0 while it does not even answer probes.', 'gauge', ({ isSilent }) => (isSilent ? 0 : 1));
}

function cacheValues(counters: readonly SharedArrayBuffer[]): ComputedValue[] {
  const { cacheHits, cacheStale, cacheMisses } = readCounters(counters).tally;
  return [
    { labels: { result: 'hit' }, value: cacheHits },
    { labels: { result: 'stale' }, value: cacheStale },
    { labels: { result: 'miss' }, value: cacheMisses },
  ];
}

/** Packets and queries that got no answer from us, by reason. */
function droppedValues(counters: readonly SharedArrayBuffer[]): ComputedValue[] {
  const { droppedPortZero, droppedFault } = readCounters(counters).tally;
  return [
    { labels: { reason: 'port-zero' }, value: droppedPortZero },
    { labels: { reason: 'fault' }, value: droppedFault },
  ];
}

function histogramValues(name: string, zone: string, { counts, sumSeconds }: ZoneLatency): ComputedValue[] {
  let sum = 0;
  const buckets = counts.map((count, i) => {
    sum += count;
    return { metricName: `${name}_bucket`, labels: { zone, le: latencyBounds[i] ?? '+Inf' }, value: sum };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: { zone }, value: sumSeconds },
    { metricName: `${name}_count`, labels: { zone }, value: sum },
  ];
}

/** From the moment a changed fact came in to the moment every thread answers by it. */
export function observeChanges(options: {
  readonly metrics: Metrics;
  readonly catalog: Catalog;
  readonly clock: Clock;
}): () => void {
  const histogram = options.metrics.histogram({
    name: 'dns_change_to_answer_seconds',
    help: 'Time from a change of an endpoint, import or service seen here to its answer.',
    buckets: [0.0005, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 1],
  });
  const exports = options.metrics.histogram({
    name: 'dns_export_to_answer_seconds',
    help: 'Time from the creation of an export in its cluster to the answer here, in steps of a second.',
    buckets: propagationBuckets,
  });
  return options.catalog.onChange((changes) => {
    const nowMs = options.clock.monotonicMs();
    for (const { sinceMs, importableSinceMs } of changes) {
      histogram.observe((nowMs - sinceMs) / 1000);
      if (importableSinceMs === undefined) continue;
      exports.observe(propagationSeconds(importableSinceMs, options.clock.wallMs()));
    }
  });
}
