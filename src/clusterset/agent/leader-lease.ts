// Creates the leader Lease of a member again, with the rights of the member. By PUT: its name is then known when the request
// is authorized, so that the role of the member can allow this one Lease and no other.

import type { Client, RequestOptions } from '../../kube/client/client.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { memberOwner } from '../membership/broker-objects.ts';

/** `namespace` is the member's own at the broker: the Lease goes with it. */
export async function createLeaderLease(
  broker: Client,
  namespace: string,
  { metadata, ...lease }: Lease,
  options: RequestOptions,
): Promise<Lease> {
  const owner = memberOwner(await broker.get<Namespace>(namespaceType, { name: namespace }, options));
  return broker.update<Lease>(leaseType, { ...lease, metadata: { ...metadata, ownerReferences: [owner] } }, options);
}
