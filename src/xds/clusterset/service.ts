// The part of an imported service that xDS resources are made of. Pure.

import { formatAddress } from '../../base/net/ip.ts';
import type { NamedSlice, OwnerFacts } from '../../catalog/facts/facts.ts';
import { type Target, targetsOf } from '../../catalog/facts/targets.ts';
import { type Routing, readRouting } from '../../clusterset/rules/routing/routing.ts';

export interface ServicePort {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly port: number;
  readonly appProtocol: string;
}

export interface ClustersetService {
  readonly namespace: string;
  readonly name: string;
  readonly isHeadless: boolean;
  readonly ips: readonly string[];
  /** TCP only: xDS balances nothing else. */
  readonly ports: readonly ServicePort[];
  /** Numbers of its UDP ports, which gateways carry. */
  readonly udpPorts: readonly number[];
  readonly trafficDistribution: string | undefined;
  readonly routing: Routing;
  /** Endpoints behind a port that are ready, or those that are not, in an order that the order of slices does not change. */
  readonly targetsOf: (port: ServicePort, areReady?: boolean) => readonly Target[];
}

/** `key` is `namespace/name`. */
export function clustersetServiceOf(key: string, owner: OwnerFacts, slices: readonly NamedSlice[]): ClustersetService {
  const slash = key.indexOf('/');
  return {
    namespace: key.slice(0, slash),
    name: key.slice(slash + 1),
    isHeadless: owner.kind === 'Headless',
    ips: owner.ips.map((ip) => formatAddress(ip)),
    ports: owner.ports
      .map(({ name, protocol, port }, index) => ({
        name,
        protocol,
        port,
        appProtocol: owner.traffic?.appProtocols[index] ?? '',
      }))
      .filter(({ protocol }) => protocol === 'TCP')
      .sort((one, other) => one.port - other.port),
    udpPorts: owner.ports
      .filter(({ protocol }) => protocol === 'UDP')
      .map(({ port }) => port)
      .sort((one, other) => one - other),
    trafficDistribution: owner.trafficDistribution || undefined,
    routing: readRouting(owner.routing),
    targetsOf: ({ name }, areReady) => targetsOf({ port: { name, protocol: 'TCP' }, slices, areReady }).sort(byAddress),
  };
}

function byAddress(one: Target, other: Target): number {
  return `${one.address} ${one.port}` < `${other.address} ${other.port}` ? -1 : 1;
}
