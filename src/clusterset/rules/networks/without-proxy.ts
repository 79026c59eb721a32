// The condition ReachedWithoutProxy of an import: whether clients that take addresses and connect by themselves (gRPC by xDS without a
// proxy) get endpoints of all its clusters. They speak no tunnel, so those of other networks are left out for them. Only of
// imports with clusters in other networks. Pure.

import type { WantedCondition } from '../../../kube/objects/conditions.ts';
import type { ReachFacts } from './reach-condition.ts';

export const withoutProxyCondition = 'ReachedWithoutProxy';

/** So many clusters are named. */
const clustersMax = 50;

/** Undefined if all clusters are in this network, or if it has no port that such clients use. */
export function reachedWithoutProxy({
  networks,
  clusters,
  ports,
  excluded,
}: Pick<ReachFacts, 'networks' | 'clusters' | 'ports' | 'excluded'>): WantedCondition | undefined {
  const used = clusters.filter((cluster) => !excluded?.clusters.has(cluster));
  const elsewhere = used.filter((cluster) => networks.clusters.has(cluster));
  if (elsewhere.length === 0 || !ports.some(({ protocol }) => protocol === 'TCP')) return undefined;
  const here = used.filter((cluster) => !networks.clusters.has(cluster));
  const left = `${named(elsewhere)} ${elsewhere.length === 1 ? 'is in another network' : 'are in other networks'}`;
  const [reason, gets] =
    here.length === 0 ? ['NoCluster', 'no endpoints'] : ['SomeClusters', `the endpoints of ${named(here)} alone`];
  const message = `gRPC clients without a proxy get ${gets}: ${left}, and they do not go through gateways`;
  return { type: withoutProxyCondition, status: 'False', reason, message };
}

function named(clusters: readonly string[]): string {
  const more = clusters.length > clustersMax ? ` and ${clusters.length - clustersMax} more` : '';
  return `${clusters.slice(0, clustersMax).join(', ')}${more}`;
}
