// The metrics of this process as Prometheus clients name them: CPU, memory, file descriptors, event loop and garbage
// collection. Collected once, however many parts run in the process.

import { collectDefaultMetrics, Registry } from 'prom-client';
import { createMetrics, type MetricSeries, type Metrics, seriesIn } from '../metrics.ts';
import { version } from '../version.ts';

/** Metrics of one part, with its build and those of its process. */
export function createPartMetrics(part: string): Metrics {
  const metrics = createMetrics();
  metrics
    .gauge({
      name: 'build_info',
      help: 'Always 1; the labels name the part, its version and that of Node.',
      labelNames: ['part', 'version', 'node_version'],
    })
    .set({ part, version, node_version: process.version }, 1);
  parts.add({ part, metrics });
  return { ...metrics, text: async () => `${await metrics.text()}\n${await processRegistry().metrics()}` };
}

export interface PartMetrics {
  readonly part: string;
  readonly metrics: Pick<Metrics, 'series'>;
}

/** Metrics of all parts of this process, and its own use of CPU and memory. */
export function metricsOfProcess(): readonly PartMetrics[] {
  const own = { series: (): Promise<readonly MetricSeries[]> => seriesIn(processRegistry()) };
  return [...parts, { part: 'process', metrics: own }];
}

const parts = new Set<PartMetrics>();

// Their values take time in proportion to the open sockets, and their names are against the conventions.
const unwanted = /^nodejs_active_/;
/** Each reading of the event loop's delay wakes the process up. */
const eventLoopMonitoringPrecision = 100;
const made: { registry?: Registry } = {};

function processRegistry(): Registry {
  if (made.registry !== undefined) return made.registry;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision });
  for (const { name } of registry.getMetricsAsArray()) if (unwanted.test(name)) registry.removeSingleMetric(name);
  made.registry = registry;
  return registry;
}
