// Counters, gauges and histograms of one process, under one prefix and in one registry that its parts list makes and
// hands on. Asking twice for the same name gives the same metric, so that several queues can share one with a label.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface MetricOptions {
  /** Without the prefix, with its base unit: `queue_wait_seconds`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

export interface Metrics {
  counter(options: MetricOptions): Counter;
  /** With `collect`, the value is computed when the metrics are read. */
  gauge(options: MetricOptions & { readonly collect?: (gauge: Gauge) => void }): Gauge;
  histogram(options: MetricOptions & { readonly buckets?: readonly number[] }): Histogram;
  /** The text that `/metrics` answers, and its content type. */
  text(): Promise<string>;
  readonly contentType: string;
  readonly registry: Registry;
}

const prefix = 'portolan_';
const derivedUnit = /_(ms|millis|milliseconds|us|micros|microseconds|ns|minutes|hours|kb|kib|mb|mib)(_|$)/;

export function createMetrics(): Metrics {
  const registry = new Registry();
  const once = <M>(name: string, make: (fullName: string) => M): M => {
    if (derivedUnit.test(name)) throw new Error(`metric ${name}: use base units, seconds or bytes`);
    const fullName = prefix + name;
    return (registry.getSingleMetric(fullName) as M | undefined) ?? make(fullName);
  };
  const common = (options: MetricOptions, name: string) => ({
    name,
    help: options.help,
    labelNames: [...(options.labelNames ?? [])],
    registers: [registry],
  });
  return {
    counter: (options) => {
      if (!options.name.endsWith('_total')) throw new Error(`metric ${options.name}: a counter's name ends in _total`);
      return once(options.name, (name) => new Counter(common(options, name)));
    },
    gauge: (options) =>
      once(options.name, (name) => {
        const { collect } = options;
        if (collect === undefined) return new Gauge(common(options, name));
        const gauge: Gauge = new Gauge({ ...common(options, name), collect: () => collect(gauge) });
        return gauge;
      }),
    histogram: (options) =>
      once(options.name, (name) => {
        const buckets = options.buckets === undefined ? {} : { buckets: [...options.buckets] };
        return new Histogram({ ...common(options, name), ...buckets });
      }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
    registry,
  };
}
