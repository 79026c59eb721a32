// Where this node is and which endpoints it can use, from flags and from what the home says. Pure.

import { type IpRange, isInRange, parseIp, parseRange } from '../base/net/ip.ts';
import { refusedRange } from '../base/net/special-ranges.ts';
import type { SetAccess } from '../clusterset/rules/access/set-access.ts';
import type { Callers } from '../clusterset/rules/exports/callers.ts';
import { type SetLocality, unknownLocality } from '../clusterset/rules/locality.ts';
import { oneNetwork, type SetNetworks } from '../clusterset/rules/networks/networks.ts';
import type { Node } from '../kube/objects/node.ts';
import type { View } from './choose.ts';
import { internalAddresses } from './node-addresses.ts';

export interface ViewInput {
  /** From the flag, else from the ClusterProperty; empty if neither says. */
  readonly cluster: string;
  readonly zone?: string;
  readonly region?: string;
  readonly locality: SetLocality;
  readonly networks: SetNetworks;
  /** Undefined until the home has said it: what was enforced before stays. */
  readonly access?: SetAccess;
  /** As ServiceAccessPolicies have them. */
  readonly callers?: Callers;
  /** Pod ranges of this node; those of the Node object if none are given. */
  readonly nodeRanges: readonly IpRange[];
  readonly node?: Node;
  /** Ranges of clusterset addresses. */
  readonly ranges: readonly IpRange[];
  /** Ranges of this cluster's own Services. */
  readonly serviceRanges: readonly IpRange[];
  /** Cluster IPs of this cluster's own Services are carried here too. */
  readonly carriesServices?: boolean;
  /** Userspace mode: the kernel does not translate, so loopback endpoints and own cluster IPs can be used. */
  readonly isUserspace: boolean;
}

export const emptyViewInput: ViewInput = {
  cluster: '',
  locality: unknownLocality,
  networks: oneNetwork,
  nodeRanges: [],
  ranges: [],
  serviceRanges: [],
  isUserspace: false,
};

const zoneLabel = 'topology.kubernetes.io/zone';
const regionLabel = 'topology.kubernetes.io/region';

export function viewOf(input: ViewInput): View {
  const { cluster, locality, node } = input;
  const place = locality.clusters.get(cluster);
  const ofNode = node?.metadata.labels ?? {};
  const ranges = input.nodeRanges.length > 0 ? input.nodeRanges : rangesOf(node);
  return {
    self: {
      cluster,
      zone: input.zone ?? ofNode[zoneLabel] ?? place?.zone,
      region: input.region ?? ofNode[regionLabel] ?? place?.region,
    },
    locality,
    networks: input.networks,
    internalAddresses: internalAddresses(node),
    ...(input.isUserspace ? { noGateways: 'userspace mode carries nothing between networks' } : {}),
    serves: (ip) => isIn(ip, input.ranges),
    ...(input.carriesServices ? { servesOwn: (ip: string) => isIn(ip, input.serviceRanges) } : {}),
    refusal: refusalOf(input),
    ...(ranges.length === 0 ? {} : { isOnNode: (address: string) => isIn(address, ranges) }),
  };
}

function rangesOf(node: Node | undefined): IpRange[] {
  const pods = node?.spec?.podCIDRs ?? [];
  if (pods.length === 0) return [];
  const addresses = (node?.status?.addresses ?? []).map(({ address }) => address);
  return [...pods, ...addresses].map(parseRange).filter((range) => range !== undefined);
}

function refusalOf({ cluster, ranges, serviceRanges, isUserspace }: ViewInput): View['refusal'] {
  const known = new Map<string, string | undefined>();
  const judge = (address: string, ofCluster: string): string | undefined => {
    const ip = parseIp(address);
    if (ip === undefined) return `endpoint ${address} is no IP address`;
    if (ranges.some((range) => isInRange(ip, range))) return `endpoint ${address} is itself a clusterset address`;
    if (isUserspace) return undefined;
    const special = refusedRange(ip);
    if (special !== undefined) return `endpoint ${address} is ${special.what}, which the kernel cannot forward to`;
    if (ofCluster === cluster && serviceRanges.some((range) => isInRange(ip, range)))
      return `endpoint ${address} is a cluster IP of this cluster, and a packet is translated only once: set endpoints: Pods or clusterSetIP: derived in the ClusterSet`;
    return undefined;
  };
  return (address, ofCluster) => {
    // The answer depends on the cluster only in that it is this one or not.
    const key = ofCluster === cluster ? `.${address}` : address;
    if (known.has(key)) return known.get(key);
    if (known.size >= knownMax) known.clear();
    const refusal = judge(address, ofCluster);
    known.set(key, refusal);
    return refusal;
  };
}

const knownMax = 20_000;

function isIn(address: string, ranges: readonly IpRange[]): boolean {
  const ip = parseIp(address);
  return ip !== undefined && ranges.some((range) => isInRange(ip, range));
}
