// The metrics of a part as OpenTelemetry counts them: sums, gauges and histograms with points. Pure.

import type { MetricSeries } from '../metrics.ts';

type Labels = Readonly<Record<string, string | number>>;

interface Point<T> {
  readonly attributes: Labels;
  readonly value: T;
}

interface HistogramValue {
  readonly count: number;
  readonly sum: number;
  readonly buckets: { readonly boundaries: number[]; readonly counts: number[] };
}

export type MetricPoints = { readonly name: string; readonly help: string; readonly unit: string } & (
  | { readonly kind: 'sum' | 'gauge'; readonly points: readonly Point<number>[] }
  | { readonly kind: 'histogram'; readonly points: readonly Point<HistogramValue>[] }
);

export function metricPoints({ name, help, type, values }: MetricSeries): MetricPoints {
  const described = { name, help, unit: unitOf(name) };
  if (type === 'histogram') return { ...described, kind: type, points: histograms(name, values) };
  const points = values.map(({ labels, value }) => ({ attributes: labels, value }));
  return { ...described, kind: type === 'counter' ? 'sum' : 'gauge', points };
}

/** As UCUM has them. */
function unitOf(name: string): string {
  const [, unit] = /_(seconds|bytes|ratio)(?:_total)?$/.exec(name) ?? [];
  return unit === 'seconds' ? 's' : unit === 'bytes' ? 'By' : '1';
}

/** Prometheus writes a histogram as cumulative counts, a sum and a count, each with the labels of the series. */
function histograms(name: string, values: MetricSeries['values']): Point<HistogramValue>[] {
  const series = new Map<
    string,
    { labels: Labels; sum: number; count: number; upTo: [bound: number, count: number][] }
  >();
  for (const { metricName, labels: all, value } of values) {
    const { le, ...labels } = all as Record<string, string | number>;
    const key = JSON.stringify(Object.entries(labels).sort());
    const one = series.get(key) ?? { labels, sum: 0, count: 0, upTo: [] };
    series.set(key, one);
    if (metricName === `${name}_sum`) one.sum = value;
    else if (metricName === `${name}_count`) one.count = value;
    else if (le !== '+Inf') one.upTo.push([Number(le), value]);
  }
  return [...series.values()].map(({ labels, sum, count, upTo }) => {
    upTo.sort(([a], [b]) => a - b);
    const cumulative = [...upTo.map(([, value]) => value), count];
    const counts = cumulative.map((value, at) => value - (cumulative[at - 1] ?? 0));
    return { attributes: labels, value: { count, sum, buckets: { boundaries: upTo.map(([bound]) => bound), counts } } };
  });
}
