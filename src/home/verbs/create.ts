// Creates an object, or answers a review. The namespace it goes into is part of the commit: nothing is created in one
// that has just been deleted.

import type { AnyObject } from '../../kube/objects/object.ts';
import { checkWriteOptions, readObject } from '../encoding/body.ts';
import { type Answer, type Call, contextOf, type Engine } from '../model/call.ts';
import { StatusError } from '../model/status.ts';
import { alreadyExists, badRequest, methodNotAllowed } from '../model/status-errors.ts';
import { type Step, stepsOf } from '../model/steps.ts';
import { objectKey } from '../model/stored.ts';
import type { CommitResult, Compare } from '../store/store.ts';
import { admit, again, tryUntilDone } from './admission.ts';
import { encodeBounded } from './encode-bounded.ts';
import { setCreator } from './field-managers.ts';
import { generateName, setOnCreate } from './metadata.ts';
import { openNamespace } from './open-namespace.ts';
import { applyDefaults, checkPlace, validateFields, validateObject } from './prepare.ts';

export async function create(engine: Engine, call: Call): Promise<Answer> {
  const { served } = call;
  if (served.kind.isNamespaced && call.namespace === '') throw methodNotAllowed();
  if (served.isTerminating) throw definitionIsTerminating();
  checkWriteOptions(call, 'CreateOptions');
  if (served.kind.behaviour.review !== undefined) return review(engine, call);
  const read = async (step: Step) => {
    const object = await readObject(engine, call, step);
    delete object.metadata.managedFields;
    return object;
  };
  return createFrom(engine, call, { read, setManagers: setCreator });
}

interface Creation {
  /** What is to be created, made of the request. Called again when a race is lost. */
  read(step: Step): Promise<AnyObject>;
  /** Sets the managers of the object with its defaults; absent if `read` has done so. */
  setManagers?(call: Call, object: AnyObject): void;
}

export function createFrom(engine: Engine, call: Call, creation: Creation): Promise<Answer> {
  const { served } = call;
  if (served.isTerminating) throw definitionIsTerminating();
  return tryUntilDone(`create ${served.resource}`, () => tryCreate(engine, call, creation));
}

function definitionIsTerminating(): StatusError {
  const message = 'nothing can be created while the definition of the kind is being deleted';
  return new StatusError('MethodNotAllowed', message);
}

async function review(engine: Engine, call: Call): Promise<Answer> {
  const { served } = call;
  const step = stepsOf(engine, call.request.body?.length ?? 0);
  const object = await readObject(engine, call, step);
  await step();
  checkPlace(call, object);
  applyDefaults(served, object);
  validateFields(served, object);
  const value = await served.kind.behaviour.review!(object, contextOf(engine, call));
  return { kind: 'json', code: 201, value };
}

async function tryCreate(engine: Engine, call: Call, creation: Creation): Promise<Answer | typeof again> {
  const { served } = call;
  call.warnings.length = 0;
  const step = stepsOf(engine, call.request.body?.length ?? 0);
  const object = await creation.read(step);
  await step();
  checkPlace(call, object);
  const isNameGenerated = prepareMetadata(engine, call, object);
  applyDefaults(served, object);
  await step();
  await validateObject(served, { object, before: undefined, step });
  await step();
  call.warnings.push(...(served.kind.behaviour.warnings?.(object) ?? []));
  creation.setManagers?.(call, object);
  const key = objectKey(served.keyPrefix, call.namespace, object.metadata.name);
  const compares: Compare[] = [{ key, revision: 0 }];
  if (served.kind.isNamespaced) compares.push(await openNamespace(engine, call, object.metadata.name));
  const { alsoCompare, alsoWrite } = await admit(engine, call, { operation: 'create', object, previous: undefined });
  await step();
  const value = encodeBounded(engine, served, { object, before: undefined });
  const release = engine.quotas.reserve(call, object.metadata.name, { count: 1, bytes: value.length });
  try {
    if (call.isDryRun) return await dryRun(engine, call, key, object, value);
    const writes = [{ key, value }, ...alsoWrite];
    const result = await engine.store.commit({ compares: [...compares, ...alsoCompare], writes });
    return created(call, object, { result, value, key, isNameGenerated });
  } finally {
    release();
  }
}

interface Created {
  readonly result: CommitResult;
  readonly value: Uint8Array;
  readonly key: string;
  readonly isNameGenerated: boolean;
}

function created({ served }: Call, object: AnyObject, made: Created): Answer | typeof again {
  const { result, value, key, isNameGenerated } = made;
  if (result.kind === 'committed') return { kind: 'object', code: 201, stored: { value, revision: result.revision } };
  if (result.key === key && !isNameGenerated) throw alreadyExists(served, object.metadata.name);
  return again;
}

/** True if the server made up the name, and may make up another one. */
function prepareMetadata(engine: Engine, call: Call, object: AnyObject): boolean {
  const { metadata } = object;
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '0') {
    throw badRequest('metadata.resourceVersion must be empty on create');
  }
  delete metadata.resourceVersion;
  const { hasGeneration = false } = call.served.kind.behaviour;
  setOnCreate(metadata, { uid: engine.world.random.uuid(), nowMs: call.nowMs, hasGeneration });
  if (call.served.version.hasStatus) delete object['status'];
  if (metadata.name !== '' || metadata.generateName === undefined) return false;
  metadata.name = generateName(metadata.generateName, engine.world.random.bytes(5));
  return true;
}

async function dryRun(engine: Engine, call: Call, key: string, object: AnyObject, value: Uint8Array): Promise<Answer> {
  if ((await engine.store.get(key)) !== undefined) throw alreadyExists(call.served, object.metadata.name);
  return { kind: 'object', code: 201, stored: { value, revision: 0 } };
}
