// How a cluster reaches the others, from what its own home holds: the networks that its agent wrote, and the Leases of its
// xDS servers and node proxies. Pure.

import type { ConfigMap } from '../../kube/objects/config-map.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { partLabel, partState } from '../../kube/objects/part-lease.ts';
import { gatewayChecks } from '../../kube/objects/reports/gateway-checks.ts';
import { unreachedIn } from '../../kube/objects/reports/unreached.ts';
import { readLocality } from '../rules/locality.ts';
import { readNetworks } from '../rules/networks/networks.ts';
import { type PairReach, pairsFrom } from '../rules/networks/pairs.ts';

export interface ReachFacts {
  readonly self: string;
  /** The ConfigMap with the options of the set; undefined if there is none. */
  readonly options: ConfigMap | undefined;
  readonly leases: readonly Lease[];
  readonly nowMs: number;
  readonly older?: ReadonlySet<string>;
}

export function pairsAtHome({ self, options, leases, nowMs, older }: ReachFacts): PairReach[] {
  const proxies = leases.filter(
    (lease) => lease.metadata.labels?.[partLabel] === 'proxy' && partState(lease, nowMs).kind === 'reported',
  );
  return pairsFrom({
    ...{ self, older },
    clusters: readLocality(options ?? {}).clusters.keys(),
    networks: readNetworks(options ?? {}),
    gatewayChecks: gatewayChecks(leases, nowMs),
    unreachedFrom: unreachedIn(proxies),
  });
}
