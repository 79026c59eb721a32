// How this cluster reaches each other cluster of the set: directly, through gateways, or not at all and why. As commands and
// pages show it. Pure.

import { formatHostPort } from '../../../base/net/host-port.ts';
import type { SetNetworks } from './networks.ts';
import { gatewayProblem } from './reach-condition.ts';

export interface PairReach {
  /** The other cluster. */
  readonly cluster: string;
  readonly way: 'directly' | 'gateway' | 'none';
  /** In words, with the reason where it is not well. */
  readonly text: string;
  readonly isWell: boolean;
}

export interface PairFacts {
  /** This cluster. */
  readonly self: string;
  /** All clusters of the set. */
  readonly clusters: Iterable<string>;
  readonly networks: SetNetworks;
  /** Why no gateway of a cluster takes our connections, as xDS servers tried it; empty where one does. */
  readonly gatewayChecks: ReadonlyMap<string, string>;
  /** Nodes whose proxies cannot hand connections to a cluster on. */
  readonly unreachedFrom: ReadonlyMap<string, readonly string[]>;
  /** Clusters whose agents know no networks. */
  readonly older?: ReadonlySet<string>;
}

const nodesMax = 5;

/** None where all clusters share one network: then there is nothing to say. */
export function pairsFrom(facts: PairFacts): PairReach[] {
  const { self, networks } = facts;
  if (networks.clusters.size === 0) return [];
  const others = new Set([...facts.clusters, ...networks.clusters.keys()]);
  others.delete(self);
  return [...others].sort().map((cluster) => pairOf(cluster, facts));
}

function pairOf(cluster: string, { networks, gatewayChecks, unreachedFrom, older }: PairFacts): PairReach {
  const reach = networks.clusters.get(cluster);
  if (reach === undefined)
    return { cluster, way: 'directly', text: `directly, both are in network ${networks.own}`, isWell: true };
  const skew = older?.has(cluster) ? '; its agent is of a release that knows no networks: upgrade it' : '';
  const none = (why: string): PairReach => ({
    ...{ cluster, way: 'none', isWell: false, text: `not at all, it is in network ${reach.network}: ${why}${skew}` },
  });
  const missing = gatewayProblem(reach);
  if (missing !== undefined) return none(missing);
  const tried = gatewayChecks.get(cluster);
  if (tried !== undefined && tried !== '') return none(tried);
  const addresses = reach.gateways.map(({ address, port }) => formatHostPort(address, port)).join(', ');
  const through = `through gateway ${addresses} of network ${reach.network}`;
  const nodes = unreachedFrom.get(cluster) ?? [];
  const more = nodes.length > nodesMax ? ` and ${nodes.length - nodesMax} more` : '';
  const named =
    nodes.length === 0
      ? ''
      : `, but not from ${nodes.slice(0, nodesMax).join(', ')}${more}: no Envoy there carries connections to it`;
  const untried = tried === undefined ? ' (no xDS server of this cluster has tried it)' : '';
  return {
    cluster,
    way: 'gateway',
    text: `${through}${untried}${named}${skew}`,
    isWell: nodes.length === 0 && skew === '',
  };
}
