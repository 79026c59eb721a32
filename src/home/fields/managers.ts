// The managers of an object's fields, as metadata.managedFields lists them. A list that is not in that form counts as none.

import {
  emptySet,
  type FieldSet,
  type FieldsV1,
  formatFieldsV1,
  isEmptySet,
  parseFieldsV1,
  union,
} from './field-set.ts';

type Operation = 'Apply' | 'Update';

export interface ManagerId {
  readonly manager: string;
  readonly operation: Operation;
  readonly apiVersion: string;
  /** Empty for the main resource. */
  readonly subresource: string;
}

export interface Manager extends ManagerId {
  /** Whole seconds, as Kubernetes writes times; absent if the object's content never changed by it. */
  readonly time?: string;
  readonly fields: FieldSet;
}

export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly time?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: FieldsV1;
  readonly subresource?: string;
}

/** Far above real needs: Apply managers are not merged with each other. */
const managersMax = 1000;

/** Undefined for a list that no server wrote. */
export function parseManagers(entries: readonly unknown[]): Manager[] | undefined {
  if (entries.length > managersMax) return undefined;
  const managers = entries.map(parseManager);
  return managers.every((manager) => manager !== undefined) ? joined(managers) : undefined;
}

function parseManager(entry: unknown): Manager | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined;
  const {
    manager = '',
    operation,
    apiVersion = '',
    time,
    fieldsType,
    fieldsV1,
    subresource = '',
  } = entry as Record<keyof ManagedFieldsEntry, unknown>;
  if (operation !== 'Apply' && operation !== 'Update') return undefined;
  if (fieldsType !== 'FieldsV1' || typeof manager !== 'string' || typeof apiVersion !== 'string') return undefined;
  if (typeof subresource !== 'string' || apiVersion === '' || (operation === 'Apply' && manager === ''))
    return undefined;
  const fields = fieldsV1 === undefined ? emptySet : parseFieldsV1(fieldsV1);
  if (fields === undefined) return undefined;
  const at = typeof time === 'string' ? { time } : {};
  return { manager, operation, apiVersion, subresource, ...at, fields };
}

function joined(managers: readonly Manager[]): Manager[] {
  const byKey = new Map<string, Manager>();
  for (const manager of managers) {
    const known = byKey.get(keyOfManager(manager));
    byKey.set(
      keyOfManager(manager),
      known === undefined ? manager : { ...manager, fields: union(known.fields, manager.fields) },
    );
  }
  return [...byKey.values()];
}

/** Of an applier, a new version of the kind is no other manager. */
export function keyOfManager({ manager, operation, apiVersion, subresource }: ManagerId): string {
  return JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource]);
}

export function formatManagers(managers: readonly Manager[]): ManagedFieldsEntry[] {
  return capped(managers.filter(({ fields }) => !isEmptySet(fields)))
    .sort(byOrder)
    .map(({ manager, operation, apiVersion, subresource, time, fields }) => ({
      manager,
      operation,
      apiVersion,
      ...(time === undefined ? {} : { time }),
      fieldsType: 'FieldsV1',
      fieldsV1: formatFieldsV1(fields),
      ...(subresource === '' ? {} : { subresource }),
    }));
}

function byOrder(a: Manager, b: Manager): number {
  return (
    compare(a.operation, b.operation) ||
    compare(a.time ?? '', b.time ?? '') ||
    compare(a.manager, b.manager) ||
    compare(a.apiVersion, b.apiVersion) ||
    compare(a.subresource, b.subresource)
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const updatersMax = 10;
const ancientManager = 'ancient-changes';

/** The oldest of too many updaters become one, for each version. */
function capped(managers: readonly Manager[]): Manager[] {
  const updaters = managers.filter(({ operation, subresource }) => operation === 'Update' && subresource === '');
  if (updaters.length <= updatersMax) return [...managers];
  const sorted = [...updaters].sort(byOrder);
  const kept = new Set(managers);
  const ancient = new Map<string, Manager>();
  let count = updaters.length;
  for (const manager of sorted) {
    if (count <= updatersMax) break;
    const before = ancient.get(manager.apiVersion);
    kept.delete(manager);
    if (before !== undefined) count--;
    const fields = before === undefined ? manager.fields : union(before.fields, manager.fields);
    ancient.set(manager.apiVersion, { ...manager, manager: ancientManager, fields });
  }
  return [...kept, ...ancient.values()];
}
