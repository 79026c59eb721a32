// The managers of an object's fields through a write: an apply says itself what they are; any other write moves what it
// changed to its writer. An object is tracked from its creation if its creator named a manager, else from its first apply,
// which gives the fields to one manager that stands for all before. Writers that do neither pay nothing.

import { isObject, isSameJson } from '../../base/json.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { formatManagers, type Manager, type ManagerId, parseManagers } from '../fields/managers.ts';
import { type MapType, typeOfKind } from '../fields/merge-type.ts';
import { allFields, trackUpdate } from '../fields/ownership.ts';
import { messageOfKind } from '../messages/messages.ts';
import type { Call } from '../model/call.ts';
import { formatTime } from '../model/metadata.ts';
import type { Served } from '../model/registry.ts';
import type { Step } from '../model/steps.ts';
import type { Schema } from '../schema/schema.ts';

// A memo of constants, by schema.
const types = new WeakMap<Schema, MapType>();

export function mergeTypeOf({ apiVersion, kind, version }: Served): MapType {
  let type = types.get(version.schema);
  if (type === undefined) {
    const message = version.protobufMessage === undefined ? undefined : messageOfKind(apiVersion, kind.kind);
    types.set(version.schema, (type = typeOfKind(version.schema, message)));
  }
  return type;
}

export function managersOf(object: AnyObject): readonly Manager[] {
  return parseManagers(object.metadata.managedFields ?? []) ?? [];
}

/** The fields of a new object are its creator's, if that named itself. Fields that the server sets later are nobody's. */
export function setCreator(call: Call, object: AnyObject): void {
  if (call.query.size === 0 || !call.query.get('fieldManager')) return;
  const fields = allFields(mergeTypeOf(call.served), withoutStatus(call.served, object));
  const managers = formatManagers([{ ...writerOf(call), time: formatTime(call.nowMs), fields }]);
  if (managers.length > 0) object.metadata.managedFields = managers;
}

function withoutStatus({ version }: Served, object: AnyObject): AnyObject {
  if (!version.hasStatus) return object;
  const { status: _status, ...others } = object as AnyObject & { status?: unknown };
  return others as AnyObject;
}

/** Sets the managers of an object that is about to be stored in place of `before`. */
export async function keepManagers(call: Call, before: AnyObject, after: AnyObject, step: Step): Promise<void> {
  if (before.metadata.managedFields === undefined && after.metadata.managedFields === undefined) return;
  const managers = managersToKeep(before, after);
  if (managers.length === 0) {
    delete after.metadata.managedFields;
    return;
  }
  await step();
  const writer = writerOf(call);
  const time = timeOf(call);
  const tracked = trackUpdate({ type: mergeTypeOf(call.served), before, after, managers, writer, time });
  await step();
  if (tracked === managers && isSameJson(before.metadata.managedFields, after.metadata.managedFields)) return;
  after.metadata.managedFields = formatManagers(tracked);
}

/** A writer may replace the list, to rename a manager, or empty it; a list that is none is ignored. */
function managersToKeep(before: AnyObject, after: AnyObject): readonly Manager[] {
  const given = after.metadata.managedFields;
  const live = before.metadata.managedFields;
  if (given === undefined || isSameJson(given, live)) {
    if (live !== undefined) after.metadata.managedFields = live;
    return managersOf(before);
  }
  if (given.every(isEmptyEntry)) return [];
  return parseManagers(given) ?? managersOf(before);
}

function isEmptyEntry(entry: unknown): boolean {
  return entry === null || (isObject(entry) && Object.keys(entry).length === 0);
}

/** Kubernetes notes no time for those that scale. */
export function timeOf({ nowMs, subresource }: Call): string | undefined {
  return subresource === 'scale' ? undefined : formatTime(nowMs);
}

function writerOf({ query, request, served, subresource }: Call): ManagerId {
  const manager = query.get('fieldManager') || agentOf(request.headers['user-agent']);
  return { manager, operation: 'Update', apiVersion: served.apiVersion, subresource };
}

const managerLengthMax = 128;

function agentOf(userAgent: string | undefined): string {
  const name = (userAgent ?? '').split('/')[0]!.replace(/[^\x20-\x7e]/g, '');
  return name.slice(0, managerLengthMax) || 'unknown';
}
