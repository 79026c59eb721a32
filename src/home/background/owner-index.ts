// The dependents of each owner, by uid, updated from the store's events. One change costs what it says about
// owners, however many objects there are; objects that mention no owner are not even parsed.

import type { OwnerReference } from '../../kube/objects/object.ts';
import { textOf } from '../model/stored.ts';
import type { Entry, StoreEvent } from '../store/store.ts';

export interface OwnerIndex {
  /** The change of owners in the event: see Change. */
  apply(event: StoreEvent): OwnerChange;
  /** Keys of the objects that name this uid as an owner. */
  dependents(uid: string): readonly string[];
}

interface OwnerChange {
  /** Owners the object has now and had not before: whether they exist is to be checked. */
  readonly hasNewOwners: boolean;
  /** The uid of the object, if it has just gone. */
  readonly goneUid: string | undefined;
  /** Owners that this object no longer holds up. */
  readonly formerOwners: readonly string[];
}

const mention = '"ownerReferences":[';

export function createOwnerIndex(): OwnerIndex {
  // Most owners have one dependent: that one is held without a set around it.
  const dependentsByOwner = new Map<string, string | Set<string>>();

  const add = (uid: string, key: string) => {
    const dependents = dependentsByOwner.get(uid);
    if (dependents === undefined) dependentsByOwner.set(uid, key);
    else if (typeof dependents === 'object') dependents.add(key);
    else if (dependents !== key) dependentsByOwner.set(uid, new Set([dependents, key]));
  };
  const drop = (uid: string, key: string) => {
    const dependents = dependentsByOwner.get(uid);
    if (dependents === key) dependentsByOwner.delete(uid);
    else if (typeof dependents === 'object' && dependents.delete(key) && dependents.size === 0) {
      dependentsByOwner.delete(uid);
    }
  };

  return {
    dependents: (uid) => {
      const dependents = dependentsByOwner.get(uid) ?? [];
      return typeof dependents === 'string' ? [dependents] : [...dependents];
    },
    apply: ({ key, entry, previous }) => {
      const before = ownersOf(previous);
      const now = ownersOf(entry);
      const former = [...before].filter((uid) => !now.has(uid));
      for (const uid of former) drop(uid, key);
      for (const uid of now) add(uid, key);
      const isGone = entry === undefined && previous !== undefined && dependentsByOwner.size > 0;
      return {
        hasNewOwners: [...now].some((uid) => !before.has(uid)),
        goneUid: isGone ? uidOf(previous) : undefined,
        formerOwners: former,
      };
    },
  };
}

const none: ReadonlySet<string> = new Set();

function ownersOf(entry: Entry | undefined): ReadonlySet<string> {
  if (entry === undefined || !entry.latin1.includes(mention)) return none;
  const owners: OwnerReference[] = metadataOf(entry).ownerReferences ?? [];
  return new Set(owners.map((owner) => owner.uid));
}

function uidOf(entry: Entry): string | undefined {
  return metadataOf(entry).uid;
}

function metadataOf(entry: Entry): { uid?: string; ownerReferences?: OwnerReference[] } {
  return JSON.parse(textOf(entry.value)).metadata;
}
