// Objects of an owner that is gone are collected at once, and the collection is an event that calls for them again: a copy that
// has missed the owner's deletion would have them written as fast as the home answers. So a controller that finds none of them, and
// may have written some before, asks for the owner itself.

import type { KubernetesObject, ResourceType } from '../objects/object.ts';
import { getOrUndefined } from './absent.ts';
import type { Client, ObjectRef } from './client.ts';

export async function confirmOwner(
  client: Client,
  type: ResourceType,
  owner: ObjectRef & { readonly uid?: string },
): Promise<void> {
  const { namespace, name, uid } = owner;
  const found = await getOrUndefined<KubernetesObject>(client, type, { namespace, name });
  if (found?.metadata.uid === uid) return;
  const what = `${type.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
  throw new Error(`${what} is gone, and the copy of it here is old: nothing is written for it; trying again`);
}
