// Deletes what has lost its owners, and finishes deletions that wait for dependents or let them go: the three
// propagation policies of Kubernetes. Works on keys; what an owner is now is always read afresh from the store.

import { BoundedCache } from '../../base/bounded-cache.ts';
import { type AnyObject, type OwnerReference, parseApiVersion } from '../../kube/objects/object.ts';
import type { Engine, Place } from '../model/call.ts';
import { StatusError } from '../model/status.ts';
import { objectKey, parseKey, parseStored } from '../model/stored.ts';
import type { StoreEvent } from '../store/store.ts';
import { foregroundFinalizer, orphanFinalizer, removeObject } from '../verbs/delete.ts';
import type { Propagation } from '../verbs/delete-options.ts';
import { modify } from '../verbs/modify.ts';
import { isBeingDeleted } from '../verbs/open-namespace.ts';
import { isReferenceTo } from '../verbs/owner-references.ts';
import { systemCall } from '../verbs/system-call.ts';
import { type Background, followStore } from './follow.ts';
import { createOwnerIndex, type OwnerIndex } from './owner-index.ts';

export function createGarbageCollection(engine: Engine): Background {
  const garbage = new Garbage(engine, createOwnerIndex());
  return followStore({
    engine,
    name: 'garbage collection',
    prefix: '/registry/',
    concurrency: 32,
    // A new list brings every dependent back, and whether its owners are there is read afresh.
    remembersKeys: false,
    onEvent: (event, queue) => {
      for (const key of garbage.see(event)) queue.add(key);
    },
    work: async (key) => {
      await garbage.collect(key);
      return undefined;
    },
  });
}

const goneMax = 10_000;

/** An object as it was when it was read. */
interface Found extends Place {
  readonly object: AnyObject;
}

class Garbage {
  readonly #engine: Engine;
  readonly #index: OwnerIndex;
  /** Owners in foreground deletion that wait for dependents: by uid, the owner's key. */
  readonly #waiting = new Map<string, string>();
  readonly #waitingKeys = new Set<string>();
  /** Uids that have gone lately: enough to say so even if their kind is no longer served. */
  readonly #gone = new BoundedCache<true>(goneMax);

  constructor(engine: Engine, index: OwnerIndex) {
    this.#engine = engine;
    this.#index = index;
  }

  /** Which keys have to be looked at after an event. */
  see(event: StoreEvent): string[] {
    const { hasNewOwners, goneUid, formerOwners } = this.#index.apply(event);
    const keys: string[] = [];
    if (hasNewOwners || isOurs(event)) keys.push(event.key);
    for (const uid of formerOwners) {
      const owner = this.#waiting.get(uid);
      if (owner !== undefined) keys.push(owner);
    }
    if (goneUid !== undefined) {
      this.#stopWaiting(goneUid);
      const dependents = this.#index.dependents(goneUid);
      if (dependents.length > 0) this.#gone.set(goneUid, true);
      keys.push(...dependents);
    }
    return keys;
  }

  async collect(key: string): Promise<void> {
    const found = await this.#find(key);
    if (found === undefined) return;
    const { deletionTimestamp, finalizers = [] } = found.object.metadata;
    if (deletionTimestamp !== undefined) {
      if (finalizers.includes(orphanFinalizer)) return this.#orphanDependents(found);
      if (finalizers.includes(foregroundFinalizer)) return this.#deleteDependents(found, key);
      return;
    }
    if ((found.object.metadata.ownerReferences?.length ?? 0) > 0) await this.#checkOwners(found);
  }

  async #find(key: string): Promise<Found | undefined> {
    const place = parseKey(key);
    const served = place === undefined ? undefined : this.#engine.registry.findPlural(place.group, place.plural);
    if (place === undefined || served === undefined) return undefined;
    const entry = await this.#engine.store.get(key);
    if (entry === undefined) return undefined;
    return { served, namespace: place.namespace, name: place.name, object: parseStored(served, entry) };
  }

  // A reference reaches an owner in its own namespace or a cluster-scoped one. A client that learned a uid elsewhere
  // must not be able to hold up a deletion there.
  async *#dependents(owner: Found): AsyncGenerator<Found> {
    const uid = owner.object.metadata.uid!;
    for (const key of this.#index.dependents(uid)) {
      if (owner.namespace !== '' && parseKey(key)?.namespace !== owner.namespace) continue;
      await this.#engine.turns.next();
      const found = await this.#find(key);
      const references = found?.object.metadata.ownerReferences ?? [];
      if (found && references.some((reference) => isReferenceTo(owner.object, reference))) yield found;
    }
  }

  async #orphanDependents(owner: Found): Promise<void> {
    const uid = owner.object.metadata.uid!;
    for await (const dependent of this.#dependents(owner)) await this.#dropOwners(dependent, new Set([uid]));
    await this.#dropFinalizer(owner, orphanFinalizer);
  }

  async #deleteDependents(owner: Found, key: string): Promise<void> {
    const uid = owner.object.metadata.uid!;
    // Before looking, so that a dependent which goes meanwhile brings us back here.
    this.#waiting.set(uid, key);
    this.#waitingKeys.add(key);
    for await (const dependent of this.#dependents(owner)) await this.#deleteDependent(dependent);
    for await (const { object } of this.#dependents(owner)) {
      if (object.metadata.uid !== uid && isBlocking(object, owner.object)) return;
    }
    this.#stopWaiting(uid);
    await this.#dropFinalizer(owner, foregroundFinalizer);
  }

  async #deleteDependent(dependent: Found): Promise<void> {
    const { metadata } = dependent.object;
    const dependents = this.#index.dependents(metadata.uid!);
    // Owners in a circle would wait for each other for ever: as in Kubernetes, the one that closes it does not block.
    const closesCircle = dependents.some((key) => this.#waitingKeys.has(key));
    const current = closesCircle ? await this.#unblockOwners(dependent) : dependent;
    if (metadata.deletionTimestamp !== undefined || current === undefined) return;
    await this.#delete(current, dependents.length > 0 ? 'Foreground' : undefined);
  }

  async #unblockOwners(found: Found): Promise<Found | undefined> {
    await this.#modify(found, ({ metadata }) => {
      for (const owner of metadata.ownerReferences ?? []) delete owner.blockOwnerDeletion;
    });
    const now = await this.#find(objectKey(found.served.keyPrefix, found.namespace, found.name));
    return now?.object.metadata.uid === found.object.metadata.uid ? now : undefined;
  }

  #stopWaiting(uid: string): void {
    const key = this.#waiting.get(uid);
    if (key === undefined) return;
    this.#waiting.delete(uid);
    this.#waitingKeys.delete(key);
  }

  async #checkOwners(dependent: Found): Promise<void> {
    const owners = dependent.object.metadata.ownerReferences!;
    const states = await Promise.all(owners.map((owner) => this.#isThere(owner, dependent)));
    const absent = owners.filter((_, index) => states[index] === false);
    if (absent.length === 0) return;
    if (absent.length === owners.length) await this.#delete(dependent, undefined);
    else await this.#dropOwners(dependent, new Set(absent.map((owner) => owner.uid)));
  }

  /** Undefined if unknown: the kind is not served here, or the owner cannot be seen from there. */
  async #isThere(owner: OwnerReference, dependent: Found): Promise<boolean | undefined> {
    if (this.#gone.get(owner.uid)) return false;
    const served = this.#engine.registry.findKind(parseApiVersion(owner.apiVersion).group, owner.kind);
    if (served === undefined) return undefined;
    if (served.kind.isNamespaced && dependent.namespace === '') return undefined;
    const key = objectKey(served.keyPrefix, served.kind.isNamespaced ? dependent.namespace : '', owner.name);
    const entry = await this.#engine.store.get(key);
    return entry !== undefined && parseStored(served, entry).metadata.uid === owner.uid;
  }

  /** Only the very object that was looked at: one that came in its place has nothing to do with it. */
  async #delete(found: Found, propagation: Propagation | undefined): Promise<void> {
    const { uid, resourceVersion } = found.object.metadata;
    const options = {
      isDryRun: false,
      uid: uid!,
      resourceVersion: resourceVersion!,
      ...(propagation && { propagation }),
    };
    await unlessGone(removeObject(this.#engine, systemCall(this.#engine, found), options));
  }

  async #dropOwners(found: Found, uids: ReadonlySet<string>): Promise<void> {
    await this.#modify(found, ({ metadata }) => {
      metadata.ownerReferences = metadata.ownerReferences?.filter((owner) => !uids.has(owner.uid));
      if (metadata.ownerReferences?.length === 0) delete metadata.ownerReferences;
    });
  }

  async #dropFinalizer(found: Found, finalizer: string): Promise<void> {
    await this.#modify(found, ({ metadata }) => {
      metadata.finalizers = metadata.finalizers?.filter((each) => each !== finalizer);
      if (metadata.finalizers?.length === 0) delete metadata.finalizers;
    });
  }

  async #modify(found: Found, change: (object: AnyObject) => void): Promise<void> {
    const next = (current: AnyObject) => {
      if (current.metadata.uid === found.object.metadata.uid) change(current);
      return current;
    };
    await unlessGone(modify(this.#engine, systemCall(this.#engine, found), { part: 'all', next }));
  }
}

const ourFinalizers = [`"${foregroundFinalizer}"`, `"${orphanFinalizer}"`];

/** Whether an object that is being deleted waits for one of our finalizers. */
function isOurs({ entry }: StoreEvent): boolean {
  if (entry === undefined) return false;
  return ourFinalizers.some((finalizer) => entry.latin1.includes(finalizer)) && isBeingDeleted(entry);
}

function isBlocking(object: AnyObject, owner: AnyObject): boolean {
  const references = object.metadata.ownerReferences ?? [];
  return references.some((one) => one.blockOwnerDeletion === true && isReferenceTo(owner, one));
}

async function unlessGone(done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error;
  }
}
