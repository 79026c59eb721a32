// The changes that bring a zone to the wanted records. A name is ours exactly if the TXT record at its sibling name
// shows it; a foreign name is left as it is and reported. Pure.

import { createHash } from 'node:crypto';
import type { PublicSet, PublicType } from './wanted.ts';

export interface ZoneSet {
  readonly name: string;
  readonly type: PublicType | 'TXT' | 'other';
  /** Absent where the provider does not say. */
  readonly ttl?: number;
  readonly values: readonly string[];
}

export interface NameChange {
  readonly name: string;
  readonly ownerName: string;
  /** `create` must find the name free, the others must find it owned by us. */
  readonly kind: 'create' | 'update' | 'delete';
  /** Everything the name shall hold; empty for `delete`. */
  readonly sets: readonly PublicSet[];
}

export interface Difference {
  readonly changes: readonly NameChange[];
  /** Wanted names with another owner. */
  readonly conflicts: readonly string[];
}

const ownerLabel = '_portolan-';
const labelMax = 63;

/** `_portolan-myservice.myns…` beside `myservice.myns…`: also works beside an alias, which can have no neighbours. */
export function ownerNameOf(name: string): string {
  const dot = name.indexOf('.');
  const label = name.slice(0, dot);
  const fits = ownerLabel.length + label.length <= labelMax;
  const short = fits ? label : createHash('sha256').update(label).digest('hex').slice(0, 40);
  return `${ownerLabel}${short}${name.slice(dot)}`;
}

/** Says whose the sibling is, and its full name, for the label may have been too long to repeat. */
export function ownerText(owner: string, name: string): string {
  return `owner=${owner} name=${name}`;
}

function nameInOwnerText(owner: string, text: string): string | undefined {
  const prefix = `owner=${owner} name=`;
  return text.startsWith(prefix) ? text.slice(prefix.length) : undefined;
}

export interface DifferenceInput {
  readonly owner: string;
  readonly ttlSeconds: number;
  readonly wanted: readonly PublicSet[];
  readonly current: readonly ZoneSet[];
}

export function differenceOf({ owner, ttlSeconds, wanted, current }: DifferenceInput): Difference {
  const wantedByName = Map.groupBy(wanted, (set) => set.name);
  const currentByName = Map.groupBy(current, (set) => set.name);
  const owned = ownedNames(owner, current);
  const changes: NameChange[] = [];
  const conflicts: string[] = [];
  for (const [name, sets] of wantedByName) {
    const there = currentByName.get(name) ?? [];
    const ownerName = ownerNameOf(name);
    if (owned.has(name)) {
      if (!isSameRecords(sets, there, ttlSeconds)) changes.push({ name, ownerName, kind: 'update', sets });
    } else if (there.length > 0 || currentByName.has(ownerName)) {
      conflicts.push(name);
    } else {
      changes.push({ name, ownerName, kind: 'create', sets });
    }
  }
  for (const name of owned) {
    if (!wantedByName.has(name)) changes.push({ name, ownerName: ownerNameOf(name), kind: 'delete', sets: [] });
  }
  return { changes, conflicts };
}

function ownedNames(owner: string, current: readonly ZoneSet[]): Set<string> {
  const names = new Set<string>();
  for (const set of current) {
    if (set.type !== 'TXT') continue;
    for (const text of set.values) {
      const name = nameInOwnerText(owner, text);
      // A text that lies anywhere but beside its name proves nothing.
      if (name !== undefined && ownerNameOf(name) === set.name) names.add(name);
    }
  }
  return names;
}

/** Whether the addresses and aliases of a name are those that it shall have. */
export function isSameRecords(wanted: readonly PublicSet[], there: readonly ZoneSet[], ttlSeconds: number): boolean {
  const ours = there.filter((set) => set.type === 'A' || set.type === 'AAAA' || set.type === 'CNAME');
  if (ours.length !== wanted.length) return false;
  return wanted.every((set) => {
    const other = ours.find(({ type }) => type === set.type);
    const ttl = set.ttlSeconds ?? ttlSeconds;
    if (!other || (other.ttl ?? ttl) !== ttl || other.values.length !== set.values.length) return false;
    const values = new Set(other.values);
    return set.values.every((value) => values.has(value));
  });
}
