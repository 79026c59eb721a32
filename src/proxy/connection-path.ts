// The path of one connection to a clusterset address, as the proxy of a node chooses it: to which clusters with which shares,
// and over which hops. Pure.

import { formatHostPort } from '../base/net/host-port.ts';
import type { Backend, PortChoice } from './port-choice.ts';
import type { ProxyState } from './state.ts';

export interface ConnectionPath {
  /** `namespace/name` of the import that has the address. */
  readonly service: string;
  readonly from: string;
  /** Undefined if the service has no such port, or the address is not served. */
  readonly port?: PathPort;
  /** What keeps endpoints or the address from being used. */
  readonly problems: readonly string[];
}

interface PathPort {
  readonly protocol: string;
  readonly port: number;
  readonly ways: readonly PathWay[];
  /** Ready endpoints that get no connections now: nearer or preferred ones are used. */
  readonly later: readonly { readonly cluster: string; readonly endpoints: number }[];
}

interface PathWay {
  readonly cluster: string;
  /** Part of all new connections, 0 to 1. */
  readonly share: number;
  readonly endpoints: number;
  readonly way: 'directly' | 'gateway';
  /** From the node on. */
  readonly hops: readonly string[];
}

/** In place of the node's address, which the state is given: every node has its own. */
export const anyNode = 'node';
const addressesMax = 3;

/** What `state` chooses; its near side names `anyNode` as the address of the node. */
export function connectionPath(state: ProxyState, service: string, to: PathDestination): ConnectionPath {
  const { ports, problems } = state.choiceOf(service);
  const fitting = ports.filter(({ ip, port }) => ip === to.ip && port === to.port);
  const choice = fitting.find(({ protocol }) => protocol === (to.protocol ?? 'TCP')) ?? fitting[0];
  const { cluster: from } = state.view.self;
  if (choice === undefined) return { service, from, problems: [...problems, ...missingPort(ports, to)] };
  const { protocol, port } = choice;
  const later = countBy((choice.later ?? []).flat());
  return {
    ...{ service, from, problems },
    port: {
      ...{ protocol, port },
      ways: waysOf(choice, state, to),
      later: [...later].map(([cluster, endpoints]) => ({ cluster, endpoints })),
    },
  };
}

export interface PathDestination {
  /** In its shortest form. */
  readonly ip: string;
  readonly port: number;
  readonly protocol?: string;
}

function missingPort(ports: readonly PortChoice[], { ip, port }: PathDestination): string[] {
  const own = ports.filter((each) => each.ip === ip).map((each) => `${each.port}/${each.protocol}`);
  return own.length === 0 ? [] : [`the service has no port ${port}; it has ${own.join(', ')}`];
}

function waysOf({ backends, lots }: PortChoice, state: ProxyState, to: PathDestination): PathWay[] {
  const shares = new Map<string, number>();
  for (const { share, endpoints } of lots ?? [{ share: 1, endpoints: backends }])
    for (const { cluster } of endpoints) shares.set(cluster, (shares.get(cluster) ?? 0) + share / endpoints.length);
  const whole = [...shares.values()].reduce((sum, share) => sum + share, 0);
  return [...Map.groupBy(backends, ({ cluster }) => cluster)].map(([cluster, own]) => ({
    ...{ cluster, share: shares.get(cluster)! / whole, endpoints: own.length },
    way: own[0]!.via === undefined ? 'directly' : 'gateway',
    hops: own[0]!.via === undefined ? [addressesOf(own)] : hopsThrough(own[0]!, state, to),
  }));
}

function addressesOf(own: readonly Backend[]): string {
  const some = own.slice(0, addressesMax).map(({ address, port }) => formatHostPort(address, port));
  return `${some.join(', ')}${own.length > some.length ? ` and ${own.length - some.length} more` : ''}`;
}

function hopsThrough(backend: Backend, { view }: ProxyState, to: PathDestination): string[] {
  const { cluster, port, isAskedByName, isOneEndpoint } = backend;
  const asked = isOneEndpoint ? 'that endpoint' : 'the service';
  const { gateways, network } = view.networks.clusters.get(cluster)!;
  const addresses = gateways.map((gateway) => formatHostPort(gateway.address, gateway.port));
  return [
    `Envoy of the client's node, port ${port}`,
    `gateway ${addresses.join(' or ')} of network ${network}, over mutual TLS that only ${cluster} can answer; asked for ${isAskedByName ? `${asked} by its name, port ${to.port}` : formatHostPort(to.ip, to.port)}`,
    isOneEndpoint ? `that endpoint of ${cluster}` : `a ready endpoint of ${cluster}, which its gateway chooses`,
  ];
}

function countBy(endpoints: readonly { readonly cluster: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { cluster } of endpoints) counts.set(cluster, (counts.get(cluster) ?? 0) + 1);
  return counts;
}
