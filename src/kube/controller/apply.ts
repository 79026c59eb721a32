// Brings one object to what is wanted: writes only what differs, so that a restart moves no revision. Whoever changed it
// meanwhile makes the write fail with a conflict, and the key is worked on again from fresh copies.

import { isSameJson } from '../../base/json.ts';
import type { Client, ObjectRef } from '../client/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../objects/api-error.ts';
import type { Manifest } from '../objects/manifest.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../objects/object.ts';

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

export type Outcome = 'made' | 'changed' | 'as it was';

export interface Installed<T extends KubernetesObject = KubernetesObject> {
  readonly object: T;
  readonly outcome: Outcome;
}

const attemptsMax = 5;

export async function install<T extends KubernetesObject>(client: Client, wanted: Manifest<T>): Promise<Installed<T>> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await installOnce(client, wanted);
    } catch (error) {
      // Somebody wrote between our reading and our writing.
      if (attempt === attemptsMax || !(isConflict(error) || isAlreadyExists(error))) throw error;
    }
  }
}

async function installOnce<T extends KubernetesObject>(client: Client, { type, object }: Manifest<T>) {
  const present = await find<T>(client, type, object.metadata);
  if (present === undefined) return { object: await client.create<T>(type, object), outcome: 'made' as const };
  const next = combined(present, object);
  if (isSameJson(next, present)) return { object: present, outcome: 'as it was' as const };
  return { object: await client.update<T>(type, next), outcome: 'changed' as const };
}

/** What the installer names is as it says; everything else stays. */
function combined<T extends KubernetesObject>(present: T, wanted: T): T {
  const { labels, annotations, ownerReferences } = wanted.metadata;
  const metadata = {
    ...present.metadata,
    ...(labels === undefined ? {} : { labels: { ...present.metadata.labels, ...labels } }),
    ...(annotations === undefined ? {} : { annotations: { ...present.metadata.annotations, ...annotations } }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
  };
  const { spec } = present as { spec?: object };
  const wantedSpec = (wanted as { spec?: object }).spec;
  return { ...present, ...wanted, metadata, ...(wantedSpec === undefined ? {} : { spec: { ...spec, ...wantedSpec } }) };
}

export async function find<T extends KubernetesObject = AnyObject>(
  client: Client,
  type: ResourceType,
  ref: ObjectRef,
): Promise<T | undefined> {
  try {
    return await client.get<T>(type, ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Whether there was anything to delete. */
export async function remove(client: Client, type: ResourceType, ref: ObjectRef): Promise<boolean> {
  try {
    await client.delete(type, { namespace: ref.namespace, name: ref.name });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
