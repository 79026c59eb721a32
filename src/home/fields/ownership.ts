// The rules of server-side apply: what a configuration makes of an object, which fields its manager owns afterwards, and with
// whom it is in conflict; and how fields move to a manager that simply writes. Pure.

import type { AnyObject } from '../../kube/objects/object.ts';
import {
  difference,
  emptySet,
  type FieldSet,
  FieldSetBuilder,
  intersection,
  isEmptySet,
  isSameSet,
  union,
} from './field-set.ts';
import { keyOfManager, type Manager, type ManagerId } from './managers.ts';
import type { MapType } from './merge-type.ts';
import {
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
const unowned = ((): FieldSet => {
  const set = new FieldSetBuilder();
  for (const name of ['apiVersion', 'kind', 'metadata']) set.insert([`f:${name}`]);
  for (const name of [
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'generation',
    'managedFields',
    'resourceVersion',
  ])
    set.insert(['f:metadata', `f:${name}`]);
  return set.build();
})();

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
  readonly time: string;
  /** Fields on which a conflict is no conflict. */
  readonly excused?: FieldSet;
  /** The object as it will be stored: with defaults, and with fields of the server's own making. */
  readonly complete: (object: AnyObject) => AnyObject;
}

/** Throws ApplyConflict. */
export function applyConfiguration(input: ApplyInput): Managed {
  const { type, live, applier, configuration, time } = input;
  const key = keyOfManager(applier);
  const before = input.managers.find((manager) => keyOfManager(manager) === key);
  const fields = difference(fieldsOf(type, configuration), unowned);
  const own: Manager = { ...applier, fields, ...(before?.time === undefined ? {} : { time: before.time }) };
  const managers = [...input.managers.filter((manager) => manager !== before), own];
  const merged = mergeValues(type, live, configuration) as AnyObject;
  const pruned = prune({ type, merged, managers, lastFields: before?.fields ?? emptySet });
  const changed = compareValues(type, live, pruned);
  const others = settle({ managers, own, changed, isForced: input.isForced, excused: input.excused ?? emptySet });
  const object = input.complete(pruned);
  const isChanged = !isNoDifference(withoutUnowned(compareValues(type, live, object)));
  return { object, managers: [...others, isChanged ? { ...own, time } : own] };
}

/** A writer owns what it changed or added. Others lose that, and what is gone. */
export function trackUpdate(input: {
  readonly type: MapType;
  readonly before: AnyObject;
  readonly after: AnyObject;
  readonly managers: readonly Manager[];
  readonly writer: ManagerId;
  readonly time: string;
}): readonly Manager[] {
  const changed = withoutUnowned(compareValues(input.type, input.before, input.after));
  if (isNoDifference(changed)) return input.managers;
  const taken = union(changed.modified, changed.added);
  const key = keyOfManager(input.writer);
  const managers = input.managers.map((manager) => {
    const left = difference(difference(manager.fields, taken), changed.removed);
    return isSameSet(left, manager.fields) ? manager : { ...manager, fields: left };
  });
  const own = managers.find((manager) => keyOfManager(manager) === key);
  if (isEmptySet(taken)) return managers.filter(({ fields }) => !isEmptySet(fields));
  const mine: Manager = { ...input.writer, time: input.time, fields: union(own?.fields ?? emptySet, taken) };
  return [...managers.filter((manager) => manager !== own && !isEmptySet(manager.fields)), mine];
}

/** Everything that an object has, as its writer owns it. */
export function allFields(type: MapType, object: AnyObject): FieldSet {
  return difference(compareValues(type, {}, object).added, unowned);
}

function withoutUnowned({ added, modified, removed }: Difference): Difference {
  return {
    added: difference(added, unowned),
    modified: difference(modified, unowned),
    removed: difference(removed, unowned),
  };
}

/** Takes out fields that the applier owned before, applies no longer, and nobody else owns. */
function prune(input: {
  readonly type: MapType;
  readonly merged: AnyObject;
  /** With the applier's new fields. */
  readonly managers: readonly Manager[];
  readonly lastFields: FieldSet;
}): AnyObject {
  const { type, merged } = input;
  if (isEmptySet(input.lastFields)) return merged;
  const named = (set: FieldSet) => withNamedFields(type, set);
  const last = named(input.lastFields);
  const has = named(fieldsOf(type, merged));
  const hasAfter = (object: unknown) => named(fieldsOf(type, object));
  const without = (set: FieldSet) => withoutFields(type, merged, set) as AnyObject;
  const owned = named(input.managers.reduce((all, { fields }) => union(all, fields), emptySet));
  // A removed item takes all of its fields with it: those that somebody owns come back, and those that were never the applier's.
  const first = without(last);
  const second = without(difference(difference(has, hasAfter(first)), owned));
  return without(intersection(difference(has, hasAfter(second)), last));
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
    if (!isEmptySet(difference(contested, excused))) conflicts.push({ manager, fields: contested });
    const left = difference(difference(manager.fields, contested), changed.removed);
    if (!isEmptySet(left)) others.push(isSameSet(left, manager.fields) ? manager : { ...manager, fields: left });
  }
  if (conflicts.length > 0 && !isForced) throw new ApplyConflict(conflicts);
  return others;
}
