// Brings one object to what is wanted: writes only what differs, so that a restart moves no revision. Whoever changed it
// meanwhile makes the write fail with a conflict, and the key is worked on again from fresh copies.

import { isSameJson } from '../../base/same-json.ts';
import type { Client } from '../client/client.ts';
import { isAlreadyExists, isNotFound } from '../objects/api-error.ts';
import type { KubernetesObject, ResourceType } from '../objects/object.ts';

export interface EnsureRequest<T extends KubernetesObject> {
  readonly client: Client;
  readonly type: ResourceType;
  readonly present: T | undefined;
  readonly wanted: T;
  /** Told what is there before it is changed. */
  readonly onChange?: (present: T) => Promise<void>;
}

/** Everything but status. What the writer does not name in `metadata` (uid, timestamps, finalizers) stays. */
export async function ensure<T extends KubernetesObject>(request: EnsureRequest<T>): Promise<T> {
  const { client, type, present, wanted } = request;
  if (present === undefined) return create(request);
  if (isAsWanted(present, wanted)) return present;
  await request.onChange?.(present);
  const { status } = present as { status?: unknown };
  return client.update<T>(type, {
    ...wanted,
    ...(status === undefined ? {} : { status }),
    metadata: { ...present.metadata, ...ownMetadata(wanted) },
  } as T);
}

// The copy may be older than the home: an object that exists already is compared like any other.
async function create<T extends KubernetesObject>(request: EnsureRequest<T>): Promise<T> {
  const { client, type, wanted } = request;
  try {
    return await client.create<T>(type, wanted);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const present = await client.get<T>(type, wanted.metadata);
    return ensure({ ...request, present });
  }
}

export function isAsWanted<T extends KubernetesObject>(present: T, wanted: T): boolean {
  if (!isSameJson(ownMetadata(present, wanted), ownMetadata(wanted))) return false;
  return isSameJson(bodyOf(present), bodyOf(wanted));
}

/** Gone is as good as deleted. A precondition protects what somebody made anew under the same name. */
export async function ensureAbsent(client: Client, type: ResourceType, present: KubernetesObject): Promise<void> {
  const { uid } = present.metadata;
  try {
    await client.delete(type, present.metadata, uid === undefined ? {} : { preconditions: { uid } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function ownMetadata<T extends KubernetesObject>(object: T, like: T = object) {
  const { labels, annotations, ownerReferences } = object.metadata;
  return {
    ...(like.metadata.labels === undefined ? {} : { labels: labels ?? {} }),
    ...(like.metadata.annotations === undefined ? {} : { annotations: annotations ?? {} }),
    ...(like.metadata.ownerReferences === undefined ? {} : { ownerReferences: ownerReferences ?? [] }),
  };
}

function bodyOf(object: KubernetesObject): Record<string, unknown> {
  const {
    apiVersion: _version,
    kind: _kind,
    metadata: _metadata,
    status: _status,
    ...body
  } = object as KubernetesObject & {
    status?: unknown;
  };
  return body;
}
