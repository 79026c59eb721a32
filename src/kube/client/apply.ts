// The one way to bring an object to what is wanted. `apply` compares with the copy it is given and writes only what differs,
// so that a restart moves no revision. It creates, or updates under the resourceVersion of the copy, and reads only after
// the home has contradicted the copy. The change says what is merged and what is replaced:
//
//   replaceWith(wanted)  replaces everything but status; of metadata only the labels, annotations and owners `wanted` names
//   mergeInto(wanted)    sets the keys of labels, annotations and spec that `wanted` names, and its other fields; others stay
//   (present) => next    a rule of its own; returning `present` writes nothing, throwing refuses
//
// A conflict on update is thrown by default: a controller plans the key again from fresh copies. A command, or a writer
// whose change depends on nothing but the object itself, says `onConflict: 'retry'`.

import { isSameJson } from '../../base/json.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../objects/api-error.ts';
import type { Manifest } from '../objects/manifest.ts';
import type { KubernetesObject, ResourceType } from '../objects/object.ts';
import { getOrUndefined } from './absent.ts';
import type { Client, WriteOptions } from './client.ts';

/** Makes the object that should be there from the one that is. Called again with what was read after a conflict. */
export type Change<T extends KubernetesObject> = (present: T | undefined) => T;

export interface ApplyRequest<T extends KubernetesObject> {
  readonly client: Client;
  readonly type: ResourceType;
  /** The copy at hand, from an informer or just read; undefined if none is known. */
  readonly present: T | undefined;
  readonly change: Change<T>;
  readonly onConflict?: 'throw' | 'retry';
  /** Called with the object that is there before it is changed. */
  readonly beforeUpdate?: (present: T) => Promise<void>;
  readonly options?: WriteOptions;
}

export interface Applied<T extends KubernetesObject> {
  readonly object: T;
  readonly outcome: 'created' | 'updated' | 'unchanged';
}

const attemptsMax = 5;

export async function apply<T extends KubernetesObject>(request: ApplyRequest<T>): Promise<Applied<T>> {
  const { client, type, change, options } = request;
  let { present } = request;
  for (let attempt = 1; ; attempt += 1) {
    const next = change(present);
    if (present !== undefined && isSameJson(next, present)) return { object: present, outcome: 'unchanged' };
    try {
      return await write(request, present, next);
    } catch (error) {
      if (attempt === attemptsMax || !isCopyOld(error, present, request.onConflict)) throw error;
      present = await getOrUndefined<T>(client, type, next.metadata, options);
    }
  }
}

async function write<T extends KubernetesObject>(
  { client, type, beforeUpdate, options }: ApplyRequest<T>,
  present: T | undefined,
  next: T,
): Promise<Applied<T>> {
  if (present === undefined) return { object: await client.create<T>(type, next, options), outcome: 'created' };
  await beforeUpdate?.(present);
  return { object: await client.update<T>(type, next, options), outcome: 'updated' };
}

function isCopyOld(error: unknown, present: object | undefined, onConflict = 'throw'): boolean {
  if (present === undefined) return isAlreadyExists(error);
  return onConflict === 'retry' && (isConflict(error) || isNotFound(error));
}

/** Replaces everything but status. Metadata that `wanted` does not name (uid, timestamps, finalizers) stays. */
export function replaceWith<T extends KubernetesObject>(wanted: T): Change<T> {
  return (present) => {
    if (present === undefined) return wanted;
    const { status: _status, ...body } = wanted as T & { status?: unknown };
    const { status } = present as { status?: unknown };
    return {
      ...body,
      ...(status === undefined ? {} : { status }),
      metadata: { ...present.metadata, ...namedMetadata(present, wanted) },
    } as T;
  };
}

function namedMetadata({ metadata: present }: KubernetesObject, { metadata: wanted }: KubernetesObject) {
  const { labels, annotations, ownerReferences } = wanted;
  return {
    // A home may leave out what is empty: that is no difference.
    ...(isAbsent(labels, present.labels) ? {} : { labels }),
    ...(isAbsent(annotations, present.annotations) ? {} : { annotations }),
    ...(isAbsent(ownerReferences, present.ownerReferences) ? {} : { ownerReferences }),
  };
}

function isAbsent(wanted: object | undefined, present: object | undefined): boolean {
  return wanted === undefined || (present === undefined && Object.keys(wanted).length === 0);
}

/** Sets what `wanted` names, key by key in labels, annotations and spec; everything else stays. */
export function mergeInto<T extends KubernetesObject>(wanted: T): Change<T> {
  return (present) => {
    if (present === undefined) return wanted;
    const { labels, annotations, ownerReferences } = wanted.metadata;
    const metadata = {
      ...present.metadata,
      ...(labels === undefined ? {} : { labels: { ...present.metadata.labels, ...defined(labels) } }),
      ...(annotations === undefined
        ? {}
        : { annotations: { ...present.metadata.annotations, ...defined(annotations) } }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
    };
    const { spec } = present as { spec?: object };
    const { spec: wantedSpec } = wanted as { spec?: object };
    return {
      ...present,
      ...defined(wanted),
      metadata,
      ...(wantedSpec === undefined ? {} : { spec: { ...spec, ...defined(wantedSpec) } }),
    };
  };
}

/** A field that is undefined is not named. */
function defined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** Whether `replaceWith` would write nothing. */
export function isAsWanted<T extends KubernetesObject>(present: T, wanted: T): boolean {
  return isSameJson(replaceWith(wanted)(present), present);
}

/** For objects that others own once they exist, such as a namespace: an existing object is left as it is. */
export async function createIfAbsent<T extends KubernetesObject>(
  client: Client,
  type: ResourceType,
  object: T,
  options?: WriteOptions,
): Promise<Applied<T>> {
  const present = await getOrUndefined<T>(client, type, object.metadata, options);
  return apply<T>({ client, type, present, change: (there) => there ?? object, options });
}

/** Reads, then merges: for commands that bring an object to a home, once or again. */
export async function install<T extends KubernetesObject>(
  client: Client,
  { type, object }: Manifest<T>,
): Promise<Applied<T>> {
  const present = await getOrUndefined<T>(client, type, object.metadata);
  return apply<T>({ client, type, present, change: mergeInto(object), onConflict: 'retry' });
}
