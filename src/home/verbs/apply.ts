// Server-side apply: a configuration is merged into the object by the rules of fields/, or becomes the object if there is
// none. Fields that belong to other managers are refused unless the request forces them.

import { isObject, type JsonObject } from '../../base/json.ts';
import { inSteps } from '../../base/turns.ts';
import { required, tooMany } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { admitFields, asObject, checkWriteOptions, decodeJson, readBytes } from '../encoding/body.ts';
import { type DecodedBody, decodeYaml } from '../encoding/yaml-body.ts';
import { formatPath, isEmptySet, pathsOf } from '../fields/field-set.ts';
import { kubectlManager, renewLastApplied, unchangedSinceLastApplied } from '../fields/last-applied.ts';
import { appliersMax, formatManagers, type Manager, type ManagerId } from '../fields/managers.ts';
import { ApplyConflict, type ApplyInput, allFields, applyInPieces, type Conflict } from '../fields/ownership.ts';
import { checkApplied, FieldsError } from '../fields/values.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import { formatTime } from '../model/metadata.ts';
import { invalidObject, StatusError } from '../model/status.ts';
import { badRequest, conflict, forbidden, notFound } from '../model/status-errors.ts';
import { type Step, stepsOf } from '../model/steps.ts';
import { objectKey } from '../model/stored.ts';
import { again } from './admission.ts';
import { createFrom } from './create.ts';
import { managersOf, mergeTypeOf, timeOf } from './field-managers.ts';
import { modify } from './modify.ts';
import { applyDefaults, checkPlace } from './prepare.ts';
import { type Face, faceOf } from './scale.ts';

export const applyPatchType = 'application/apply-patch+yaml';
const beforeFirstApply = 'before-first-apply';

export async function apply(engine: Engine, call: Call): Promise<Answer> {
  checkWriteOptions(call, 'PatchOptions');
  const { manager, isForced } = readApplyOptions(call);
  const step = stepsOf(engine, call.request.body?.length ?? 0);
  await step();
  const face = faceOf(call);
  const read = () => readConfiguration(engine, face.call);
  read();
  await step();
  const { served, subresource } = call;
  const applier: ManagerId = { manager, operation: 'Apply', apiVersion: served.apiVersion, subresource };
  const modified = modify(engine, call, {
    part: subresource === 'status' ? 'status' : 'main',
    isApply: true,
    next: async (current, nextStep) => {
      const { configuration, duplicates } = read();
      await nextStep();
      const application = { configuration: face.configurationOf(configuration), applier, isForced, face };
      const applied = await applyTo(call, current, { ...application, step: nextStep });
      await nextStep();
      return admitFields(call, applied, duplicates);
    },
    onAbsent: () => createByApply(engine, call, applier, read),
  });
  return modified.then(face.answer);
}

interface Application {
  readonly configuration: AnyObject;
  readonly applier: ManagerId;
  readonly isForced: boolean;
  readonly face: Face;
  readonly step: Step;
}

async function applyTo(
  call: Call,
  live: AnyObject,
  { configuration, applier, isForced, face, step }: Application,
): Promise<AnyObject> {
  const type = mergeTypeOf(call.served);
  const time = timeOf(call);
  checkPreconditions(call, live, configuration);
  const present = trackedManagers(call, live);
  // No part of what is merged: the list is made anew.
  delete live.metadata.managedFields;
  const isKubectl = applier.manager === kubectlManager;
  try {
    const input: ApplyInput = {
      type,
      live,
      managers: present,
      applier,
      configuration,
      isForced,
      time,
      ...(isKubectl ? { excused: unchangedSinceLastApplied(type, live) } : {}),
      complete: (merged) => {
        const completed = structuredClone(merged);
        if (isKubectl) renewLastApplied(completed, configuration);
        face.complete(live, completed);
        applyDefaults(call.served, completed);
        return completed;
      },
    };
    await step();
    const { object, managers } = await inSteps(applyInPieces(input), step);
    await step();
    checkCount(call, managers);
    return { ...object, metadata: { ...object.metadata, managedFields: formatManagers(managers) } };
  } catch (error) {
    if (error instanceof ApplyConflict) throw conflictStatus(error.conflicts.map(face.shown));
    throw error;
  }
}

function checkCount({ served, name }: Call, managers: readonly Manager[]): void {
  const count = managers.filter(({ operation, fields }) => operation === 'Apply' && !isEmptySet(fields)).length;
  if (count <= appliersMax) return;
  const subject = { group: served.kind.group, kind: served.kind.kind, name };
  throw invalidObject(subject, [tooMany('metadata.managedFields', count, appliersMax)]);
}

/** The fields of an object without managers go to one that stands for all earlier writers. */
function trackedManagers(call: Call, live: AnyObject): readonly Manager[] {
  const managers = managersOf(live);
  if (managers.length > 0) return managers;
  const { apiVersion } = call.served;
  const fields = allFields(mergeTypeOf(call.served), live);
  const time = formatTime(call.nowMs);
  return [{ manager: beforeFirstApply, operation: 'Update', apiVersion, subresource: '', time, fields }];
}

function checkPreconditions(call: Call, live: AnyObject, { metadata }: AnyObject): void {
  const { resourceVersion } = metadata ?? {};
  if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== live.metadata.resourceVersion) {
    const why = 'the object has been modified; please apply your changes to the latest version and try again';
    throw conflict(call.served, call.name, why);
  }
}

/** Creating by apply needs the right to create beside the right to patch. */
async function createByApply(
  engine: Engine,
  call: Call,
  applier: ManagerId,
  read: () => Configuration,
): Promise<Answer | typeof again> {
  const { served, namespace, name } = call;
  if (call.subresource !== '') throw notFound(served, name);
  const { group, plural: resource } = served.kind;
  const attributes = {
    verb: 'create',
    group,
    version: served.version.name,
    resource,
    subresource: '',
    namespace,
    name,
  };
  if (!call.may(attributes)) throw forbidden(call.user, attributes, '');
  const made = createFrom(engine, call, {
    read: async (step) => {
      const { configuration, duplicates } = read();
      await step();
      const { uid } = configuration.metadata;
      if (uid !== undefined && uid !== '')
        throw conflict(served, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: `);
      const type = mergeTypeOf(served);
      const empty = { apiVersion: served.apiVersion, kind: served.kind.kind, metadata: {} } as AnyObject;
      const time = formatTime(call.nowMs);
      const pieces = applyInPieces({
        ...{ type, live: empty, managers: [], applier, configuration, isForced: true, time },
        complete: (object) => object,
      });
      const { managers } = await inSteps(pieces, step);
      await step();
      const object = admitFields(call, structuredClone(configuration), duplicates);
      delete object.metadata.resourceVersion;
      object.metadata.name ||= name;
      const entries = formatManagers(managers);
      if (entries.length > 0) object.metadata.managedFields = entries;
      return object;
    },
  });
  return made.catch(async (error: unknown): Promise<typeof again> => {
    const isRace = error instanceof StatusError && error.reason === 'AlreadyExists';
    const key = objectKey(served.keyPrefix, namespace, name);
    // Somebody else created it: the configuration is applied to theirs.
    if (isRace && (await engine.store.get(key)) !== undefined) return again;
    throw error;
  });
}

interface Configuration {
  readonly configuration: AnyObject;
  readonly duplicates: readonly string[];
}

function readConfiguration(engine: Engine, call: Call): Configuration {
  const { served, name, subresource } = call;
  const { value, duplicates } = decodeApplied(engine, call);
  const object = asObject(value);
  if (object.apiVersion !== served.apiVersion || object.kind !== served.kind.kind)
    throw badRequest(`invalid object type: ${typeText(object)}`);
  const metadata = (object.metadata ??= { name }) as AnyObject['metadata'] & { managedFields?: unknown };
  if (metadata.managedFields !== undefined && metadata.managedFields !== null)
    throw badRequest('metadata.managedFields must be nil');
  if (metadata.name !== undefined && metadata.name !== '' && metadata.name !== name)
    throw badRequest(`the name of the object (${String(metadata.name)}) does not match the name on the URL (${name})`);
  // One part of an object is written at a time: the other is no part of the configuration.
  if (served.version.hasStatus && subresource === '') delete object['status'];
  const configuration = subresource === 'status' ? statusOf(call, object) : object;
  checkFields(call, configuration);
  const place = configuration.metadata as { name?: unknown; namespace?: unknown };
  place.name ||= name;
  place.namespace ||= call.namespace;
  checkPlace(call, configuration);
  return { configuration, duplicates };
}

const placeFields = ['name', 'namespace', 'uid', 'resourceVersion'];
const textFields = ['labels', 'annotations'];

function statusOf({ served }: Call, object: AnyObject): AnyObject {
  const fields = served.kind.behaviour.isMetadataInStatus ? [...placeFields, ...textFields] : placeFields;
  const metadata = isObject(object.metadata) ? pick(object.metadata, fields) : object.metadata;
  return { ...pick(object, ['apiVersion', 'kind', 'status']), metadata } as AnyObject;
}

function pick(from: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
}

/** Clients that speak JSON send it under the name of YAML, which allows what JSON does not, such as a comma before a bracket. */
function decodeApplied(engine: Engine, call: Call): DecodedBody {
  const body = readBytes(engine, call);
  const start = body.find((byte) => byte > 0x20);
  if (start !== 0x7b) return decodeYaml(body);
  try {
    return decodeJson(body, engine.limits.valuesMax);
  } catch (error) {
    if (!(error instanceof StatusError && error.cause instanceof SyntaxError)) throw error;
    return decodeYaml(body);
  }
}

function checkFields({ served, namespace, name }: Call, configuration: AnyObject): void {
  try {
    checkApplied(mergeTypeOf(served), configuration);
  } catch (error) {
    if (!(error instanceof FieldsError)) throw error;
    const what = `${namespace}/${name}; ${served.apiVersion}, Kind=${served.kind.kind}`;
    throw badRequest(`failed to create typed patch object (${what}): ${error.message}`, error);
  }
}

function typeText({ apiVersion, kind }: AnyObject): string {
  const version = String(apiVersion ?? '');
  return `${version.includes('/') ? version : `/${version}`}, Kind=${String(kind ?? '')}`;
}

function readApplyOptions({ query }: Call): { readonly manager: string; readonly isForced: boolean } {
  const manager = query.get('fieldManager') ?? '';
  if (manager === '') {
    const error = required('fieldManager', 'is required for apply patch');
    throw invalidObject({ group: 'meta.k8s.io', kind: 'PatchOptions', name: '' }, [error]);
  }
  return { manager, isForced: query.get('force') === 'true' || query.get('force') === '1' };
}

function conflictStatus(conflicts: readonly Conflict[]): StatusError {
  const named = conflicts.map(({ manager, fields }) => ({
    who: managerText(manager),
    paths: pathsOf(fields).map(formatPath),
  }));
  const count = named.reduce((sum, { paths }) => sum + paths.length, 0);
  const sorted = [...named].sort((a, b) => (a.who < b.who ? -1 : 1));
  const list =
    count === 1
      ? `conflict with ${named[0]!.who}: ${named[0]!.paths[0]}`
      : sorted
          .map(({ who, paths }) => [`conflicts with ${who}:`, ...paths.map((path) => `- ${path}`)].join('\n'))
          .join('\n');
  const causes = named.flatMap(({ who, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${who}`, field })),
  );
  const message = `Apply failed with ${count} conflict${count === 1 ? '' : 's'}: ${list}`;
  return new StatusError('Conflict', message, { details: { causes } });
}

function managerText({ manager, operation, apiVersion, subresource }: ManagerId): string {
  const part = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  const using = operation === 'Update' ? ` using ${apiVersion}` : '';
  return `${JSON.stringify(manager)}${part}${using}`;
}
