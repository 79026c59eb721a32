// The JSON schema of the chart's values, for Helm: types from the defaults, patterns from the same rules that
// `portolan install` checks. The templates fail on contradictions. Pure.

import {
  cpuPattern,
  defaultValues,
  drainSecondsMax,
  lameduckMax,
  listenAddresses,
  logLevels,
  memoryPattern,
  pullPolicies,
  serviceTypes,
  workloadKinds,
} from './values.ts';

type Schema = Record<string, unknown>;

const ipv4 = String.raw`\d{1,3}(\.\d{1,3}){3}`;
const ipv6 = '[0-9a-fA-F:.]*:[0-9a-fA-F:.]*';
const address = `${ipv4}|${ipv6}`;
const label = '[a-z0-9]([a-z0-9-]*[a-z0-9])?';

const numberOrText = ['string', 'number'];
const listOf = (items: Schema): Schema => ({ type: 'array', items });
const texts: Schema = { type: 'object', additionalProperties: { type: 'string' } };

const special: Readonly<Record<string, Schema>> = {
  logLevel: { enum: logLevels },
  listenAddress: { enum: listenAddresses },
  // As close as a pattern comes to the rule of `portolan install`.
  'dns.clusterIP': { pattern: `^(${address})?$` },
  'dns.stubAdvertise': { pattern: `^(${address}|${ipv4}:\\d+|\\[${ipv6}\\](:\\d+)?)?$` },
  'dns.workload': { enum: workloadKinds },
  'dns.clusterId': { type: numberOrText, pattern: `^(${label}(\\.${label})?)?$`, maxLength: 63 },
  'dns.lameduck': { type: 'integer', minimum: 0, maximum: lameduckMax },
  'gateway.drainSeconds': { type: 'integer', minimum: 0, maximum: drainSecondsMax },
  imagePullPolicy: { enum: pullPolicies },
  'dns.stubServiceType': { enum: serviceTypes },
};

const byKey: Readonly<Record<string, Schema>> = {
  // People write --set agent.cpu=1, which is a number to Helm.
  cpu: { type: numberOrText, pattern: cpuPattern.source },
  cpuLimit: { type: numberOrText, pattern: `^$|${cpuPattern.source}` },
  memory: { type: numberOrText, pattern: memoryPattern.source },
  nodeSelector: texts,
  podAnnotations: texts,
  extraArgs: listOf({ type: 'string' }),
  clients: listOf({ type: 'string' }),
  replicas: { type: 'integer', minimum: 1 },
  serviceType: { enum: serviceTypes },
};

export function valuesSchema(): Schema {
  return { $schema: 'http://json-schema.org/draft-07/schema#', ...objectSchema(defaultValues, '') };
}

function objectSchema(values: object, path: string): Schema {
  const properties = Object.entries(values).map(([key, value]) => [key, schemaOf(value, `${path}${key}`)]);
  // Helm adds `global` to the values of every chart.
  if (path === '') properties.push(['global', { type: 'object' }]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

function schemaOf(value: unknown, path: string): Schema {
  const own = { ...byKey[path.split('.').at(-1)!], ...special[path] };
  if (Array.isArray(value)) return { ...listOf({ type: 'object' }), ...own };
  if (typeof value !== 'object' || value === null) return { type: typeof value, ...own };
  return Object.keys(value).length === 0 ? { type: 'object', ...own } : objectSchema(value, `${path}.`);
}
