// Reads the lease of a member at the broker: its Heartbeat, or the Lease of an agent that has none. A member that has gone back
// to an older agent has both, and the newer counts. In the layout per member nobody asks for Heartbeats: the broker may not
// know them.

import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client, RequestOptions } from '../../kube/client/client.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { RecordLayout } from '../kinds/cluster-set.ts';
import { type Heartbeat, heartbeatType } from '../kinds/heartbeat.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import { newerLease } from '../rules/leases/newer-lease.ts';
import type { Member } from './follower.ts';
import { hasOlderShards } from './sources.ts';

export interface ReadLeaseOptions extends RequestOptions {
  readonly layout: RecordLayout;
  /** Whether the Lease is looked at even where there is a Heartbeat. */
  readonly isMaybeOlder: boolean;
}

export async function readMemberLease(
  broker: Client,
  namespace: string,
  options: ReadLeaseOptions,
): Promise<Lease | undefined> {
  const ref = { namespace, name: memberLeaseName };
  const hasHeartbeats = options.layout === 'AllNamespaces';
  const heartbeat = hasHeartbeats ? await getOrUndefined<Heartbeat>(broker, heartbeatType, ref, options) : undefined;
  if (heartbeat !== undefined && !options.isMaybeOlder) return heartbeat;
  return newerLease(heartbeat, await getOrUndefined<Lease>(broker, leaseType, ref, options));
}

/** So many are read one by one; for more, all heartbeats are listed once. */
const readsMax = 8;

/** By the id of the member. */
export async function readMemberLeases(
  broker: Client,
  members: readonly Pick<Member, 'id' | 'cluster' | 'shards'>[],
  options: RequestOptions,
): Promise<Map<string, Lease | undefined>> {
  const heartbeats = members.length > readsMax ? await listHeartbeats(broker, options) : undefined;
  const read = members.map(async ({ id, cluster, shards }): Promise<[string, Lease | undefined]> => {
    const { namespace } = cluster.spec;
    const isMaybeOlder = hasOlderShards(shards);
    const known = isMaybeOlder ? undefined : heartbeats?.get(namespace);
    return [
      id,
      known ?? (await readMemberLease(broker, namespace, { ...options, layout: 'AllNamespaces', isMaybeOlder })),
    ];
  });
  return new Map(await Promise.all(read));
}

/** By the namespace they lie in. */
export async function listHeartbeats(broker: Client, options?: RequestOptions): Promise<Map<string, Heartbeat>> {
  const heartbeats = new Map<string, Heartbeat>();
  for await (const { items } of broker.listPaged<Heartbeat>(heartbeatType, options)) {
    for (const item of items)
      if (item.metadata.name === memberLeaseName) heartbeats.set(item.metadata.namespace ?? '', item);
  }
  return heartbeats;
}
