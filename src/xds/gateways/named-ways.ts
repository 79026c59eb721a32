// Connections for which a gateway has to be asked by name: the exporting cluster has another clusterset address for the service
// than this one, or it is one endpoint of a headless service that is wanted. Each has a filter chain of its own in a listener that has no others: a connection without one is closed, and never
// asks by an address that may be another service's there. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import { formatAddress, parseIp } from '../../base/net/ip.ts';
import { hasVirtualAddress, type NamedSlice, type OwnerFacts } from '../../catalog/facts/facts.ts';
import { familyOf } from '../../catalog/facts/targets.ts';
import { namedListenerPort } from '../../clusterset/rules/networks/listener-ports.ts';
import { anyAddress, listenAddress } from '../bodies.ts';
import type { XdsResource } from '../resource.ts';
import { authorityOf, endpointHost } from './names.ts';
import { nearSideName, originalDestination, type RemoteCluster, tunnel } from './near-side.ts';

export interface NamedWay {
  /** `namespace/name` of the import. */
  readonly service: string;
  readonly cluster: string;
  /** What the client connects to. */
  readonly address: string;
  readonly port: number;
  /** What the gateway is asked for. */
  readonly authority: string;
}

export interface NamedService {
  /** `namespace/name` of the import. */
  readonly key: string;
  readonly owner: OwnerFacts;
  readonly slices: readonly NamedSlice[];
  /** The zone of clusterset names. */
  readonly domain: string;
}

/** Also those without a ready endpoint: what is ready changes more often than who has which address. */
export function namedWaysOf({ key, owner, slices, domain }: NamedService): NamedWay[] {
  const [namespace, name] = (owner.traffic?.importedFrom || key).split('/');
  const host = `${name}.${namespace}.svc.${domain}`;
  const ways = owner.kind === 'Headless' ? endpointWays(slices, host) : serviceWays(owner, slices, host);
  return ways.map((way) => ({ ...way, service: key }));
}

/** To each endpoint of a headless service, at the ports that it listens on. */
function endpointWays(slices: readonly NamedSlice[], host: string): Omit<NamedWay, 'service'>[] {
  return slices.flatMap(({ cluster, ports, endpoints }) =>
    endpoints.filter(hasVirtualAddress).flatMap(({ address, hostname }) =>
      ports
        .filter(({ protocol }) => protocol === 'TCP')
        .map(({ port }) => {
          const authority = authorityOf(endpointHost({ label: hostname, cluster }, host), port);
          return { cluster, address: formatAddress(address), port, authority };
        }),
    ),
  );
}

function serviceWays(owner: OwnerFacts, slices: readonly NamedSlice[], host: string): Omit<NamedWay, 'service'>[] {
  const ports = new Set(owner.ports.filter(({ protocol }) => protocol === 'TCP').map(({ port }) => port));
  return owner.ips.flatMap((ip) => {
    const family = familyOf(ip);
    const clusters = slices
      .filter(({ endpoints }) => endpoints.some((each) => each.isAskedByName && each.behindGateway === family))
      .map(({ cluster }) => cluster);
    return [...new Set(clusters)].flatMap((cluster) =>
      [...ports].map((port) => ({ cluster, address: formatAddress(ip), port, authority: authorityOf(host, port) })),
    );
  });
}

/** A listener with more chains would take Envoy seconds. */
export const namedWaysMax = 10_000;
/** Envoy reads it as a format, and refuses the whole listener for one that makes no sense. */
const authorityPattern = /^[a-z0-9.-]+:\d+$/;

/** None without ways. */
export function namedWaysResources(
  remote: Pick<RemoteCluster, 'id' | 'listenerPort'>,
  ways: Iterable<NamedWay>,
  address = anyAddress,
): XdsResource[] {
  const { carried } = namedWays(ways);
  if (carried.length === 0) return [];
  const name = `gateway-names/${remote.id}`;
  const body = {
    name,
    address: listenAddress(address, namedListenerPort(remote.listenerPort)),
    listener_filters: [originalDestination()],
    filter_chains: carried.map((way) => chainOf(nearSideName(remote.id), way)),
  };
  return [{ type: 'listener', name, body, causes: [] }];
}

/** Of two ways from one address and port the last one counts; those beyond the bound have none. */
export function namedWays(ways: Iterable<NamedWay>): { readonly carried: NamedWay[]; readonly beyond: NamedWay[] } {
  const byAddress = new Map<string, NamedWay>();
  for (const way of [...ways].filter(isWay).sort(byDestination)) byAddress.set(authorityOf(way.address, way.port), way);
  const all = [...byAddress.values()];
  return { carried: all.slice(0, namedWaysMax), beyond: all.slice(namedWaysMax) };
}

function isWay({ address, authority }: NamedWay): boolean {
  return parseIp(address) !== undefined && authorityPattern.test(authority);
}

function byDestination(one: NamedWay, other: NamedWay): number {
  const [a, b] = [one, other].map((way) => `${authorityOf(way.address, way.port)} ${way.authority}`);
  return a! < b! ? -1 : 1;
}

function chainOf(cluster: string, { address, port, authority }: NamedWay): JsonObject {
  const { family } = parseIp(address)!;
  return {
    name: authorityOf(address, port),
    filter_chain_match: {
      destination_port: port,
      prefix_ranges: [{ address_prefix: address, prefix_len: family === 'IPv4' ? 32 : 128 }],
    },
    filters: [tunnel(cluster, authority)],
  };
}
