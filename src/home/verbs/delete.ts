// Deletes an object, or marks it for deletion if something still holds it: a finalizer of its own, or one that the
// propagation policy asks for.

import { isSameJson } from '../../base/json.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import { formatTime } from '../model/metadata.ts';
import { conflict, detailsOf, notFound } from '../model/status-errors.ts';
import { encodeStored, objectKey, parseStored } from '../model/stored.ts';
import { admit, again, isHeld, tryUntilDone } from './admission.ts';
import { type DeleteOptions, type Propagation, readDeleteOptions } from './delete-options.ts';
import { removeNow } from './modify.ts';

export const foregroundFinalizer = 'foregroundDeletion';
export const orphanFinalizer = 'orphan';

export function remove(engine: Engine, call: Call): Promise<Answer> {
  return removeObject(engine, call, readDeleteOptions(engine, call));
}

export function removeObject(engine: Engine, call: Call, options: DeleteOptions): Promise<Answer> {
  const asked = options.isDryRun === call.isDryRun ? call : { ...call, isDryRun: options.isDryRun };
  return tryUntilDone(`delete ${call.served.resource} ${call.name}`, () => tryRemove(engine, asked, options));
}

async function tryRemove(engine: Engine, call: Call, options: DeleteOptions): Promise<Answer | typeof again> {
  const { served, name } = call;
  const key = objectKey(served.keyPrefix, call.namespace, name);
  const entry = await engine.store.get(key);
  if (entry === undefined) throw notFound(served, name);
  const before = parseStored(served, entry);
  checkPreconditions(call, before, options);
  const marked = mark(parseStored(served, entry), options.propagation, call.nowMs);
  if (!isHeld(marked)) {
    const removed = await removeNow(engine, call, entry, before);
    return removed === again ? again : { kind: 'json', code: 200, value: success(call, before) };
  }
  // The kind may refuse; what it would add belongs to the commit that takes the object away, which comes later.
  await admit(engine, call, { operation: 'delete', object: marked, previous: before });
  if (isSameJson(before, marked)) return { kind: 'object', code: 200, stored: entry };
  const value = encodeStored(served, marked);
  if (call.isDryRun) return { kind: 'object', code: 200, stored: { value, revision: entry.revision } };
  const result = await engine.store.commit({
    compares: [{ key, revision: entry.revision }],
    writes: [{ key, value }],
  });
  if (result.kind === 'conflict') return again;
  return { kind: 'object', code: 200, stored: { value, revision: result.revision } };
}

function checkPreconditions(call: Call, object: AnyObject, options: DeleteOptions): void {
  const { uid, resourceVersion } = object.metadata;
  if (options.uid !== undefined && options.uid !== uid) {
    const why = `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid}`;
    throw conflict(call.served, call.name, why);
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    const why = `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`;
    throw conflict(call.served, call.name, why);
  }
}

/** The object as it is once its deletion was asked for. */
function mark(object: AnyObject, propagation: Propagation | undefined, nowMs: number): AnyObject {
  const { metadata } = object;
  const finalizers = finalizersUnder(propagation, metadata.finalizers ?? []);
  if (finalizers.length > 0) metadata.finalizers = [...finalizers];
  else delete metadata.finalizers;
  if (metadata.deletionTimestamp !== undefined) return object;
  metadata.deletionTimestamp = formatTime(nowMs);
  metadata.deletionGracePeriodSeconds = 0;
  if (metadata.generation !== undefined) metadata.generation++;
  if (object.kind === 'Namespace' && object.apiVersion === 'v1') {
    object['status'] = { ...(object['status'] as object | undefined), phase: 'Terminating' };
  }
  return object;
}

function finalizersUnder(propagation: Propagation | undefined, finalizers: readonly string[]): readonly string[] {
  if (propagation === undefined) return finalizers;
  const others = finalizers.filter((each) => each !== foregroundFinalizer && each !== orphanFinalizer);
  if (propagation === 'Foreground') return [...others, foregroundFinalizer];
  return propagation === 'Orphan' ? [...others, orphanFinalizer] : others;
}

function success(call: Call, object: AnyObject): unknown {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { ...detailsOf(call.served, call.name), uid: object.metadata.uid },
  };
}
