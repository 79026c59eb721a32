// Replaces an object by what a function makes of it: the one way in which update, patch and the server's own parts
// change what is stored. A change that changes nothing is not written; the last finalizer of an object that is being
// deleted takes the object with it.

import { isSameExcept, isSameJson } from '../../base/json.ts';
import type { AnyObject, ObjectMeta } from '../../kube/objects/object.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import type { KindBehaviour } from '../model/kind.ts';
import { conflict, notFound, wasModified } from '../model/status-errors.ts';
import { type Step, stepsOf } from '../model/steps.ts';
import { encodeStored, objectKey, parseStored } from '../model/stored.ts';
import type { Entry } from '../store/store.ts';
import { admit, again, isHeld, tryUntilDone } from './admission.ts';
import { encodeBounded } from './encode-bounded.ts';
import { keepManagers } from './field-managers.ts';
import { setOnUpdate } from './metadata.ts';
import { applyDefaults, validateObject } from './prepare.ts';

export interface Change {
  /** Main leaves status alone, status leaves the rest alone, all is for the server's own parts. */
  readonly part: 'main' | 'status' | 'all';
  /** `next` has set the managers of the fields; else they follow what has changed. */
  readonly isApply?: boolean;
  /** Given a fresh copy of what is there, which it may change and return. Called again when a race is lost. */
  next(current: AnyObject, step: Step): AnyObject | Promise<AnyObject>;
  /** Called if the object is not there; 404 when absent. */
  readonly onAbsent?: () => Promise<Answer | typeof again>;
}

export function modify(engine: Engine, call: Call, change: Change): Promise<Answer> {
  return tryUntilDone(`update ${call.served.resource} ${call.name}`, () => tryModify(engine, call, change));
}

async function tryModify(engine: Engine, call: Call, change: Change): Promise<Answer | typeof again> {
  const { served, name } = call;
  const key = objectKey(served.keyPrefix, call.namespace, name);
  const entry = await engine.store.get(key);
  if (entry === undefined) {
    if (change.onAbsent !== undefined) return change.onAbsent();
    throw notFound(served, name);
  }
  call.warnings.length = 0;
  const step = stepsOf(engine, entry.latin1.length + (call.request.body?.length ?? 0));
  await step();
  const before = parseStored(served, entry);
  await step();
  const next = await change.next(parseStored(served, entry), step);
  await step();
  const part = served.version.hasStatus ? change.part : 'all';
  const after = takeParts(part, before, next, served.kind.behaviour);
  checkPreconditions(call, after, before);
  setOnUpdate(after.metadata, before.metadata);
  applyDefaults(served, after);
  await step();
  await validateObject(served, { object: after, before, step });
  await step();
  call.warnings.push(...(served.kind.behaviour.warnings?.(after) ?? []));
  if (after.metadata.deletionTimestamp !== undefined && !isHeld(after)) return removeNow(engine, call, entry, after);
  const { alsoCompare, alsoWrite } = await admit(engine, call, {
    operation: 'update',
    object: after,
    previous: before,
  });
  await step();
  const { generation } = before.metadata;
  if (generation !== undefined && isSpecChanged(call, before, after)) after.metadata.generation = generation + 1;
  if (!change.isApply) await keepManagers(call, before, after, step);
  else if (after.metadata.managedFields?.length === 0) delete after.metadata.managedFields;
  await step();
  const value = encodeBounded(engine, served, { object: after, before: entry });
  await step();
  if (isUnchanged(entry, value, before, after)) return { kind: 'object', code: 200, stored: entry };
  const release = engine.quotas.reserve(call, name, { count: 0, bytes: value.length - entry.latin1.length });
  try {
    if (call.isDryRun) return { kind: 'object', code: 200, stored: { value, revision: entry.revision } };
    const result = await engine.store.commit({
      compares: [{ key, revision: entry.revision }, ...alsoCompare],
      writes: [{ key, value }, ...alsoWrite],
    });
    if (result.kind === 'conflict') return again;
    return { kind: 'object', code: 200, stored: { value, revision: result.revision } };
  } finally {
    release();
  }
}

function takeParts(
  part: Change['part'],
  before: AnyObject,
  next: AnyObject,
  { isMetadataInStatus = false }: KindBehaviour,
): AnyObject {
  if (part === 'all') return next;
  if (part === 'main') return withStatus(next, before['status']);
  const { resourceVersion, uid, managedFields } = next.metadata;
  const metadata = { ...before.metadata, resourceVersion };
  if (isMetadataInStatus) takeTexts(metadata, next.metadata);
  if (managedFields !== undefined) metadata.managedFields = managedFields;
  if (uid !== undefined) metadata.uid = uid;
  return withStatus({ ...before, metadata }, next['status']);
}

/** Labels and annotations; absent ones are removed. */
function takeTexts(metadata: ObjectMeta, next: ObjectMeta): void {
  for (const name of ['labels', 'annotations'] as const) {
    if (next[name] === undefined) delete metadata[name];
    else metadata[name] = next[name];
  }
}

function withStatus(object: AnyObject, status: unknown): AnyObject {
  if (status === undefined) delete object['status'];
  else object['status'] = status;
  return object;
}

function checkPreconditions(call: Call, after: AnyObject, before: AnyObject): void {
  const { uid, resourceVersion } = after.metadata;
  if (uid !== undefined && uid !== before.metadata.uid) {
    throw conflict(
      call.served,
      call.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${before.metadata.uid}`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
    throw wasModified(call.served, call.name);
  }
}

const outsideSpec = new Set(['apiVersion', 'kind', 'metadata']);
const outsideSpecAndStatus = new Set([...outsideSpec, 'status']);

function isSpecChanged(call: Call, before: AnyObject, after: AnyObject): boolean {
  return !isSameExcept(before, after, call.served.version.hasStatus ? outsideSpecAndStatus : outsideSpec);
}

/** The same bytes, or the same values in another order, which makes for the same length. */
function isUnchanged(entry: Entry, value: Uint8Array, before: AnyObject, after: AnyObject): boolean {
  if (value.length !== entry.latin1.length) return false;
  if (Buffer.compare(value, entry.value) === 0) return true;
  after.metadata.resourceVersion = before.metadata.resourceVersion;
  return isSameJson(before, after);
}

/** Takes the object out of the store. The response is its last state. */
export async function removeNow(
  engine: Engine,
  call: Call,
  entry: Entry,
  last: AnyObject,
): Promise<Answer | typeof again> {
  const previous = parseStored(call.served, entry);
  const { alsoCompare, alsoWrite } = await admit(engine, call, { operation: 'delete', object: last, previous });
  const stored = { value: encodeStored(call.served, last), revision: entry.revision };
  if (call.isDryRun) return { kind: 'object', code: 200, stored };
  const result = await engine.store.commit({
    compares: [{ key: entry.key, revision: entry.revision }, ...alsoCompare],
    writes: [{ key: entry.key }, ...alsoWrite],
  });
  return result.kind === 'conflict' ? again : { kind: 'object', code: 200, stored };
}
