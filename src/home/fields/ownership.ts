// The rules of server-side apply: what a configuration makes of an object, which fields its manager owns afterwards, and with
// whom it is in conflict; and how fields move to a manager that simply writes. Pure.

import { isObject, type JsonObject, setMember } from '../../base/json.ts';
import type { Pieces } from '../../base/turns.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import {
  difference,
  emptySet,
  type FieldSet,
  intersection,
  isEmptySet,
  isSameSet,
  setOf,
  union,
  unionOf,
} from './field-set.ts';
import { keyOfManager, type Manager, type ManagerId } from './managers.ts';
import type { MapType } from './merge-type.ts';
import {
  asTyped,
  compareValues,
  type Difference,
  fieldsOf,
  isNoDifference,
  mergeValues,
  withNamedFields,
  withoutFields,
} from './values.ts';

export interface Conflict {
  readonly manager: ManagerId;
  readonly fields: FieldSet;
}

export class ApplyConflict extends Error {
  readonly conflicts: readonly Conflict[];

  constructor(conflicts: readonly Conflict[]) {
    super('fields of the configuration belong to other managers');
    this.conflicts = conflicts;
  }
}

/** The server's own fields are never owned. */
const unowned = setOf([
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name) => ['f:metadata', `f:${name}`]),
]);

export interface Managed {
  readonly object: AnyObject;
  readonly managers: readonly Manager[];
}

export interface ApplyInput {
  readonly type: MapType;
  readonly live: AnyObject;
  readonly managers: readonly Manager[];
  readonly applier: ManagerId;
  readonly configuration: AnyObject;
  readonly isForced: boolean;
  /** Undefined for a manager whose changes have no time. */
  readonly time: string | undefined;
  /** Fields on which a conflict is no conflict. */
  readonly excused?: FieldSet;
  /** The object as it will be stored: with defaults, and with fields of the server's own making. */
  readonly complete: (object: AnyObject) => AnyObject;
}

/** Throws ApplyConflict. A large object takes long: each piece is one walk over it. */
export function* applyInPieces(input: ApplyInput): Pieces<Managed> {
  const { type, live, applier, configuration, time } = input;
  const key = keyOfManager(applier);
  const present = typedManagers(type, input.managers);
  const before = present.find((manager) => keyOfManager(manager) === key);
  yield;
  const fields = difference(fieldsOf(type, configuration), unowned);
  const own: Manager = { ...applier, fields, ...(before?.time === undefined ? {} : { time: before.time }) };
  const managers = [...present.filter((manager) => manager !== before), own];
  yield;
  const merged = mergeValues(type, live, configuration) as AnyObject;
  yield;
  const isLess = before !== undefined && !isEmptySet(difference(before.fields, fields));
  const pruned = isLess ? yield* prune({ type, merged, managers, lastFields: before.fields }) : merged;
  yield;
  const changed = compareValues(type, live, pruned);
  yield;
  const others = settle({ managers, own, changed, isForced: input.isForced, excused: input.excused ?? emptySet });
  yield;
  const object = input.complete(pruned);
  yield;
  const isChanged = !isNoDifference(withoutUnowned(compareValues(type, live, object)));
  return { object, managers: [...others, isChanged ? timed(own, time) : own] };
}

/** A writer owns what it changed or added. Others lose that, and what is gone. */
export function trackUpdate(input: {
  readonly type: MapType;
  readonly before: AnyObject;
  readonly after: AnyObject;
  readonly managers: readonly Manager[];
  readonly writer: ManagerId;
  readonly time: string | undefined;
}): readonly Manager[] {
  const changed = withoutUnowned(compareValues(input.type, input.before, input.after));
  if (isNoDifference(changed)) return input.managers;
  const taken = union(changed.modified, changed.added);
  const key = keyOfManager(input.writer);
  const managers = typedManagers(input.type, input.managers).map((manager) => {
    const left = difference(difference(manager.fields, taken), changed.removed);
    return isSameSet(left, manager.fields) ? manager : { ...manager, fields: left };
  });
  const own = managers.find((manager) => keyOfManager(manager) === key);
  if (isEmptySet(taken)) return managers.filter(({ fields }) => !isEmptySet(fields));
  const mine = timed({ ...input.writer, fields: union(own?.fields ?? emptySet, taken) }, input.time);
  return [...managers.filter((manager) => manager !== own && !isEmptySet(manager.fields)), mine];
}

function timed(manager: Manager, time: string | undefined): Manager {
  return time === undefined ? manager : { ...manager, time };
}

/** Everything that an object has, as its writer owns it. */
export function allFields(type: MapType, object: AnyObject): FieldSet {
  const { added, modified } = compareValues(type, emptyLike(type, object), object);
  return difference(union(added, modified), unowned);
}

/** Those parts of an object that an empty one has too. */
function emptyLike(type: MapType, object: JsonObject): JsonObject {
  const empty: JsonObject = {};
  for (const [name, value] of Object.entries(object)) {
    const field = type.fieldOf(name);
    if (field?.kind === 'map' && field.isAlwaysThere && isObject(value))
      setMember(empty, name, emptyLike(field, value));
  }
  return empty;
}

/** Their sets fit the type as it is today: the schema may have changed since they were written. */
function typedManagers(type: MapType, managers: readonly Manager[]): readonly Manager[] {
  return managers.map((manager) => {
    const fields = asTyped(type, manager.fields);
    return fields === manager.fields ? manager : { ...manager, fields };
  });
}

function withoutUnowned({ added, modified, removed }: Difference): Difference {
  return {
    added: difference(added, unowned),
    modified: difference(modified, unowned),
    removed: difference(removed, unowned),
  };
}

/** Takes out fields that the applier owned before, applies no longer, and nobody else owns. */
function* prune(input: {
  readonly type: MapType;
  readonly merged: AnyObject;
  /** With the applier's new fields. */
  readonly managers: readonly Manager[];
  readonly lastFields: FieldSet;
}): Pieces<AnyObject> {
  const { type, merged } = input;
  const named = (set: FieldSet) => withNamedFields(type, set);
  const without = (set: FieldSet) => withoutFields(type, merged, set) as AnyObject;
  const last = named(input.lastFields);
  const has = named(fieldsOf(type, merged));
  yield;
  // The server's own fields stay whoever leaves.
  const owned = named(unionOf([unowned, ...input.managers.map(({ fields }) => fields)]));
  yield;
  // A removed item takes all of its fields with it: those that somebody owns come back, and those that were never the applier's.
  const afterFirst = named(fieldsOf(type, without(last)));
  yield;
  const second = without(difference(difference(has, afterFirst), owned));
  yield;
  const afterSecond = named(fieldsOf(type, second));
  yield;
  return without(intersection(difference(has, afterSecond), last));
}

interface Settlement {
  readonly managers: readonly Manager[];
  readonly own: Manager;
  readonly changed: Difference;
  readonly isForced: boolean;
  readonly excused: FieldSet;
}

/** The other managers, without the fields that the applier takes from them and those that are gone. */
function settle({ managers, own, changed, isForced, excused }: Settlement): Manager[] {
  const taken = union(changed.modified, changed.added);
  const conflicts: Conflict[] = [];
  const others: Manager[] = [];
  for (const manager of managers) {
    if (manager === own) continue;
    const contested = intersection(manager.fields, taken);
    const refused = difference(contested, excused);
    if (!isEmptySet(refused)) conflicts.push({ manager, fields: refused });
    const left = difference(difference(manager.fields, contested), changed.removed);
    if (!isEmptySet(left)) others.push(isSameSet(left, manager.fields) ? manager : { ...manager, fields: left });
  }
  if (conflicts.length > 0 && !isForced) throw new ApplyConflict(conflicts);
  return others;
}
