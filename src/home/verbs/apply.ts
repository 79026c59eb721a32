// Server-side apply: a configuration is merged into the object by the rules of fields/, or becomes the object if there is
// none. Fields that belong to other managers are refused unless the request forces them.

import { invalid, required, tooLong } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { admitFields, asObject, checkWriteOptions, decodeJson, readBytes } from '../encoding/body.ts';
import { type DecodedBody, decodeYaml } from '../encoding/yaml-body.ts';
import { formatPath, pathsOf } from '../fields/field-set.ts';
import { kubectlManager, renewLastApplied, unchangedSinceLastApplied } from '../fields/last-applied.ts';
import { formatManagers, type Manager, type ManagerId } from '../fields/managers.ts';
import { ApplyConflict, allFields, applyConfiguration, type Conflict } from '../fields/ownership.ts';
import { checkApplied, FieldsError } from '../fields/values.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import { formatTime } from '../model/metadata.ts';
import { invalidObject, StatusError } from '../model/status.ts';
import { badRequest, conflict, forbidden, notFound } from '../model/status-errors.ts';
import { stepsOf } from '../model/steps.ts';
import { createFrom } from './create.ts';
import { managersOf, mergeTypeOf } from './field-managers.ts';
import { modify } from './modify.ts';
import { applyDefaults } from './prepare.ts';

export const applyPatchType = 'application/apply-patch+yaml';
const beforeFirstApply = 'before-first-apply';
const managerBytesMax = 128;

export async function apply(engine: Engine, call: Call): Promise<Answer> {
  checkWriteOptions(call);
  const { manager, isForced } = readApplyOptions(call);
  const step = stepsOf(engine, call.request.body?.length ?? 0);
  await step();
  const read = () => readConfiguration(engine, call);
  read();
  await step();
  const { served, subresource } = call;
  const applier: ManagerId = { manager, operation: 'Apply', apiVersion: served.apiVersion, subresource };
  return modify(engine, call, {
    part: subresource === 'status' ? 'status' : 'main',
    isApply: true,
    next: async (current, nextStep) => {
      const { configuration, duplicates } = read();
      await nextStep();
      return admitFields(call, applyTo(call, current, { configuration, applier, isForced }), duplicates);
    },
    onAbsent: () => createByApply(engine, call, applier, read),
  });
}

interface Application {
  readonly configuration: AnyObject;
  readonly applier: ManagerId;
  readonly isForced: boolean;
}

function applyTo(call: Call, live: AnyObject, { configuration, applier, isForced }: Application): AnyObject {
  const type = mergeTypeOf(call.served);
  const time = formatTime(call.nowMs);
  checkPreconditions(call, live, configuration);
  const isKubectl = applier.manager === kubectlManager;
  try {
    const { object, managers } = applyConfiguration({
      type,
      live,
      managers: trackedManagers(call, live),
      applier,
      configuration,
      isForced,
      time,
      ...(isKubectl ? { excused: unchangedSinceLastApplied(type, live) } : {}),
      complete: (merged) => {
        const completed = structuredClone(merged);
        if (isKubectl) renewLastApplied(completed, configuration);
        applyDefaults(call.served, completed);
        return completed;
      },
    });
    return { ...object, metadata: { ...object.metadata, managedFields: formatManagers(managers) } };
  } catch (error) {
    if (error instanceof ApplyConflict) throw conflictStatus(error.conflicts);
    throw error;
  }
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
): Promise<Answer> {
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
  return createFrom(engine, call, async () => {
    const { configuration, duplicates } = read();
    const { uid } = configuration.metadata;
    if (uid !== undefined && uid !== '')
      throw conflict(served, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: `);
    const type = mergeTypeOf(served);
    const empty = { apiVersion: served.apiVersion, kind: served.kind.kind, metadata: {} } as AnyObject;
    const time = formatTime(call.nowMs);
    const { managers } = applyConfiguration({
      ...{ type, live: empty, managers: [], applier, configuration, isForced: true, time },
      complete: (object) => object,
    });
    const object = admitFields(call, structuredClone(configuration), duplicates);
    delete object.metadata.resourceVersion;
    object.metadata.name ||= name;
    object.metadata.managedFields = formatManagers(managers);
    return object;
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
  const configuration = subresource === 'status' ? statusOf(object) : object;
  checkFields(call, configuration);
  return { configuration, duplicates };
}

function statusOf({ apiVersion, kind, metadata, status }: AnyObject): AnyObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, status } as AnyObject;
}

/** Clients that speak JSON send it under the name of YAML. */
function decodeApplied(engine: Engine, call: Call): DecodedBody {
  const body = readBytes(engine, call);
  const start = body.find((byte) => byte > 0x20);
  return start === 0x7b ? decodeJson(body, engine.limits.valuesMax) : decodeYaml(body);
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
  const errors = [];
  if (manager === '') errors.push(required('fieldManager', 'is required for apply patch'));
  if (Buffer.byteLength(manager) > managerBytesMax) errors.push(tooLong('fieldManager', managerBytesMax));
  if (/\p{C}/u.test(manager)) errors.push(invalid('fieldManager', manager, 'should only contain printable characters'));
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'PatchOptions', name: '' }, errors);
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
