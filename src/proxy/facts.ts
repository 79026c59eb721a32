// The part of a ServiceImport and of an EndpointSlice that the proxy keeps: addresses, ports, ready endpoints. Pure. An
// outside value that makes no sense is left out and named as a problem.

import { formatIp, type Ip, parseIp } from '../base/net/ip.ts';
import type { ServiceImport } from '../clusterset/kinds/service-import.ts';
import {
  type EndpointPort,
  type EndpointSlice,
  importedServiceNameLabel,
  isReady,
  sourceClusterLabel,
} from '../kube/objects/endpoint-slice.ts';
import { keyOf } from '../kube/objects/object.ts';

export type Protocol = NonNullable<EndpointPort['protocol']>;
export type Family = Ip['family'];

export interface PortFacts {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export interface Address {
  readonly text: string;
  readonly family: Family;
}

export interface ServiceFacts {
  /** `namespace/name`. */
  readonly key: string;
  readonly ips: readonly Address[];
  readonly ports: readonly PortFacts[];
  /** 0 without session affinity. */
  readonly affinitySeconds: number;
  readonly isNodeLocalOnly: boolean;
  readonly trafficDistribution?: string;
  readonly problems: readonly string[];
}

export interface EndpointFacts {
  /** In its shortest form. */
  readonly address: string;
  readonly zone?: string;
}

export interface SliceFacts {
  /** `namespace/name` of the import. */
  readonly service: string;
  readonly cluster: string;
  readonly family: Family;
  readonly ports: readonly PortFacts[];
  /** The ready ones. */
  readonly endpoints: readonly EndpointFacts[];
}

const protocols: ReadonlySet<string> = new Set(['TCP', 'UDP', 'SCTP']);
const defaultAffinitySeconds = 10_800;
/** As Kubernetes bounds it. */
const affinitySecondsMax = 86_400;
const portsMax = 1000;
const endpointsMax = 20_000;

export function factsOfImport(object: ServiceImport): ServiceFacts {
  const { spec } = object;
  const problems: string[] = [];
  const isAffine = spec?.sessionAffinity === 'ClientIP';
  return {
    key: keyOf(object),
    ips: spec?.type === 'Headless' ? [] : ipsOf(spec?.ips, problems),
    ports: firstOfEach(portsOf(spec?.ports, problems)),
    affinitySeconds: isAffine ? affinitySecondsOf(spec.sessionAffinityConfig?.clientIP?.timeoutSeconds) : 0,
    isNodeLocalOnly: spec?.internalTrafficPolicy === 'Local',
    ...(spec?.trafficDistribution ? { trafficDistribution: spec.trafficDistribution } : {}),
    problems,
  };
}

function ipsOf(texts: readonly unknown[] | undefined, problems: string[]): Address[] {
  const addresses = new Map<string, Address>();
  for (const text of listOf(texts).slice(0, 2)) {
    const ip = typeof text === 'string' ? parseIp(text) : undefined;
    if (ip === undefined)
      problems.push(`${quoted(text)} is no IP address; delete the import and its agent writes it again`);
    else addresses.set(formatIp(ip), { text: formatIp(ip), family: ip.family });
  }
  return [...addresses.values()];
}

function portsOf(ports: readonly unknown[] | undefined, problems: string[]): PortFacts[] {
  const facts: PortFacts[] = [];
  for (const each of listOf(ports).slice(0, portsMax)) {
    const { name, protocol = 'TCP', port } = (each ?? {}) as { name?: string; protocol?: string; port?: unknown };
    if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535 || !protocols.has(protocol))
      problems.push(`port ${quoted(each)} is none`);
    else facts.push({ name: name ?? '', protocol: protocol as Protocol, port });
  }
  return facts;
}

/** A service has a number once for each protocol. In slices several names may lead to one number. */
function firstOfEach(ports: readonly PortFacts[]): PortFacts[] {
  const byNumber = new Map<string, PortFacts>();
  for (const port of [...ports].reverse()) byNumber.set(`${port.protocol}/${port.port}`, port);
  return [...byNumber.values()].reverse();
}

function affinitySecondsOf(seconds: unknown): number {
  if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 1) return defaultAffinitySeconds;
  return Math.min(seconds, affinitySecondsMax);
}

/** Undefined for a slice that stands behind no import, or that holds names in place of addresses. */
export function factsOfSlice(slice: EndpointSlice): SliceFacts | undefined {
  const { metadata, addressType } = slice;
  const service = metadata.labels?.[importedServiceNameLabel];
  const cluster = metadata.labels?.[sourceClusterLabel];
  if (!service || !cluster || (addressType !== 'IPv4' && addressType !== 'IPv6')) return undefined;
  return {
    service: `${metadata.namespace}/${service}`,
    cluster,
    family: addressType,
    ports: portsOf(slice.ports, []),
    endpoints: endpointsOf(slice, addressType),
  };
}

function endpointsOf(slice: EndpointSlice, family: Family): EndpointFacts[] {
  const endpoints: EndpointFacts[] = [];
  for (const endpoint of listOf(slice.endpoints)) {
    if (!endpoint || !isReady(endpoint)) continue;
    // Kubernetes: all addresses of one endpoint are alike, and the first is the one to use.
    const ip = parseIp(String(listOf(endpoint.addresses)[0] ?? ''));
    if (ip?.family !== family || endpoints.length >= endpointsMax) continue;
    endpoints.push({ address: formatIp(ip), ...(endpoint.zone ? { zone: endpoint.zone } : {}) });
  }
  return endpoints;
}

function listOf<T>(list: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(list) ? list : [];
}

function quoted(value: unknown): string {
  return (JSON.stringify(value) ?? 'undefined').slice(0, 80);
}
