// Networks and gateways in the commands of members and admins: flags, what is refused, and what is shown.

import { isDnsLabel } from '../../base/dns/labels.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import {
  areServicesPublished,
  type KnownMember,
  knownRanges,
  memberRanges,
  membersWithoutNetworks,
  readClusterSet,
} from '../../clusterset/explain/broker-state.ts';
import type { Cluster, ClusterSpec } from '../../clusterset/kinds/cluster.ts';
import { refusal } from '../../clusterset/rules/endpoint-address.ts';
import { gatewayName, gatewayReportKeys, parseGateway } from '../../clusterset/rules/networks/gateway-report.ts';
import { olderAgentsText } from '../../clusterset/rules/networks/known-by.ts';
import { defaultNetwork } from '../../clusterset/rules/networks/networks.ts';
import { judgeGateways, networkOf } from '../../clusterset/rules/networks/reach.ts';
import { findOverlaps } from '../../clusterset/rules/range-overlap.ts';
import type { Client } from '../../kube/client/client.ts';
import { writeKeys } from '../../kube/client/config-map-keys.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { refusedError, usageError } from '../exit-codes.ts';
import { parseRanges } from './broker-init.ts';

interface NetworkFlags {
  readonly network?: string;
  readonly gatewayRange?: string[];
}

export function networkSpec({ network, gatewayRange }: NetworkFlags): Pick<ClusterSpec, 'network' | 'gatewayRanges'> {
  const [problem] = network === undefined ? [] : isDnsLabel(network);
  if (problem !== undefined) throw usageError(`--network ${JSON.stringify(network)}: ${problem}`);
  return {
    ...(network === undefined ? {} : { network }),
    ...(gatewayRange === undefined ? {} : { gatewayRanges: parseRanges('--gateway-range', gatewayRange) }),
  };
}

/** As the home keeps them. */
export function checkedGateways(texts: readonly string[]): string {
  const wrong = texts.find((text) => parseGateway(text) === undefined);
  if (wrong === undefined) return texts.join(',');
  throw usageError(
    `--gateway ${JSON.stringify(wrong)}: write ADDRESS:PORT with an IP address, such as 203.0.113.7:15443 or [2001:db8::7]:15443`,
  );
}

/** The roots beside them, which the discovery server publishes, stay. */
export function keepGateways(home: Client, gateways: string): Promise<void> {
  const place = { name: gatewayName, namespace: systemNamespace };
  return writeKeys(home, place, { [gatewayReportKeys.gateways]: gateways });
}

/** Setting a network while an agent that knows none is in the set: it would dial addresses of another network. */
export async function refuseOlder(
  client: Client,
  { members, network }: { readonly members: readonly KnownMember[]; readonly network: string },
): Promise<void> {
  const older = await membersWithoutNetworks(client, members);
  if (older.length === 0) return;
  throw refusedError(olderAgentsText(network, older));
}

/** A member does not decide about its network: joining into another one than the admin gave is a mistake. */
export function refuseOtherNetwork({ metadata, spec }: Cluster, claimed: string | undefined): void {
  if (claimed === undefined || spec.network === undefined || spec.network === claimed) return;
  throw refusedError(
    `cluster ${metadata.name} is in network ${spec.network}, as the admin of the set gave it, not in ${claimed}; join with --network ${spec.network}, or ask for portolan broker accept ${metadata.name} --network ${claimed}`,
  );
}

/** Ranges are compared in the network that the admin gave: until then, that is not the one that the member names. */
export function overlapAdvice(cluster: Cluster, claimed: string | undefined): string {
  const change = 'change one of them';
  if (claimed === undefined || claimed === networkOf(cluster)) return change;
  const { name } = cluster.metadata;
  return `${change}, or ask for a token with the network: portolan broker token ${name} --network ${claimed}`;
}

export function networkLines(cluster: Cluster, claimed: string | undefined): string[] {
  if (claimed === undefined || claimed === networkOf(cluster)) return [];
  const { name } = cluster.metadata;
  return [
    `not confirmed: this cluster is in network ${claimed}; until the admin of the set runs portolan broker accept ${name}, it counts as one of network ${networkOf(cluster)}`,
  ];
}

interface NetworkRequest {
  readonly clusterset: string;
  readonly member: KnownMember;
  readonly members: readonly KnownMember[];
  readonly given: Pick<ClusterSpec, 'network' | 'gatewayRanges'>;
}

/** The network and gateway ranges to write; throws if the set cannot have them so. */
export async function networkFor(
  client: Client,
  { clusterset, member, members, given }: NetworkRequest,
): Promise<Pick<ClusterSpec, 'network' | 'gatewayRanges'>> {
  const { id, cluster, record } = member;
  const network = given.network ?? cluster.spec.network ?? record?.network ?? defaultNetwork;
  if (network !== networkOf(cluster)) {
    const set = await readClusterSet(client, clusterset);
    await refuseOlder(client, { members, network });
    const others = knownRanges(set, members, { except: id, network });
    const own = memberRanges(member).filter(({ kind }) => kind !== 'allowed');
    const problems = findOverlaps({ own, others, areServicesPublished: areServicesPublished(set) });
    if (problems.length > 0)
      throw refusedError(`cluster ${id} cannot be in network ${network}: ${problems.join('; ')}; change one of them`);
  }
  const isNamed = network !== defaultNetwork || cluster.spec.network !== undefined || given.network !== undefined;
  const reported = (cluster.status?.gateways ?? []).map(
    ({ address }) => `${address}/${address.includes(':') ? 128 : 32}`,
  );
  const present = cluster.spec.gatewayRanges ?? [];
  const taken = isNamed && present.length === 0 ? [...new Set(reported)] : [];
  const gatewayRanges = given.gatewayRanges ?? (taken.length > 0 ? taken : undefined);
  return { ...(isNamed ? { network } : {}), ...(gatewayRanges === undefined ? {} : { gatewayRanges }) };
}

/** The network of a member, and what becomes of each gateway that it reports. None where there is nothing to say. */
export function gatewayLines(cluster: Cluster, members: readonly KnownMember[]): string[] {
  const { spec, status } = cluster;
  if (spec.network === undefined && (status?.gateways ?? []).length === 0) return [];
  const others = members
    .map((member) => member.cluster)
    .filter(({ metadata }) => metadata.name !== cluster.metadata.name);
  const { gateways, problems } = judgeGateways(cluster, {
    members: [cluster, ...others],
    refusal: (address, allowedRanges) => refusal(address, { virtualRanges: [], allowedRanges }),
  });
  const used = gateways.map(({ address, port }) => formatHostPort(address, port)).join(', ');
  const ranges = spec.gatewayRanges?.join(', ') || 'none';
  return [
    `cluster ${cluster.metadata.name}: network ${networkOf(cluster)}, gateways ${used || 'none'}, in accepted ranges ${ranges}`,
    ...problems.map((problem) => `cluster ${cluster.metadata.name}: ${problem}`),
  ];
}
