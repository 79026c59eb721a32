// The conventions of Prometheus for names, units, help and labels of metrics. Pure; createMetrics refuses what breaks one.

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
