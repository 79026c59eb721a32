// Random external services and connections that often meet: few names, few addresses, few ports.

import { parse } from 'yaml';
import type { MeshExternalService, Protocol } from '../../../external/kinds/mesh-external-service.ts';
import { externalService } from '../../../external/testing/services.ts';

/** Mulberry32: the same seed, the same cases. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

export type Random = () => number;

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!;
}

export const ports = [80, 443, 9092];
const domains = ['a.ext', 'b.a.ext', 'c.b.a.ext', 'x.org', 'API.x.org'];
const wildcards = ['*.ext', '*.a.ext', '*.b.a.ext', '*.org'];
const addresses = ['10.0.0.1', '10.0.0.2', '10.0.1.1', '10.1.0.1', '192.168.0.1', 'fd00::1', 'fd00::2'];
const ranges = [
  '10.0.0.0/8',
  '10.0.0.0/16',
  '10.0.0.0/24',
  '10.0.0.1/32',
  '0.0.0.0/0',
  'fd00::/64',
  '::/0',
  '10.0.0.3/24',
];
const vips: Readonly<Record<string, string>> = { 'one.vip': '242.0.0.1', 'two.vip': '242.0.0.2', 'six.vip': 'fd70::1' };
const virtualIps = Object.values(vips);
const protocols: readonly Protocol[] = ['tls', 'tcp', 'http', 'http2', 'grpc'];
const endpointSets = [
  '[{ address: 127.0.0.1, port: 1 }]',
  '[{ address: example.com }]',
  '[{ address: "unix:///run/x.sock" }]',
  '[{ address: 127.0.0.1 }, { address: example.com, port: 8 }, { address: "::1" }]',
];

export interface RandomOptions {
  readonly count: number;
  /** Fields of `tls`, in YAML, for some of those with endpoints. */
  readonly tls?: string;
}

/** Most are valid; what is not must change nothing. */
export function randomServices(random: Random, { count, tls }: RandomOptions): MeshExternalService[] {
  return Array.from({ length: count }, (_, index) => randomService(random, index, tls));
}

function randomService(random: Random, index: number, tls: string | undefined): MeshExternalService {
  const kind = pick(random, ['Passthrough', 'Passthrough', 'Regular', 'Regular', 'Extension']);
  const matches = Array.from({ length: 1 + Math.floor(random() * 4) }, () => randomMatch(random, kind));
  const hasTls =
    tls !== undefined &&
    kind === 'Regular' &&
    random() < 0.5 &&
    !matches.some((text) => text.includes('protocol: tls'));
  const destination = {
    Passthrough: '{}',
    Regular: `{ type: Regular, endpoints: ${pick(random, endpointSets)}${hasTls ? `, tls: { ${tls} }` : ''} }`,
    Extension:
      '{ type: Extension, extension: { type: Lambda, config: { arn: "arn:aws:lambda:us-west-2:123456789012:function:my-function" } } }',
  }[kind];
  const spec = `{ match: [${[...new Set(matches)].join(', ')}], destination: ${destination} }`;
  const hostnames = (parse(spec) as MeshExternalService['spec']).match.flatMap(({ type, value = '' }) =>
    type === 'InternalVIP' ? [value] : [],
  );
  return externalService(spec, {
    name: `s${index}`,
    origin: random() < 0.3 ? 'broker' : 'home',
    created: `202${Math.floor(random() * 3)}-01-01T00:00:00Z`,
    vips: Object.fromEntries(hostnames.map((hostname) => [hostname, vips[hostname]!])),
  });
}

function randomMatch(random: Random, kind: string): string {
  const port = pick(random, ports);
  const types =
    kind === 'Passthrough'
      ? ['Domain', 'Domain', 'CIDR', 'IP']
      : ['InternalVIP', 'InternalVIP', 'Domain', 'CIDR', 'IP'];
  const type = pick(random, types);
  const spoken = kind === 'Extension' ? pick(random, ['http', 'http2']) : pick(random, protocols);
  const protocol = type === 'Domain' && spoken === 'tcp' && random() < 0.8 ? 'http' : spoken;
  const value = {
    InternalVIP: () => pick(random, Object.keys(vips)),
    Domain: () => (kind === 'Passthrough' && random() < 0.4 ? pick(random, wildcards) : pick(random, domains)),
    CIDR: () => pick(random, ranges),
    IP: () => pick(random, addresses),
  }[type]!();
  return `{ type: ${type}, value: "${value}", port: ${port}, protocol: ${protocol} }`;
}

export interface RandomConnection {
  readonly address: string;
  readonly port: number;
  readonly speech: 'tls' | 'http1' | 'http2' | 'raw';
  /** SNI or Host. */
  readonly name?: string;
}

const askedNames = [
  'a.ext',
  'b.a.ext',
  'C.b.a.ext',
  'z.z.a.ext',
  'x.org',
  'api.x.org',
  'org',
  'ext',
  'one.vip',
  'other.net',
];

export function randomConnection(random: Random): RandomConnection {
  const speech = pick(random, ['tls', 'http1', 'http2', 'raw'] as const);
  const hasName = speech !== 'raw' && random() < 0.8;
  const suffix = speech !== 'tls' && random() < 0.3 ? ':80' : '';
  return {
    address: random() < 0.35 ? pick(random, virtualIps) : pick(random, [...addresses, '8.8.8.8', '10.0.0.9']),
    port: random() < 0.95 ? pick(random, ports) : 81,
    speech,
    ...(hasName ? { name: `${pick(random, askedNames)}${suffix}` } : {}),
  };
}
