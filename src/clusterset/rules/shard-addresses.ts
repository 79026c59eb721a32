// The addresses that a record may give for its service, cluster IPs and load balancers alike, by the one address
// rule: for exporters and readers. Pure.

import type { LoadBalancerAddress, ServiceShardSpec } from '../kinds/service-shard.ts';
import { type AddressRules, refusal } from './endpoint-address.ts';

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
