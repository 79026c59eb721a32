// Reads the members of a clusterset at the broker, for an admin or a member: their Cluster objects, what they said of
// themselves when they joined, and the address ranges that follow from both.

import { errorText } from '../../base/log.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type Cluster, clusterType } from '../kinds/cluster.ts';
import { addressRangesOf, type ClusterSet, clusterSetDefaults, clusterSetType } from '../kinds/cluster-set.ts';
import { readHeartbeat } from '../members/read-heartbeat.ts';
import { type MemberRecord, readMemberRecord } from '../membership/member-record.ts';
import { memberRecordName } from '../rules/broker-layout.ts';
import { knowsNetworks } from '../rules/networks/known-by.ts';
import { networkOf } from '../rules/networks/reach.ts';
import type { NamedRange } from '../rules/range-overlap.ts';

export { readHeartbeat };

export interface KnownMember {
  readonly id: string;
  readonly cluster: Cluster;
  /** Absent until the cluster has joined. */
  readonly record: MemberRecord | undefined;
  /** Set if what the member has at the broker cannot be read: why. */
  readonly problem?: string;
}

export async function readClusterSet(client: Client, clusterset: string): Promise<ClusterSet> {
  const set = await getOrUndefined<ClusterSet>(client, clusterSetType, { namespace: clusterset, name: clusterset });
  if (set !== undefined) return set;
  await refuseOtherSet(client, clusterset);
  throw new NoClusterSet(
    `clusterset ${clusterset}: there is none at this broker; lay it out with portolan broker init --clusterset ${clusterset}`,
  );
}

/** Names the sets that this home has, if it is a broker of others. */
export async function refuseOtherSet(client: Client, clusterset: string): Promise<void> {
  // One who may read this set need not be allowed to list others.
  const { items } = await client.list<ClusterSet>(clusterSetType).catch(() => ({ items: [] }));
  const names = items.map(({ metadata }) => metadata.name);
  if (names.length === 0 || names.includes(clusterset)) return;
  throw new NoClusterSet(
    `clusterset ${clusterset}: this broker has ${names.join(', ')}; give --clusterset ${names[0]}`,
  );
}

class NoClusterSet extends Error {
  override readonly name = 'NoClusterSet';
}

export async function readMembers(client: Client, clusterset: string): Promise<KnownMember[]> {
  const { items } = await client.list<Cluster>(clusterType, { namespace: clusterset });
  return Promise.all(
    items.map(async (cluster): Promise<KnownMember> => {
      const id = cluster.metadata.name;
      try {
        return { id, cluster, record: await readRecord(client, cluster.spec.namespace) };
      } catch (error) {
        // The trouble of one member is not that of the others.
        if (!(error instanceof ApiError)) throw error;
        return { id, cluster, record: undefined, problem: errorText(error) };
      }
    }),
  );
}

export async function readRecord(client: Client, namespace: string): Promise<MemberRecord | undefined> {
  const record = await getOrUndefined<ConfigMap>(client, configMapType, { namespace, name: memberRecordName });
  return record && readMemberRecord(record);
}

/** The ranges of the set, and those of its members that a cluster of this network would meet. Networks may overlap. */
export function knownRanges(
  set: ClusterSet,
  members: readonly KnownMember[],
  { except, network }: { readonly except: string; readonly network: string },
): NamedRange[] {
  const others = members.filter(({ id, cluster }) => id !== except && networkOf(cluster) === network);
  return [...virtualRanges(set), ...others.flatMap(memberRanges)];
}

/** Ids of members whose agents run and know no networks: with one of them, no cluster may be in a network of its own. */
export async function membersWithoutNetworks(client: Client, members: readonly KnownMember[]): Promise<string[]> {
  const leases = await Promise.all(members.map(({ cluster }) => readHeartbeat(client, cluster.spec.namespace)));
  return members.filter((_, index) => leases[index] !== undefined && !knowsNetworks(leases[index])).map(({ id }) => id);
}

export function virtualRanges(set: ClusterSet): NamedRange[] {
  const ranges = addressRangesOf(set.spec);
  const named = (cidrs: readonly string[], what: string) =>
    cidrs.map((cidr) => ({ cidr, whose: `${what} of clusterset ${set.metadata.name}`, kind: 'virtual' as const }));
  return [
    ...named(ranges.clusterSet, 'clusterset IPs'),
    ...named(ranges.peers, 'addresses of peers'),
    ...named(ranges.external, 'addresses of external services'),
  ];
}

export function memberRanges({ id, cluster, record }: KnownMember): NamedRange[] {
  const named = (cidrs: readonly string[], what: string, kind: NamedRange['kind']) =>
    cidrs.map((cidr) => ({ cidr, whose: `${what} of cluster ${id}`, kind }));
  return [
    ...named(cluster.spec.allowedRanges ?? [], 'allowed addresses', 'allowed'),
    ...named(record?.podRanges ?? [], 'pods', 'pods'),
    ...named(record?.serviceRanges ?? [], 'services', 'services'),
  ];
}

export function areServicesPublished(set: ClusterSet): boolean {
  return (set.spec?.endpoints ?? clusterSetDefaults.endpoints) === 'ClusterIP';
}
