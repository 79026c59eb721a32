// The managers of an object's fields, as metadata.managedFields lists them. A list that is not in that form counts as none.

import { formatTime } from '../model/metadata.ts';
import { isDateTime } from '../schema/formats.ts';
import {
  emptySet,
  type FieldSet,
  type FieldsV1,
  formatFieldsV1,
  isEmptySet,
  parseFieldsV1,
  unionOf,
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

/** Far above real needs: appliers are not merged with each other. */
export const appliersMax = 1000;
const updatersMax = 10;
const ancientManager = 'ancient-changes';
const nameBytesMax = 128;
const subresourceBytesMax = 256;

/** Undefined for a list that no server wrote. */
export function parseManagers(entries: readonly unknown[]): Manager[] | undefined {
  if (entries.length > appliersMax + updatersMax) return undefined;
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
  if (Buffer.byteLength(manager) > nameBytesMax || Buffer.byteLength(subresource) > subresourceBytesMax)
    return undefined;
  const isTimed = time !== undefined && time !== null;
  if (isTimed && (typeof time !== 'string' || !isDateTime(time) || Number.isNaN(Date.parse(time)))) return undefined;
  const fields = fieldsV1 === undefined ? emptySet : parseFieldsV1(fieldsV1);
  if (fields === undefined) return undefined;
  // Clients with typed objects cannot read a list in which a time is none, and write one with other digits.
  const at = isTimed ? { time: formatTime(Date.parse(time as string)) } : {};
  return { manager, operation, apiVersion, subresource, ...at, fields };
}

function joined(managers: readonly Manager[]): Manager[] {
  const byKey = Map.groupBy(managers, keyOfManager);
  return Array.from(byKey.values(), asOne);
}

/** The last of them, with the fields of all. */
function asOne(managers: readonly Manager[]): Manager {
  const last = managers.at(-1)!;
  return managers.length === 1 ? last : { ...last, fields: unionOf(managers.map(({ fields }) => fields)) };
}

/** For an applier, a new version of the kind is no other manager. */
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

/** The oldest of too many updaters become one, for each version. */
function capped(managers: readonly Manager[]): Manager[] {
  const updaters = managers.filter(({ operation }) => operation === 'Update');
  if (updaters.length <= updatersMax) return [...managers];
  const ancient = new Map<string, Manager[]>();
  let count = updaters.length;
  for (const manager of updaters.sort(byOrder)) {
    if (count <= updatersMax) break;
    const group = ancient.get(manager.apiVersion);
    if (group === undefined) ancient.set(manager.apiVersion, [manager]);
    else {
      group.push(manager);
      count--;
    }
  }
  const groups = [...ancient.values()].filter((group) => group.length > 1);
  const merged = new Set(groups.flat());
  const ancients = groups.map((group) => ({ ...asOne(group), manager: ancientManager, subresource: '' }));
  return [...managers.filter((manager) => !merged.has(manager)), ...ancients];
}
