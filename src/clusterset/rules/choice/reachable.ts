// Which endpoints a client reaches: those of its own network directly, those of another network through the gateways of their
// cluster, or not at all and why. Pure.

import type { SetNetworks } from '../networks/networks.ts';

export interface Reachable {
  readonly cluster: string;
  /** Its cluster lies in another network: it has no address here. */
  readonly isBehindGateway?: boolean;
  /** It has a virtual address here, which leads through the gateway. */
  readonly hasVirtualAddress?: boolean;
}

/** Ways of one client to other networks. */
export interface Ways {
  readonly networks: SetNetworks;
  /** Why this client does not use the gateways of that cluster; undefined if it does. */
  readonly gatewayProblem: (cluster: string) => string | undefined;
  /** It takes addresses, and connects to virtual ones like to others. */
  readonly usesVirtualAddresses?: boolean;
}

/** An endpoint that is reached through the gateways of the cluster named by `via`, or directly. */
export type Chosen<T> = T & { readonly via?: string };

/** Ready endpoints of one cluster that a client does not use. */
export interface LeftOut {
  readonly cluster: string;
  readonly count: number;
  readonly why: string;
}

interface Reached<T> {
  readonly reached: readonly Chosen<T>[];
  readonly leftOut: readonly LeftOut[];
}

export function reachable<T extends Reachable>(ready: readonly T[], ways: Ways): Reached<T> {
  const { networks, gatewayProblem, usesVirtualAddresses = false } = ways;
  const isElsewhere = ({ cluster, isBehindGateway }: T) => isBehindGateway === true || networks.clusters.has(cluster);
  if (!ready.some(isElsewhere)) return { reached: ready, leftOut: [] };
  const problems = new Map<string, string | undefined>();
  const lost = new Map<string, number>();
  const reached: Chosen<T>[] = [];
  for (const endpoint of ready) {
    if (!isElsewhere(endpoint)) {
      reached.push(endpoint);
      continue;
    }
    const { cluster } = endpoint;
    if (usesVirtualAddresses && endpoint.hasVirtualAddress && unreached(cluster, networks) === undefined) {
      reached.push({ ...endpoint, via: cluster });
      continue;
    }
    if (!problems.has(cluster)) problems.set(cluster, unreached(cluster, networks) ?? gatewayProblem(cluster));
    if (problems.get(cluster) === undefined) reached.push({ ...endpoint, via: cluster });
    else lost.set(cluster, (lost.get(cluster) ?? 0) + 1);
  }
  return {
    reached,
    leftOut: Array.from(lost, ([cluster, count]) => ({ cluster, count, why: problems.get(cluster)! })),
  };
}

/** Why no client here reaches a cluster of another network; undefined if it has gateways to go by. */
function unreached(cluster: string, { clusters }: SetNetworks): string | undefined {
  const reach = clusters.get(cluster);
  if (reach === undefined) return 'it was in another network, and whether it still is has not been read yet';
  const isUsable = reach.gateways.length > 0 && reach.listenerPort !== undefined && reach.trustRoots.length > 0;
  return isUsable ? undefined : (reach.problem ?? 'no gateway published');
}

/** For clients that take addresses and speak no tunnel. */
export function speaksNoTunnel(): string {
  return 'it is in another network, and this client needs addresses of its own network';
}
