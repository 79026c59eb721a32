// Brings one EndpointSlice, or a record of its shape, to what is wanted, at home or at the broker.

import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { ResourceType } from '../../kube/objects/object.ts';

export interface SliceWrite {
  readonly client: Client;
  readonly type: ResourceType;
  readonly present: EndpointSlice | undefined;
  readonly wanted: EndpointSlice;
}

/** Whether `present` was as wanted already. */
export async function bringSlice({ client, type, present, wanted }: SliceWrite): Promise<boolean> {
  // The type of a slice's addresses cannot be changed: a slice of another type is deleted and made anew.
  const isOtherType = present !== undefined && present.addressType !== wanted.addressType;
  if (isOtherType) await deleteIfPresent(client, type, present.metadata);
  const { outcome } = await apply({
    client,
    type,
    present: isOtherType ? undefined : present,
    change: replaceWith(wanted),
  });
  return outcome === 'unchanged' && !isOtherType;
}
