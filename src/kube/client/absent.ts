// Requests for which an object that is not there is an answer, not an error.

import { isNotFound } from '../objects/api-error.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../objects/object.ts';
import type { Client, DeleteOptions, ObjectRef, RequestOptions } from './client.ts';

export async function getOrUndefined<T extends KubernetesObject = AnyObject>(
  client: Client,
  type: ResourceType,
  ref: ObjectRef,
  options?: RequestOptions,
): Promise<T | undefined> {
  try {
    return await client.get<T>(type, ref, options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/**
 * Whether there was anything to delete. Given the metadata of an object that was read, it deletes that very object: one
 * that was made anew under the same name stays, and the home answers with a conflict.
 */
export async function deleteIfPresent(
  client: Client,
  type: ResourceType,
  { namespace, name, uid }: ObjectRef & { readonly uid?: string },
  preconditions: DeleteOptions['preconditions'] = { uid },
): Promise<boolean> {
  try {
    await client.delete(type, { namespace, name }, { preconditions });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
