// The addresses that a record may give for its service, cluster IPs and load balancers alike, by the one address
// rule: for exporters and readers. Pure.

import { isReady } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import type { LoadBalancerAddress, ServiceShardSpec } from '../kinds/service-shard.ts';
import { type AddressRules, refusal } from './endpoint-address.ts';
import type { PublishedSlice } from './plan-export-slices.ts';

export interface ShardAddresses {
  readonly clusterIPs: readonly string[];
  readonly loadBalancer: readonly LoadBalancerAddress[];
  /** Addresses left out, and why, for people. */
  readonly notes: readonly string[];
}

/** As the definition has it. */
const loadBalancersMax = 64;

export function usableAddresses(
  { clusterIPs, loadBalancer }: Pick<ServiceShardSpec, 'clusterIPs' | 'loadBalancer'>,
  rules: AddressRules,
): ShardAddresses {
  const notes: string[] = [];
  const isUsable = (what: string, address: string) => {
    const why = refusal(address, rules);
    // A plan may not know the address yet, and otherwise it is in the Service.
    if (why !== undefined) notes.push(`${what} left out: ${why}`);
    return why === undefined;
  };
  return {
    clusterIPs: (clusterIPs ?? []).filter((address) => isUsable('cluster IP', address)),
    loadBalancer: (loadBalancer ?? [])
      .slice(0, loadBalancersMax)
      .filter(({ ip }) => !ip || isUsable('load balancer address', ip)),
    notes,
  };
}

const localAddressesMax = 16;

export interface LocalFacts {
  readonly service: Service;
  /** Clusterset IPs that something in this cluster carries. */
  readonly carriedIps: readonly string[];
  readonly addresses: Pick<ShardAddresses, 'loadBalancer'>;
  readonly slices: readonly PublishedSlice[];
}

/**
 * Where clients in a cluster reach a service of that same cluster, if nothing routes its cluster IP: at the clusterset IP
 * if it is carried there, else at the load balancer, else at the ready endpoints.
 */
export function localAddresses({ service, carriedIps, addresses, slices }: LocalFacts): string[] {
  const balancers = addresses.loadBalancer.flatMap(({ ip }) => ip ?? []);
  const found = [carriedIps, balancers].find((ips) => ips.length > 0) ?? endpointsOf(service, slices);
  return [...new Set(found)].slice(0, localAddressesMax);
}

/** An address alone says no port: endpoints that listen on other ports than the service would be refused there. */
function endpointsOf({ spec }: Service, slices: readonly PublishedSlice[]): string[] {
  const ports = spec?.ports ?? [];
  return slices.flatMap((slice) => {
    const hasSamePorts = ports.every(({ name = '', port }) =>
      slice.ports.some((one) => (one.name ?? '') === name && one.port === port),
    );
    return hasSamePorts ? slice.endpoints.filter(isReady).flatMap(({ addresses }) => addresses ?? []) : [];
  });
}
