// The part of a clusterset service that xDS resources are made of, from its ServiceImport and its slices. Pure. Values
// from outside that make no sense are left out.

import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import { type EndpointSlice, isReady, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';

export interface ServicePort {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly port: number;
  readonly appProtocol: string;
}

export interface ServiceEndpoint {
  readonly address: string;
  readonly port: number;
  readonly cluster: string;
  readonly zone: string;
}

export interface ClustersetService {
  readonly namespace: string;
  readonly name: string;
  readonly ips: readonly string[];
  /** TCP only: xDS balances nothing else. */
  readonly ports: readonly ServicePort[];
  readonly trafficDistribution: string | undefined;
  /** Ready endpoints by the name of their port. */
  readonly endpoints: ReadonlyMap<string, readonly ServiceEndpoint[]>;
}

const endpointsMax = 20_000;

export function clustersetServiceOf(object: ServiceImport, slices: readonly EndpointSlice[]): ClustersetService {
  const { metadata, spec } = object;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    ips: listOf(spec?.ips).flatMap((text) => addressIn(text)),
    ports: portsOf(spec?.ports),
    trafficDistribution: spec?.trafficDistribution,
    endpoints: endpointsOf(slices),
  };
}

function portsOf(ports: ServiceImport['spec']['ports']): ServicePort[] {
  return listOf(ports)
    .filter(({ protocol = 'TCP', port }) => protocol === 'TCP' && isPort(port))
    .map(({ name = '', port, appProtocol = '' }) => ({ name, port, appProtocol }))
    .sort((one, other) => one.port - other.port);
}

export function endpointsOf(slices: readonly EndpointSlice[]): Map<string, ServiceEndpoint[]> {
  const found = new Map<string, Map<string, ServiceEndpoint>>();
  let count = 0;
  for (const slice of slices) {
    const cluster = slice.metadata.labels?.[sourceClusterLabel] ?? '';
    if (slice.addressType === 'FQDN') continue;
    for (const { name = '', port, protocol = 'TCP' } of listOf(slice.ports)) {
      if (protocol !== 'TCP' || !isPort(port)) continue;
      const byAddress = found.get(name) ?? new Map<string, ServiceEndpoint>();
      found.set(name, byAddress);
      for (const endpoint of listOf(slice.endpoints)) {
        if (!endpoint || !isReady(endpoint) || count >= endpointsMax) continue;
        // All addresses of one endpoint are alike; the first is the one to use.
        const [address] = addressIn(listOf(endpoint.addresses)[0]);
        if (address === undefined) continue;
        count += 1;
        byAddress.set(`${address} ${port}`, { address, port: port!, cluster, zone: endpoint.zone ?? '' });
      }
    }
  }
  return new Map([...found].map(([name, byAddress]) => [name, inOrder(byAddress)]));
}

// The order of slices and of endpoints in them must not show in the bytes.
function inOrder(byAddress: ReadonlyMap<string, ServiceEndpoint>): ServiceEndpoint[] {
  return [...byAddress].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, endpoint]) => endpoint);
}

export function isPort(port: unknown): port is number {
  return Number.isInteger(port) && (port as number) > 0 && (port as number) < 65_536;
}

export function addressIn(text: unknown): string[] {
  const ip = typeof text === 'string' ? parseIp(text) : undefined;
  return ip === undefined ? [] : [formatIp(ip)];
}

export function listOf<T>(list: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(list) ? list : [];
}
