// All traffic of a node as metrics, with a bounded number of series: pairs of service and cluster that come later are added up as `other`,
// so that counts never move to another series.

import type { ComputedValue, Metrics } from '../../base/metrics.ts';
import type { Place } from '../../clusterset/rules/choice/locality.ts';
import type { TotalRow, Totals } from './totals.ts';

export interface TrafficMetricsOptions {
  readonly metrics: Pick<Metrics, 'computed'>;
  readonly totals: Pick<Totals, 'rows' | 'places'>;
  /** Where the node is. */
  readonly self: () => Place;
  readonly pairsMax?: number;
}

/** Six series each. */
const pairsMax = 500;
const clustersMax = 100;
const outcomes = ['tried', 'answered', 'refused', 'reset'] as const;
const directions = ['sent', 'received'] as const;

export function registerTrafficMetrics(options: TrafficMetricsOptions): void {
  const { metrics, totals, self } = options;
  const labels = ['namespace', 'service', 'source_cluster', 'destination_cluster'];
  const sums = () => bounded(totals.rows(), options.pairsMax ?? pairsMax);
  const valuesOf = <K extends keyof TotalRow>(label: string, columns: readonly K[]): ComputedValue[] =>
    sums().flatMap((row) =>
      columns.map((column) => ({
        labels: { ...labelsOf(row), source_cluster: self().cluster, [label]: column },
        value: Number(row[column]),
      })),
    );
  metrics.computed({
    type: 'counter',
    name: 'proxy_connections_total',
    help: 'TCP connections to clusterset addresses from this node, by service, cluster that they went to, and outcome.',
    labelNames: [...labels, 'outcome'],
    values: () => valuesOf('outcome', outcomes),
  });
  metrics.computed({
    type: 'counter',
    name: 'proxy_bytes_total',
    help: 'Bytes of clients of this node with services of the clusterset, by service and cluster that they went to.',
    labelNames: [...labels, 'direction'],
    values: () => valuesOf('direction', directions),
  });
  const ends = ['cluster', 'region', 'zone'] as const;
  metrics.computed({
    type: 'counter',
    name: 'proxy_place_bytes_total',
    help: 'Bytes between this node and the endpoints of the clusterset, by cluster, region and zone of both.',
    labelNames: [...ends.flatMap((end) => [`source_${end}`, `destination_${end}`]), 'direction'],
    values: () => {
      const { cluster, region = '', zone = '' } = self();
      const source = { source_cluster: cluster, source_region: region, source_zone: zone };
      return totals.places().flatMap((row) => {
        const destination = {
          ...{ destination_cluster: row.cluster, destination_region: row.region, destination_zone: row.zone },
        };
        return directions.map((direction) => ({
          labels: { ...source, ...destination, direction },
          value: row[direction],
        }));
      });
    },
  });
}

function labelsOf({ service: key, cluster }: TotalRow) {
  const [namespace, service] = key.includes('/') ? key.split('/') : ['', key];
  return { namespace: namespace!, service: service!, destination_cluster: cluster };
}

/** The first pairs as they are: rows are only ever added at the end. */
function bounded(rows: readonly TotalRow[], max: number): TotalRow[] {
  const isNamed = ({ service }: TotalRow, index: number) => index < max && service !== 'other';
  const others = new Map<string, TotalRow>();
  for (const [index, row] of rows.entries()) {
    if (isNamed(row, index)) continue;
    const cluster = others.has(row.cluster) || others.size < clustersMax ? row.cluster : '';
    const before = others.get(cluster);
    const sum = (column: (typeof outcomes)[number] | (typeof directions)[number]) =>
      row[column] + (before?.[column] ?? 0);
    others.set(cluster, {
      ...{ service: 'other', cluster, tried: sum('tried'), answered: sum('answered'), refused: sum('refused') },
      ...{ reset: sum('reset'), sent: sum('sent'), received: sum('received') },
    });
  }
  return [...rows.filter(isNamed), ...others.values()];
}
