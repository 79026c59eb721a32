// Chooses between the Heartbeat and the Lease of one member: the one that counts. Pure.

import type { Lease } from '../../../kube/objects/lease.ts';

/** The one that was renewed last, by the order in which the broker stored them. */
export function newerLease(one: Lease | undefined, other: Lease | undefined): Lease | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Number(other.metadata.resourceVersion) > Number(one.metadata.resourceVersion) ? other : one;
}
