// Counters, gauges and histograms of one process, under one prefix and in one registry that its parts list makes and
// hands on. Asking twice for the same name gives the same metric, so that several queues can share one with a label.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';

interface MetricOptions {
  /** Without the prefix, with its base unit: `queue_wait_seconds`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

export interface Metrics {
  counter(options: MetricOptions): Counter;
  /** With `collect`, the value is computed when the metrics are read. If asked for again, the newest one counts. */
  gauge(options: MetricOptions & { readonly collect?: (gauge: Gauge) => void }): Gauge;
  histogram(options: MetricOptions & { readonly buckets?: readonly number[] }): Histogram;
  /** A metric whose values lie elsewhere and are read on demand. */
  computed(options: ComputedMetric): void;
  /** Shows when a certificate ends. Undefined: there is none at present. */
  certificateEnd(certificate: string, endsMs: () => number | undefined): void;
  /** The text that `/metrics` answers, and its content type. */
  text(): Promise<string>;
  readonly contentType: string;
  /** The same as values. */
  series(): Promise<readonly MetricSeries[]>;
}

export interface MetricSeries {
  /** With the prefix. */
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly ComputedValue[];
}

export interface ComputedMetric extends MetricOptions {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Those of a histogram name their series. */
  readonly values: (fullName: string) => readonly ComputedValue[];
}

export interface ComputedValue {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** The same metric in every part, so that one alert serves all. */
const certificateExpiry: MetricOptions = {
  name: 'certificate_expiry_timestamp_seconds',
  help: 'When a certificate ends, in seconds since 1970; of several that are alike, the first.',
  labelNames: ['certificate'],
};

const prefix = 'portolan_';

export function createMetrics(): Metrics {
  const registry = new Registry();
  const collectors = new Map<string, (gauge: Gauge) => void>();
  const once = <M>(type: ComputedMetric['type'], options: MetricOptions, make: (fullName: string) => M): M => {
    const problem = conventionProblem({ ...options, type });
    if (problem !== undefined) throw new Error(`metric ${options.name}: ${problem}`);
    const fullName = prefix + options.name;
    return (registry.getSingleMetric(fullName) as M | undefined) ?? make(fullName);
  };
  const common = (options: MetricOptions, name: string) => ({
    name,
    help: options.help,
    labelNames: [...(options.labelNames ?? [])],
    registers: [registry],
  });
  const ends = new Map<string, () => number | undefined>();
  const metrics: Metrics = {
    counter: (options) => once('counter', options, (name) => new Counter(common(options, name))),
    gauge: (options) => {
      if (options.collect !== undefined) collectors.set(options.name, options.collect);
      return once('gauge', options, (name) => {
        if (options.collect === undefined) return new Gauge(common(options, name));
        const gauge: Gauge = new Gauge({
          ...common(options, name),
          collect: () => collectors.get(options.name)!(gauge),
        });
        return gauge;
      });
    },
    histogram: (options) =>
      once('histogram', options, (name) => {
        const buckets = options.buckets === undefined ? {} : { buckets: [...options.buckets] };
        return new Histogram({ ...common(options, name), ...buckets });
      }),
    computed: ({ values, ...options }) =>
      void once(options.type, options, (name) => {
        const metric = { name, help: options.help, type: options.type, aggregator: 'sum' };
        registry.registerMetric({
          ...metric,
          get: async () => ({ ...metric, values: values(name) }),
          reset() {},
        } as never);
      }),
    certificateEnd: (certificate, endsMs) => {
      ends.set(certificate, endsMs);
      metrics.gauge({ ...certificateExpiry, collect: (gauge) => setEnds(gauge, ends) });
    },
    text: () => registry.metrics(),
    series: () => seriesIn(registry),
    contentType: registry.contentType,
  };
  return metrics;
}

export async function seriesIn(registry: Registry): Promise<readonly MetricSeries[]> {
  return (await registry.getMetricsAsJSON()) as unknown as readonly MetricSeries[];
}

function setEnds(gauge: Gauge, ends: ReadonlyMap<string, () => number | undefined>): void {
  gauge.reset();
  for (const [certificate, endsMs] of ends) {
    const ms = endsMs();
    if (ms !== undefined) gauge.set({ certificate }, Math.floor(ms / 1000));
  }
}

/** For the conventions of Prometheus on names, units, help and labels. */
export interface DescribedMetric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Without the prefix. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

const snakeCase = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const derivedUnit = /_(ms|millis|milliseconds|us|micros|microseconds|ns|minutes|hours|days|kb|kib|mb|mib)(_|$)/;
const madeBySuffix = /_(count|sum|bucket)$/;
const distributionUnit = /_(seconds|bytes|commits)$/;
const reservedLabels = ['le', 'quantile', 'job', 'instance'];

/** Why a metric breaks the conventions; undefined if it does not. */
export function conventionProblem({ type, name, help, labelNames = [] }: DescribedMetric): string | undefined {
  if (!snakeCase.test(name)) return 'use snake_case';
  if (derivedUnit.test(name)) return 'use base units, seconds or bytes';
  if (type === 'counter' && !name.endsWith('_total')) return "a counter's name ends in _total";
  if (type !== 'counter' && name.endsWith('_total')) return 'only the name of a counter ends in _total';
  if (madeBySuffix.test(name)) return 'this suffix belongs to the series of a histogram';
  if (type === 'histogram' && !distributionUnit.test(name)) return "a histogram's name ends in its unit";
  if (!/^[A-Z0-9].*\.$/.test(help)) return 'help is one sentence with a capital and a full stop';
  const label = labelNames.find((one) => !snakeCase.test(one) || reservedLabels.includes(one));
  return label === undefined ? undefined : `label ${label} is reserved or not in snake_case`;
}
