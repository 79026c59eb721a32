// Reads the heartbeats of members at the broker.

import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client, RequestOptions } from '../../kube/client/client.ts';
import { type Heartbeat, heartbeatType } from '../kinds/heartbeat.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import type { Member } from './follower.ts';

export function readHeartbeat(
  broker: Client,
  namespace: string,
  options?: RequestOptions,
): Promise<Heartbeat | undefined> {
  return getOrUndefined<Heartbeat>(broker, heartbeatType, { namespace, name: memberLeaseName }, options);
}

/** So many are read one by one; for more, all heartbeats are listed once. */
const readsMax = 8;

/** By the id of the member. */
export async function readHeartbeats(
  broker: Client,
  members: readonly Pick<Member, 'id' | 'cluster'>[],
  options: RequestOptions,
): Promise<Map<string, Heartbeat | undefined>> {
  const listed = members.length > readsMax ? await listHeartbeats(broker, options) : undefined;
  const read = members.map(async ({ id, cluster }): Promise<[string, Heartbeat | undefined]> => {
    const { namespace } = cluster.spec;
    return [id, listed === undefined ? await readHeartbeat(broker, namespace, options) : listed.get(namespace)];
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
