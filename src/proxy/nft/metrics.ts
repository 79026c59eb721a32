// Metrics of the proxy: what it serves, and how long its transactions take.

import type { Metrics } from '../../base/metrics.ts';
import type { Refusal } from '../../kube/objects/reports/access-report.ts';
import type { SilentReport } from '../../kube/objects/reports/silent-clusters.ts';
import type { ApplierStatus } from './applier.ts';
import type { Transaction } from './table-keeper.ts';

const buckets = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export interface ProxyMetricsOptions {
  readonly metrics: Metrics;
  readonly size: () => { readonly services: number; readonly ports: number; readonly backends?: number };
  readonly problems: () => number;
  readonly isStale: () => boolean;
  /** Whether calls of other clusters are limited as asked; undefined while they need not be. */
  readonly isEnforced: () => boolean | undefined;
  readonly refusals: () => Iterable<Refusal>;
  /** Endpoints that are left, by service and cluster. */
  readonly silent: () => SilentReport;
  /** What probes showed of the way to other clusters. */
  readonly paths: () => Iterable<readonly [cluster: string, path: { readonly rttMs: number; readonly loss: number }]>;
}

export function registerProxyMetrics(options: ProxyMetricsOptions): void {
  const { metrics, size, problems, isStale } = options;
  registerAccessMetrics(options);
  const gauge = (name: string, help: string, value: () => number) =>
    metrics.gauge({ name, help, collect: (each) => each.set(value()) });
  gauge('proxy_services', 'Services that are served.', () => size().services);
  gauge('proxy_ports', 'Addresses and ports of services.', () => size().ports);
  gauge('proxy_backends', 'Endpoints behind them.', () => size().backends ?? 0);
  gauge('proxy_problems', 'Services with a problem, see /status.', problems);
  gauge('proxy_stale', '1 while the home is unreachable and the last known state is served.', () =>
    isStale() ? 1 : 0,
  );
  registerVerdicts(options);
}

function registerVerdicts({ metrics, silent, paths }: ProxyMetricsOptions): void {
  metrics.computed({
    type: 'gauge',
    name: 'proxy_left_endpoints',
    help: 'Endpoints that are called ready, do not answer from this node and get no connections, by their cluster.',
    labelNames: ['destination_cluster'],
    values: () => {
      const sums = new Map<string, number>();
      for (const clusters of silent().values())
        for (const [cluster, { left }] of clusters) sums.set(cluster, (sums.get(cluster) ?? 0) + left);
      return [...sums].map(([destination_cluster, value]) => ({ labels: { destination_cluster }, value }));
    },
  });
  const path = (name: string, help: string, read: (path: { rttMs: number; loss: number }) => number) =>
    metrics.computed({
      type: 'gauge',
      name,
      help,
      labelNames: ['destination_cluster'],
      values: () =>
        Array.from(paths(), ([cluster, each]) => ({ labels: { destination_cluster: cluster }, value: read(each) })),
    });
  path(
    'proxy_path_round_trip_seconds',
    'Least time to connect to endpoints of a cluster from this node, of the last probes.',
    ({ rttMs }) => rttMs / 1000,
  );
  path(
    'proxy_path_loss_ratio',
    'Part of the last probes to a cluster whose first attempt was not answered.',
    ({ loss }) => loss,
  );
}

function registerAccessMetrics({ metrics, isEnforced, refusals }: ProxyMetricsOptions): void {
  metrics.computed({
    type: 'gauge',
    name: 'proxy_access_enforced',
    help: '1 while this node limits calls of other clusters as asked, 0 while it does not; absent where access is Open.',
    values: () => {
      const enforced = isEnforced();
      return enforced === undefined ? [] : [{ labels: {}, value: enforced ? 1 : 0 }];
    },
  });
  metrics.computed({
    type: 'counter',
    name: 'proxy_access_refused_packets_total',
    help: 'First packets of calls that no export allows, by service and source cluster; in Audit they passed.',
    labelNames: ['namespace', 'service', 'source_cluster'],
    values: () => refusedSeries(refusals()),
  });
}

/** So many pairs of service and caller have a series of their own. */
const refusedSeriesMax = 200;

/** Ports together. Addresses of no Service, and pairs beyond the bound, are `other`: counts never move to another series. */
function refusedSeries(refusals: Iterable<Refusal>) {
  const series = new Map<string, { labels: Record<string, string>; value: number }>();
  for (const { from, service: key, packets } of refusals) {
    const known = `${from} ${key}`;
    const isNamed = key.includes('/') && (series.has(known) || series.size < refusedSeriesMax);
    const [namespace = '', service = ''] = isNamed ? key.split('/') : ['', 'other'];
    const name = isNamed ? known : `${from} other`;
    const value = packets + (series.get(name)?.value ?? 0);
    series.set(name, { labels: { namespace, service, source_cluster: from }, value });
  }
  return [...series.values()];
}

/** Metrics of nftables mode. */
export function transactionObserver(metrics: Metrics, status: () => ApplierStatus): (transaction: Transaction) => void {
  const durations = metrics.histogram({
    name: 'proxy_transaction_seconds',
    help: 'Time that transactions took, by kind: change or refill.',
    labelNames: ['kind'],
    buckets,
  });
  const failures = metrics.counter({
    name: 'proxy_transaction_failures_total',
    help: 'Transactions that the kernel or nft refused.',
    labelNames: ['kind'],
  });
  metrics.computed({
    type: 'counter',
    name: 'proxy_foreign_changes_total',
    help: 'Changes of our table by other processes, which were put right.',
    values: () => [{ labels: {}, value: status().foreignChanges }],
  });
  return ({ kind, seconds, isOk }) => {
    durations.observe({ kind }, seconds);
    if (!isOk) failures.inc({ kind });
  };
}
