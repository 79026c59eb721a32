// Reads the lease of a member at the broker: its Heartbeat, or the Lease of an agent that has none. In the layout per member
// nobody asks for Heartbeats: the broker may not know them.

import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client, RequestOptions } from '../../kube/client/client.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { RecordLayout } from '../kinds/cluster-set.ts';
import { type Heartbeat, heartbeatType } from '../kinds/heartbeat.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import type { Member } from './follower.ts';

export interface ReadLeaseOptions extends RequestOptions {
  readonly layout: RecordLayout;
}

export async function readMemberLease(
  broker: Client,
  namespace: string,
  options: ReadLeaseOptions,
): Promise<Lease | undefined> {
  const ref = { namespace, name: memberLeaseName };
  const hasHeartbeats = options.layout === 'AllNamespaces';
  const heartbeat = hasHeartbeats ? await getOrUndefined<Heartbeat>(broker, heartbeatType, ref, options) : undefined;
  return heartbeat ?? (await getOrUndefined<Lease>(broker, leaseType, ref, options));
}

/** So many are read one by one; for more, all heartbeats are listed once. */
const readsMax = 8;

/** By the id of the member. */
export async function readMemberLeases(
  broker: Client,
  members: readonly Pick<Member, 'id' | 'cluster'>[],
  options: RequestOptions,
): Promise<Map<string, Lease | undefined>> {
  const heartbeats = members.length > readsMax ? await listHeartbeats(broker, options) : undefined;
  const read = members.map(async ({ id, cluster }): Promise<[string, Lease | undefined]> => {
    const { namespace } = cluster.spec;
    return [
      id,
      heartbeats?.get(namespace) ?? (await readMemberLease(broker, namespace, { ...options, layout: 'AllNamespaces' })),
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
