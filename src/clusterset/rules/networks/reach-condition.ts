// The condition ClustersReached of an import: by which way connections reach each of its clusters, or why they do not. Only of
// imports with clusters in other networks. Pure.

import type { WantedCondition } from '../../../kube/objects/conditions.ts';
import type { ClusterReach, SetNetworks } from './networks.ts';
import { type UdpWay, udpWaysMax } from './udp-ways.ts';
import { virtualEndpointsMax } from './virtual-endpoints.ts';

export const reachCondition = 'ClustersReached';

export interface ReachFacts {
  readonly networks: SetNetworks;
  /** Clusters of the import. */
  readonly clusters: readonly string[];
  /** Exposed ports of the import. */
  readonly ports: readonly { readonly port: number; readonly protocol: string }[];
  /** Where its address comes from; `none` also for headless services. */
  readonly source: 'allocate' | 'derived' | 'none';
  /** Clusters that have another clusterset address for it: their gateways are asked by name. */
  readonly otherAddress: ReadonlySet<string>;
  /** Clusters that are never used here, and the policy that says so. */
  readonly excluded?: { readonly clusters: ReadonlySet<string>; readonly by: string };
  /** How many ready endpoints each cluster has. */
  readonly endpoints?: ReadonlyMap<string, number>;
  /** Of headless services whose endpoints in other networks have virtual addresses: how many ready ones have none, by cluster. */
  readonly beyondBounds?: ReadonlyMap<string, number> | undefined;
  /** Nothing here carries those addresses. */
  readonly isWithoutProxy?: boolean;
  /** Its UDP ports that are carried between networks; absent where no policy wants that. */
  readonly udp?: readonly UdpWay[] | undefined;
  /** Nodes that have reported that they cannot reach a cluster, by cluster. */
  readonly unreachedFrom: ReadonlyMap<string, readonly string[]>;
  /** Why no gateway of a cluster takes connections of this one, as it was tried; empty where one does. */
  readonly gatewayChecks: ReadonlyMap<string, string>;
}

/** So many clusters and nodes are named. */
const clustersMax = 50;
const nodesMax = 5;

/** Undefined if all clusters are in this network. */
export function clustersReached(facts: ReachFacts): WantedCondition | undefined {
  const { networks, clusters } = facts;
  if (!clusters.some((cluster) => networks.clusters.has(cluster))) return undefined;
  const ways = clusters.map((cluster) => ({ cluster, ...wayTo(cluster, facts) }));
  const shown = ways.slice(0, clustersMax).map(({ cluster, text }) => `${cluster}: ${text}`);
  const more = ways.length > clustersMax ? `; and ${ways.length - clustersMax} more` : '';
  const message = `${shown.join('; ')}${more}`;
  const isAll = ways.every(({ isReached }) => isReached);
  const [status, reason] = isAll ? (['True', 'Reached'] as const) : (['False', 'NotAllReached'] as const);
  return { type: reachCondition, status, reason, message };
}

interface Way {
  readonly text: string;
  readonly isReached: boolean;
}

function wayTo(cluster: string, facts: ReachFacts): Way {
  const { networks, ports, otherAddress, unreachedFrom, excluded, gatewayChecks } = facts;
  const reach = networks.clusters.get(cluster);
  if (reach === undefined) return { text: 'directly', isReached: true };
  // As it is wanted here.
  if (excluded?.clusters.has(cluster))
    return { text: `not used, it is in network ${reach.network}: left out by ${excluded.by}`, isReached: true };
  const problem = gatewayProblem(reach) ?? sourceProblem(cluster, facts) ?? (gatewayChecks.get(cluster) || undefined);
  if (problem !== undefined)
    return { text: `not reached, it is in network ${reach.network}: ${problem}`, isReached: false };
  const lost = ports.flatMap((port) => lossOf(port, cluster, facts) ?? []);
  if (ports.length > 0 && lost.length === ports.length)
    return { text: `not reached, it is in network ${reach.network}: ${lost.join(', ')}`, isReached: false };
  const nodes = unreachedFrom.get(cluster) ?? [];
  const beyond = facts.beyondBounds?.get(cluster) ?? 0;
  const notes = [
    ...(beyond > 0 ? [beyondText(beyond)] : []),
    ...(otherAddress.has(cluster) ? ['asked by name: it has another clusterset address for this service'] : []),
    ...lost,
    ...(nodes.length > 0 ? [`not from ${nodesText(nodes)}, where no Envoy accepts connections to it`] : []),
    ...(reach.problem === undefined ? [] : [reach.problem]),
  ];
  const text = [`through ${gatewaysText(reach)}`, ...notes].join(', ');
  return { text, isReached: lost.length === 0 && nodes.length === 0 && beyond === 0 };
}

/** Why a port is not carried between networks; undefined if it is. */
function lossOf(
  { port, protocol }: ReachFacts['ports'][number],
  cluster: string,
  { udp, source }: ReachFacts,
): string | undefined {
  if (protocol === 'TCP') return undefined;
  const lost = `${protocol} port ${port} is not carried between networks`;
  if (protocol !== 'UDP') return lost;
  if (source === 'none') return `${lost} for headless services`;
  if (udp === undefined) return `${lost}, unless a ServiceImportPolicy has udp: Any`;
  const isCarried = udp.some((way) => way.cluster === cluster && way.port === port);
  return isCarried ? undefined : `${lost}: all ${udpWaysMax} ways for UDP are taken`;
}

/** Why there is no gateway to try. */
export function gatewayProblem({ gateways, trustRoots, problem }: ClusterReach): string | undefined {
  return gateways.length > 0 && trustRoots.length > 0 ? undefined : (problem ?? 'no gateway published');
}

const sourceProblems: Readonly<Record<ReachFacts['source'], string | undefined>> = {
  allocate: undefined,
  derived: 'the address of the import is that of a derived Service, whose data plane does not use gateways',
  none: 'the import has no address, and the endpoints of another network have none here',
};

/** Headless services: each endpoint would need an address of its own here. */
function sourceProblem(cluster: string, facts: ReachFacts): string | undefined {
  const { source, endpoints, beyondBounds, isWithoutProxy = false } = facts;
  if (source === 'none' && beyondBounds?.has(cluster)) return isWithoutProxy ? notCarried : undefined;
  const problem = sourceProblems[source];
  const count = endpoints?.get(cluster);
  if (source !== 'none' || count === undefined) return problem;
  return `${problem}; ${count} ready endpoint${count === 1 ? ' is' : 's are'} not reached`;
}

const notCarried =
  'its endpoints have virtual addresses here, and no portolan proxy carries them: run one on each node';

function beyondText(count: number): string {
  const are = `${count} ready endpoint${count === 1 ? ' is' : 's are'}`;
  return `${are} not reached: ${virtualEndpointsMax} of a headless service in one cluster have addresses here, while the range has some`;
}

function gatewaysText({ gateways, network }: ClusterReach): string {
  return `${gateways.length === 1 ? 'a gateway' : `${gateways.length} gateways`} of network ${network}`;
}

function nodesText(nodes: readonly string[]): string {
  const more = nodes.length > nodesMax ? ` and ${nodes.length - nodesMax} more` : '';
  return `node${nodes.length === 1 ? '' : 's'} ${nodes.slice(0, nodesMax).join(', ')}${more}`;
}
