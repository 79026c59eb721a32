// The resources of one type that one proxy wants and has. Pure bookkeeping; the session decides what is sent.

import type { XdsType } from '../resource.ts';
import { type Entry, mayRefer, toggleDigest } from '../view/entry.ts';
import type { Reference } from '../view/references.ts';
import type { Refusals } from './messages.ts';

/** A response without an answer yet: the new form of each resource in it, undefined for one that was taken away. */
export interface Flight {
  readonly changes: ReadonlyMap<string, Entry | undefined>;
}

/** More unanswered responses than this are never in flight: a proxy that does not answer costs bounded memory. */
const flightsMax = 1024;

export class TypeState {
  readonly type: XdsType;
  isWildcard = false;
  /** Subscribed by name. */
  readonly names = new Set<string>();
  /** The proxy's state if it accepts all that is in flight. */
  readonly current = new Map<string, Entry>();
  /** Its earlier state, for names in flight only; undefined if it had nothing. */
  readonly before = new Map<string, Entry | undefined>();
  readonly flights = new Map<string, Flight>();
  /** Names to look at. */
  readonly dirty = new Set<string>();
  /** Names to be sent even if the proxy has this version. */
  readonly forced = new Set<string>();
  /** Names to be taken away as soon as nothing in use refers to them. */
  readonly removals = new Set<string>();
  /** Those of them that nothing refers to any more, and since when: chains that are draining may still use them. */
  readonly heldSince = new Map<string, number>();
  /** Names that were in a refused response together with others, and are sent alone from now on. */
  readonly suspects = new Set<string>();
  /** An answer is owed even if there is nothing to tell. */
  isAnswerDue = false;
  hasStarted = false;
  lastNonce = '';
  digest = 0n;
  /** Whether an unproven resource is sent without any others. */
  readonly areTrialsAlone: boolean;
  /** Otherwise, how many of them go into one response. */
  trialMax = Number.POSITIVE_INFINITY;

  constructor(type: XdsType, areTrialsAlone: boolean) {
    this.type = type;
    this.areTrialsAlone = areTrialsAlone;
  }

  get hasRoom(): boolean {
    return this.flights.size < flightsMax;
  }

  setCurrent(name: string, entry: Entry | undefined): void {
    const old = this.current.get(name);
    if (old !== undefined) this.digest = toggleDigest(this.digest, old);
    if (entry === undefined) this.current.delete(name);
    else {
      this.digest = toggleDigest(this.digest, entry);
      this.current.set(name, entry);
    }
  }

  launch(nonce: string, changes: ReadonlyMap<string, Entry | undefined>): void {
    for (const [name, entry] of changes) {
      if (!this.before.has(name)) this.before.set(name, this.current.get(name));
      this.setCurrent(name, entry);
    }
    this.flights.set(nonce, { changes });
    this.lastNonce = nonce;
  }

  /** The proxy has this form now. */
  accept(name: string, entry: Entry | undefined): void {
    if (this.current.get(name) === entry) this.before.delete(name);
    else if (this.before.has(name)) this.before.set(name, entry);
  }

  /** The proxy goes on with what it had. */
  revert(name: string, entry: Entry | undefined): void {
    if (this.current.get(name) !== entry) return;
    this.setCurrent(name, this.before.get(name));
    this.before.delete(name);
  }

  forget(name: string): void {
    this.setCurrent(name, undefined);
    this.before.delete(name);
    this.dirty.delete(name);
    this.forced.delete(name);
    this.dropRemoval(name);
    this.suspects.delete(name);
  }

  /** It is wanted again, or has been taken away. */
  dropRemoval(name: string): void {
    this.removals.delete(name);
    this.heldSince.delete(name);
  }

  /** Whether a form that the proxy may still use, other than the newest, refers to this resource. */
  mayStillUse(reference: Reference, refusals: Refusals): boolean {
    if (this.dirty.size > 0 || this.removals.size > this.heldSince.size) return true;
    for (const name of this.heldSince.keys()) if (mayRefer(this.current.get(name), reference)) return true;
    for (const entry of this.before.values()) if (mayRefer(entry, reference)) return true;
    for (const { entry, lastGood } of refusals.values()) {
      if (entry.type === this.type && mayRefer(lastGood, reference)) return true;
    }
    return false;
  }
}
