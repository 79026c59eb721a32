// One proxy's stream: what it wants, what it has acknowledged, what it must be sent next. Pure: requests and changes go
// in, `next` gives one response at a time, so the caller can wait whenever the way to the proxy is full.
//
// Clusters go before endpoints, listeners and routes; removals go last and wait until nothing in use refers to them. A
// version that no proxy has accepted yet is sent alone, so that a refusal names it (state of the world, and virtual hosts: with at
// most `trialMax` others, halved after each refusal). A refused version is never sent to this proxy again.

import { type Variant, type XdsType, xdsTypes } from '../resource.ts';
import { type Entry, formatDigest, unknownEntry } from '../view/entry.ts';
import type { Reference } from '../view/references.ts';
import type { ResourceChange } from '../view/resource-set.ts';
import {
  type Answer,
  type ClientRequest,
  type Refusals,
  refusalKey,
  type ServerResponse,
  type SessionEvent,
} from './messages.ts';
import { type Flight, TypeState } from './type-state.ts';
import { wholeTypes, wishesOf } from './wishes.ts';

interface SessionView {
  get(type: XdsType, name: string): Entry | undefined;
  isInWildcard(type: XdsType, name: string): boolean;
  wildcard(type: XdsType): Iterable<Entry>;
}

export interface SessionOptions {
  readonly variant: Variant;
  readonly view: SessionView;
  /** Remembered between the streams of one proxy. */
  readonly refusals: Refusals;
  /** Entries that some proxy has accepted; shared by all sessions. */
  readonly proven: WeakSet<Entry>;
  /** All types on one stream, so their order can be kept. */
  readonly isAggregated: boolean;
  /** Takes endpoints that follow their cluster unasked, and need not be sent them again when it asks. */
  readonly isEnvoy: boolean;
  /**
   * For how long a cluster that nothing refers to any more is left to an Envoy. Filter chains that were removed or changed
   * serve their open connections until they are drained, and a request that finds its cluster gone fails.
   */
  readonly drainMs: number;
}

const additionOrder: readonly XdsType[] = ['cluster', 'endpoints', 'listener', 'route', 'virtual-host', 'secret'];
/** Virtual hosts first: without its one, a service is refused. */
const removalOrder: readonly XdsType[] = ['virtual-host', 'listener', 'route', 'cluster', 'endpoints', 'secret'];

/** The types that can refer to a resource of each type. */
const referrers: Readonly<Record<XdsType, readonly XdsType[]>> = {
  listener: [],
  route: ['listener'],
  'virtual-host': [],
  cluster: ['listener', 'route', 'virtual-host'],
  endpoints: ['cluster'],
  secret: ['cluster', 'listener'],
};

/** An Envoy makes all its routes anew for each response with virtual hosts: one by one, many of them take it minutes. */
const triedTogether: ReadonlySet<XdsType> = new Set(['virtual-host']);

const batchBytesMax = 256 * 1024;
/** More clusters than this do not wait for chains to be drained: rules that come and go all the time cost bounded memory. */
const heldMax = 1024;

export class XdsSession {
  readonly #options: SessionOptions;
  readonly #states: Readonly<Record<XdsType, TypeState>>;
  /** Endpoints whose cluster was just sent. */
  readonly #followers = new Set<string>();
  /** Endpoints sent before the proxy asked for them. */
  readonly #unasked = new Set<string>();
  #nonce = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
    const isAlone = (type: XdsType) => options.variant === 'delta' && !triedTogether.has(type);
    const states = xdsTypes.map((type) => [type, new TypeState(type, isAlone(type))]);
    this.#states = Object.fromEntries(states) as Record<XdsType, TypeState>;
  }

  /** Names and versions that the proxy has acknowledged or claims to hold, and how many are in flight. */
  describe(type: XdsType): { readonly held: number; readonly inFlight: number; readonly version: string } {
    const { current, before, digest } = this.#states[type];
    return { held: current.size, inFlight: before.size, version: formatDigest(digest) };
  }

  /** Whether the proxy has acknowledged a resource of this type, in whatever version, and still holds it. */
  hasAcknowledged(type: XdsType): boolean {
    const { current, before } = this.#states[type];
    let unanswered = 0;
    for (const [name, entry] of before) if (entry === undefined && current.has(name)) unanswered += 1;
    return current.size > unanswered;
  }

  /** How many names the proxy has subscribed to. */
  get subscribed(): number {
    return xdsTypes.reduce((sum, type) => sum + this.#states[type].names.size, 0);
  }

  take(type: XdsType, request: ClientRequest): SessionEvent[] {
    const state = this.#states[type];
    const events = request.answer === undefined ? [] : this.#answer(state, request.answer);
    // Written before the proxy saw our newest response; it will answer that one too, with all its names.
    const isOld = request.answer !== undefined && request.answer.nonce !== state.lastNonce && state.lastNonce !== '';
    if (request.names.kind === 'changes' || !isOld) this.#subscribe(state, request);
    return events;
  }

  changed(changes: Iterable<ResourceChange>): SessionEvent[] {
    const events: SessionEvent[] = [];
    for (const { type, name } of changes) {
      if (!this.#isWanted(type, name)) continue;
      this.#states[type].dirty.add(name);
      const refusal = this.#options.refusals.get(refusalKey(type, name));
      if (refusal === undefined || refusal.entry.version === this.#options.view.get(type, name)?.version) continue;
      events.push(...this.#recover(type, name));
    }
    return events;
  }

  /** The next response; undefined when there is nothing to send before something else happens. */
  next(nowMs: number): ServerResponse | undefined {
    const followers = this.#follow();
    if (followers !== undefined) return followers;
    for (const type of additionOrder) {
      const response = this.#additions(this.#states[type]);
      if (response !== undefined) return response;
      if (this.#followers.size > 0) return this.#follow();
    }
    for (const type of removalOrder) {
      const response = this.#removals(this.#states[type], nowMs);
      if (response !== undefined) return response;
    }
    return undefined;
  }

  /** When `next` may have something more to send though nothing happened. */
  get wakeMs(): number | undefined {
    const [first] = this.#states.cluster.heldSince.values();
    return first === undefined ? undefined : first + this.#options.drainMs;
  }

  #answer(state: TypeState, { nonce, error }: Answer): SessionEvent[] {
    const flight = state.flights.get(nonce);
    if (flight === undefined) return [{ kind: 'stale' }];
    state.flights.delete(nonce);
    if (error === undefined) return [{ kind: 'answered' }, ...this.#accepted(state, flight)];
    if (flight.changes.size === 1) return [{ kind: 'answered' }, ...this.#refused(state, flight, error)];
    this.#splitRefused(state, flight);
    return [{ kind: 'answered' }];
  }

  #accepted(state: TypeState, flight: Flight): SessionEvent[] {
    const events: SessionEvent[] = [];
    for (const [name, entry] of flight.changes) {
      state.accept(name, entry);
      state.suspects.delete(name);
      if (entry !== undefined) this.#options.proven.add(entry);
      const refusal = this.#options.refusals.get(refusalKey(state.type, name));
      if (refusal === undefined || refusal.lastGood === entry) continue;
      events.push(...this.#recover(state.type, name));
    }
    if (!state.areTrialsAlone) state.trialMax *= 2;
    return events;
  }

  #recover(type: XdsType, name: string): SessionEvent[] {
    this.#options.refusals.delete(refusalKey(type, name));
    return [{ kind: 'recovered', type, name }];
  }

  /** Which of several was refused is not known: each is sent again, in smaller company. */
  #splitRefused(state: TypeState, flight: Flight): void {
    for (const [name, entry] of flight.changes) {
      // A proxy that refuses a removal has nothing to go on with: it is not repeated.
      if (entry === undefined) {
        state.accept(name, entry);
        continue;
      }
      state.revert(name, entry);
      for (const names of [state.suspects, state.dirty, state.forced]) names.add(name);
    }
    if (!state.areTrialsAlone) state.trialMax = Math.max(1, Math.ceil(flight.changes.size / 2));
  }

  #refused(state: TypeState, flight: Flight, message: string): SessionEvent[] {
    const events: SessionEvent[] = [];
    for (const [name, entry] of flight.changes) {
      state.suspects.delete(name);
      if (entry === undefined) {
        state.accept(name, entry);
        continue;
      }
      const lastGood = state.before.get(name);
      state.revert(name, entry);
      const refusal = { entry, message: shownMessage(entry, message), lastGood };
      this.#options.refusals.set(refusalKey(state.type, name), refusal);
      events.push({ kind: 'refused', refusal });
    }
    return events;
  }

  #subscribe(state: TypeState, request: ClientRequest): void {
    const isFirst = !state.hasStarted;
    state.hasStarted = true;
    const { subscribe, unsubscribe, isWildcard } = wishesOf(state, request, isFirst);
    if (isFirst) this.#adopt(state, request, subscribe, isWildcard === true);
    if (isWildcard === true && !state.isWildcard) {
      state.isWildcard = true;
      for (const entry of this.#options.view.wildcard(state.type)) state.dirty.add(entry.name);
      for (const name of state.current.keys()) state.dirty.add(name);
      if (state.current.size === 0) state.isAnswerDue = true;
    }
    for (const name of subscribe) this.#subscribeName(state, name, isFirst);
    if (isWildcard === false) state.isWildcard = false;
    for (const name of unsubscribe) {
      state.names.delete(name);
      // Endpoints that were sent unasked are wanted as long as they are held, unless the proxy says otherwise.
      if (!this.#isWanted(state.type, name) || state.type === 'endpoints') state.forget(name);
    }
  }

  #subscribeName(state: TypeState, name: string, isFirst: boolean): void {
    state.names.add(name);
    const wanted = this.#wanted(state.type, name);
    const hasIt = wanted !== undefined && state.current.get(name)?.version === wanted.version;
    const wasSentUnasked = state.type === 'endpoints' && this.#unasked.delete(name) && this.#options.isEnvoy;
    // Held from an earlier stream, or just sent: the proxy has it.
    if (hasIt && (isFirst || wasSentUnasked)) return;
    state.dirty.add(name);
    state.forced.add(name);
    if (wanted === undefined && this.#isWhole(state)) state.isAnswerDue = true;
  }

  /** Takes over what the proxy holds from an earlier stream. */
  #adopt(state: TypeState, { held }: ClientRequest, subscribe: readonly string[], isWildcard: boolean): void {
    if ('versions' in held) {
      for (const [name, version] of Object.entries(held.versions)) {
        const wanted = this.#wanted(state.type, name);
        state.setCurrent(name, wanted?.version === version ? wanted : unknownEntry(state.type, name, version));
      }
      return;
    }
    if (held.version === '') return;
    const entries = isWildcard
      ? [...this.#options.view.wildcard(state.type)]
      : subscribe.map((name) => this.#options.view.get(state.type, name));
    for (const entry of entries) {
      const wanted = entry && this.#wanted(state.type, entry.name);
      if (wanted !== undefined) state.setCurrent(wanted.name, wanted);
    }
    if (formatDigest(state.digest) === held.version) return;
    for (const name of [...state.current.keys()]) state.setCurrent(name, undefined);
  }

  /** Endpoints go right behind their cluster: until they arrive, a new or changed cluster does not come into use. */
  #follow(): ServerResponse | undefined {
    const state = this.#states.endpoints;
    if (this.#followers.size === 0 || !state.hasRoom) return undefined;
    const batch = this.#pick(state, this.#followers);
    for (const { name } of batch) if (!state.names.has(name)) this.#unasked.add(name);
    return batch.length === 0 ? undefined : this.#send(state, batch);
  }

  #additions(state: TypeState): ServerResponse | undefined {
    if (!this.#canSend(state)) return undefined;
    const batch = this.#pick(state, state.dirty);
    if (batch.length > 0) return this.#send(state, batch);
    return state.isAnswerDue && state.dirty.size === 0 ? this.#send(state, []) : undefined;
  }

  /** Takes as many of the candidates as may go together into one response. */
  #pick(state: TypeState, candidates: Set<string>): Entry[] {
    const batch: Entry[] = [];
    const isDelta = this.#options.variant === 'delta';
    let bytes = 0;
    let trials = 0;
    for (const name of candidates) {
      const entry = this.#due(state, name);
      const isTrial = entry !== undefined && this.#isTrial(state, entry);
      // Stays a candidate for the next response.
      if (isTrial && (state.areTrialsAlone ? batch.length > 0 : trials >= state.trialMax)) continue;
      for (const names of [candidates, state.dirty, state.forced]) names.delete(name);
      if (entry === undefined) continue;
      batch.push(entry);
      bytes += entry.any.length;
      if (isTrial) trials += 1;
      if (isDelta && ((isTrial && state.areTrialsAlone) || bytes > batchBytesMax)) break;
    }
    return batch;
  }

  /** The resource under this name that the proxy lacks; an unwanted one is noted as a removal. */
  #due(state: TypeState, name: string): Entry | undefined {
    const entry = this.#wanted(state.type, name);
    if (entry === undefined) {
      this.#missing(state, name);
      return undefined;
    }
    // Removed and added again before the proxy was notified.
    state.dropRemoval(name);
    if (state.forced.has(name) || state.current.get(name)?.version !== entry.version) return entry;
    return undefined;
  }

  #missing(state: TypeState, name: string): void {
    // Refused and never held: there is nothing to send and nothing to take away.
    if (this.#options.view.get(state.type, name) !== undefined) return;
    const isAskedFor = this.#options.variant === 'delta' && state.names.has(name);
    if (state.current.has(name) || isAskedFor) state.removals.add(name);
  }

  #send(state: TypeState, batch: readonly Entry[]): ServerResponse {
    state.isAnswerDue = false;
    const nonce = String(++this.#nonce);
    state.launch(nonce, new Map(batch.map((entry) => [entry.name, entry])));
    if (state.type === 'cluster' && this.#options.isAggregated && state.isWildcard) {
      for (const name of batch.flatMap(endpointsOf)) {
        this.#followers.add(name);
        this.#states.endpoints.forced.add(name);
      }
    }
    const entries = this.#isWhole(state) ? [...state.current.values()] : batch;
    return { type: state.type, nonce, version: formatDigest(state.digest), entries, removed: [] };
  }

  #removals(state: TypeState, nowMs: number): ServerResponse | undefined {
    if (state.removals.size === 0 || !this.#canSend(state)) return undefined;
    const gone = [...this.#drained(state, nowMs)];
    if (state.removals.size > state.heldSince.size) {
      for (const name of state.removals) {
        if (state.heldSince.has(name) || this.#isInUse(state.type, name)) continue;
        if (this.#isDraining(state, name)) state.heldSince.set(name, nowMs);
        else gone.push(name);
      }
    }
    if (gone.length === 0) return undefined;
    for (const name of gone) {
      state.dropRemoval(name);
      // No response would tell a proxy so: it stops asking by itself.
      if (this.#options.variant === 'sotw' && !this.#isWhole(state)) state.forget(name);
      if (state.type === 'cluster' && !this.#states.endpoints.names.has(name)) this.#states.endpoints.forget(name);
    }
    if (this.#options.variant === 'sotw' && !this.#isWhole(state)) return undefined;
    const nonce = String(++this.#nonce);
    state.launch(nonce, new Map(gone.map((name) => [name, undefined])));
    const isWhole = this.#isWhole(state);
    return {
      type: state.type,
      nonce,
      version: formatDigest(state.digest),
      entries: isWhole ? [...state.current.values()] : [],
      removed: isWhole ? [] : gone,
    };
  }

  /** Whether chains that nothing names any more may still lead to it. */
  #isDraining(state: TypeState, name: string): boolean {
    const { isEnvoy, drainMs } = this.#options;
    return isEnvoy && drainMs > 0 && state.type === 'cluster' && state.current.has(name);
  }

  /** Held for long enough; they are in the order in which they came. */
  *#drained({ heldSince }: TypeState, nowMs: number): IterableIterator<string> {
    let excess = heldSince.size - heldMax;
    for (const [name, sinceMs] of heldSince) {
      if (excess-- <= 0 && nowMs - sinceMs < this.#options.drainMs) return;
      yield name;
    }
  }

  #isInUse(type: XdsType, name: string): boolean {
    const reference: Reference = `${type}:${name}`;
    if (!this.#states[type].current.has(name)) return false;
    return referrers[type].some((referrer) => {
      const state = this.#states[referrer];
      // After a reconnect an Envoy asks for clusters first, and uses its old listeners meanwhile.
      const isSilent =
        this.#options.isEnvoy && this.#options.isAggregated && referrer === 'listener' && !state.hasStarted;
      return isSilent || state.mayStillUse(reference, this.#options.refusals);
    });
  }

  // A response of all there is contains what is in flight, so its refusal would be ambiguous with two of them. What is tried
  // together waits for the answer too, so that a proxy that is busy with one response gets what came meanwhile in the next.
  #canSend(state: TypeState): boolean {
    return state.hasRoom && !((this.#isWhole(state) || triedTogether.has(state.type)) && state.flights.size > 0);
  }

  /** The newest version, or the last good one where the newest was refused. */
  #wanted(type: XdsType, name: string): Entry | undefined {
    const entry = this.#options.view.get(type, name);
    const refusal = entry && this.#options.refusals.get(refusalKey(type, name));
    return refusal?.entry.version === entry?.version ? refusal?.lastGood : entry;
  }

  #isWanted(type: XdsType, name: string): boolean {
    const state = this.#states[type];
    if (state.names.has(name)) return true;
    if (state.isWildcard) return this.#options.view.isInWildcard(type, name) || state.current.has(name);
    // Endpoints that were sent behind their cluster before the proxy asked for them.
    return type === 'endpoints' && state.current.has(name);
  }

  #isWhole({ type }: TypeState): boolean {
    return this.#options.variant === 'sotw' && wholeTypes.has(type);
  }

  #isTrial(state: TypeState, entry: Entry): boolean {
    return !this.#options.proven.has(entry) || state.suspects.has(entry.name);
  }
}

const messageLengthMax = 2000;

/** A proxy may repeat a whole resource in its message: never that of a secret, and never all of a large one. */
function shownMessage({ type }: Entry, message: string): string {
  if (type === 'secret') return "the proxy's message is not shown: it may repeat the contents";
  return message.slice(0, messageLengthMax);
}

function endpointsOf({ references }: Entry): string[] {
  return [...(references ?? [])]
    .filter((reference) => reference.startsWith('endpoints:'))
    .map((reference) => reference.slice('endpoints:'.length));
}
