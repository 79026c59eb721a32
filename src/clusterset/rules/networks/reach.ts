// Which clusters of a set lie in other networks than the reader, and by which of their gateways they may be reached: those
// inside the ranges that the set's admin accepted, none that belongs to another member. Pure.

import { type IpRange, isInRange, parseIp, parseRange } from '../../../base/net/ip.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import { gatewaysMax, trustRootsMax } from './gateway-report.ts';
import { assignListenerPorts } from './listener-ports.ts';
import { type ClusterReach, defaultNetwork, type GatewayAddress, isGateway, type SetNetworks } from './networks.ts';

export interface NetworksRequest {
  readonly members: readonly Cluster[];
  /** Id of the cluster that reads. */
  readonly self: string;
  /** Why the address of a gateway leads nowhere from here, with the ranges that the admin accepted; undefined if it is fine. */
  readonly refusal: (address: string, accepted: readonly IpRange[]) => string | undefined;
  /** The ports that nodes use now. */
  readonly ports: ReadonlyMap<string, number>;
}

const rootLengthMax = 8192;
/** A ConfigMap holds a megabyte. */
const rootsLengthMax = 600_000;

export function networksOf(request: NetworksRequest): SetNetworks {
  const members = [...request.members].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const own = networkOf(members.find(({ metadata }) => metadata.name === request.self));
  const others = members.filter((member) => networkOf(member) !== own);
  const judged = others.map((member) => ({ member, ...judgeGateways(member, { ...request, members }) }));
  const reached = judged.filter(({ gateways }) => gateways.length > 0).map(({ member }) => member.metadata.name);
  const ports = assignListenerPorts(reached, request.ports);
  const clusters = new Map<string, ClusterReach>();
  let rootsLength = 0;
  for (const { member, gateways, problems } of judged) {
    const id = member.metadata.name;
    const listenerPort = ports.get(id);
    let trustRoots = rootsOf(member);
    rootsLength += trustRoots.join().length;
    if (rootsLength > rootsLengthMax) trustRoots = [];
    const problem = problemOf({ gateways, problems, trustRoots, listenerPort });
    clusters.set(id, {
      network: networkOf(member),
      gateways: listenerPort === undefined ? [] : gateways,
      trustRoots,
      ...(listenerPort === undefined ? {} : { listenerPort }),
      ...(problem === undefined ? {} : { problem }),
    });
  }
  return { own, clusters };
}

export function networkOf(member: Cluster | undefined): string {
  return member?.spec?.network || defaultNetwork;
}

export interface JudgedGateways {
  readonly gateways: readonly GatewayAddress[];
  /** One sentence for each published gateway that is not used. */
  readonly problems: readonly string[];
}

/** The gateways that this member publishes, as all members judge them. */
export function judgeGateways(
  member: Cluster,
  { members, refusal }: Pick<NetworksRequest, 'members' | 'refusal'>,
): JudgedGateways {
  const accepted = rangesOf(member);
  const gateways: GatewayAddress[] = [];
  const problems: string[] = [];
  for (const gateway of published(member)) {
    const problem =
      addressProblem(gateway, accepted, refusal) ??
      members.map((other) => rivalProblem(gateway, member, other)).find((text) => text !== undefined);
    if (problem === undefined) gateways.push(gateway);
    else problems.push(`gateway ${gateway.address} port ${gateway.port} is refused: ${problem}`);
  }
  return { gateways, problems };
}

function addressProblem(
  { address }: GatewayAddress,
  accepted: readonly IpRange[],
  refusal: NetworksRequest['refusal'],
): string | undefined {
  if (accepted.length === 0) return 'the admin of the set has accepted no gateway ranges of this cluster';
  const problem = refusal(address, accepted);
  const isOutside = problem !== undefined && narrowest(address, accepted) === undefined;
  return isOutside ? 'it is outside the accepted gateway ranges of this cluster' : problem;
}

/** An address belongs to the cluster with the narrowest accepted range around it; of equal ones to the older cluster. */
function rivalProblem(gateway: GatewayAddress, member: Cluster, other: Cluster): string | undefined {
  if (other.metadata.name === member.metadata.name) return undefined;
  const theirs = narrowest(gateway.address, rangesOf(other));
  if (theirs === undefined) return undefined;
  const ours = narrowest(gateway.address, rangesOf(member))!;
  if (theirs < ours) return `it is in a gateway range of cluster ${other.metadata.name}`;
  const isSame = ({ address, port }: GatewayAddress) =>
    parseIp(address)!.value === parseIp(gateway.address)!.value && port === gateway.port;
  if (theirs > ours || !published(other).some(isSame)) return undefined;
  return isOlder(other, member) ? `it is a gateway of cluster ${other.metadata.name}` : undefined;
}

/** Size of the smallest range around the address. */
function narrowest(address: string, ranges: readonly IpRange[]): bigint | undefined {
  const ip = parseIp(address);
  let size: bigint | undefined;
  for (const range of ranges)
    if (ip && isInRange(ip, range) && (size === undefined || range.size < size)) size = range.size;
  return size;
}

function isOlder(a: Cluster, b: Cluster): boolean {
  const [first = '', second = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  return first === second ? a.metadata.name < b.metadata.name : first < second;
}

function rangesOf({ spec }: Cluster): IpRange[] {
  return (spec?.gatewayRanges ?? []).flatMap((text) => parseRange(text) ?? []);
}

function published({ status }: Cluster): GatewayAddress[] {
  return (status?.gateways ?? []).slice(0, gatewaysMax).filter(isGateway);
}

function rootsOf({ status }: Cluster): string[] {
  const roots = (status?.trustRoots ?? []).filter((root) => typeof root === 'string' && root.length <= rootLengthMax);
  return roots.slice(0, trustRootsMax);
}

function problemOf(found: {
  readonly gateways: readonly GatewayAddress[];
  readonly problems: readonly string[];
  readonly trustRoots: readonly string[];
  readonly listenerPort: number | undefined;
}): string | undefined {
  if (found.problems.length > 0) return found.problems.slice(0, 3).join('; ');
  if (found.gateways.length === 0) return 'no gateway published';
  if (found.listenerPort === undefined) return 'all ports for clusters behind gateways are taken';
  return found.trustRoots.length === 0 ? 'no trust root published' : undefined;
}
