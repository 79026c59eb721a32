// Brings one EndpointSlice to what is wanted, at home or at the broker.

import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';

/** Whether `present` was as wanted already. */
export async function bringSlice(
  client: Client,
  present: EndpointSlice | undefined,
  wanted: EndpointSlice,
): Promise<boolean> {
  // The type of a slice's addresses cannot be changed: a slice of another type is deleted and made anew.
  const isOtherType = present !== undefined && present.addressType !== wanted.addressType;
  if (isOtherType) await deleteIfPresent(client, endpointSliceType, present.metadata);
  const { outcome } = await apply({
    client,
    type: endpointSliceType,
    present: isOtherType ? undefined : present,
    change: replaceWith(wanted),
  });
  return outcome === 'unchanged' && !isOtherType;
}
