// The JSON schema of the chart's values, for Helm: types from the defaults, patterns from the same rules that
// `portolan install` checks. The templates fail on contradictions. Pure.

import {
  cpuPattern,
  defaultValues,
  listenAddresses,
  logLevels,
  memoryPattern,
  serviceTypes,
  workloadKinds,
} from './values.ts';

type Schema = Record<string, unknown>;

const ipv4 = String.raw`\d{1,3}(\.\d{1,3}){3}`;
const ipv6 = '[0-9a-fA-F:.]*:[0-9a-fA-F:.]*';
const address = `${ipv4}|${ipv6}`;

const special: Readonly<Record<string, Schema>> = {
  logLevel: { enum: logLevels },
  listenAddress: { enum: listenAddresses },
  // As close as a pattern comes to the rule of `portolan install`.
  'dns.clusterIP': { pattern: `^(${address})?$` },
  'dns.stubAdvertise': { pattern: `^(${address}|${ipv4}:\\d+|\\[${ipv6}\\](:\\d+)?)?$` },
  'dns.workload': { enum: workloadKinds },
  'dns.stubServiceType': { enum: serviceTypes },
};

const byKey: Readonly<Record<string, Schema>> = {
  cpu: { pattern: cpuPattern.source },
  memory: { pattern: memoryPattern.source },
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
  if (typeof value === 'object' && value !== null) return objectSchema(value, `${path}.`);
  return { type: typeof value, ...byKey[path.split('.').at(-1)!], ...special[path] };
}
