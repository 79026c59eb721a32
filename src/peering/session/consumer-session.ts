// One stream from an owner, on the consumer's side: services to store or refuse, answers to send, and when services that
// were not mentioned again may be removed. Pure: `step` takes an input with its time and returns outputs. The states are
// those of the protocol's client (Appendix A); dialing and backing off happen around it, in `consumer-link.ts`.
//
// Nothing is acknowledged before it is on disk. The store must keep the order per id, and must retry its own faults: a
// refusal would make the owner withhold the service.

import { type Code, codes } from '../../base/grpc/status.ts';
import { type ClaimBounds, type SharedService, validateSharedService } from '../kinds/shared-service.ts';
import { idLengthMax, reasonOf } from '../rules/reason.ts';
import { type HeldServices, hashBytes, hashText } from './held-services.ts';
import { type ConsumerMessage, exclusiveOr, isSameHash, type ReceivedMessage, type SnapshotEnd } from './messages.ts';

export type ConsumerState =
  /** registerConsumer was sent; nothing came yet. */
  | { readonly kind: 'registering' }
  /** The owner's catalog is coming in. */
  | { readonly kind: 'receiving' }
  /** Something is being stored. */
  | { readonly kind: 'updating' }
  /** Everything that came was stored and answered. */
  | { readonly kind: 'waiting' }
  | { readonly kind: 'closed'; readonly code: Code };

/** How we learn what was deleted while we were away. */
export type ReconcileMode = 'exact' | 'quiescence';

export type ConsumerInput =
  | { readonly kind: 'opened'; readonly nowMs: number; readonly hasSnapshotEnd: boolean }
  | { readonly kind: 'message'; readonly nowMs: number; readonly message: ReceivedMessage }
  /** The work of this ticket is on disk. */
  | { readonly kind: 'stored'; readonly nowMs: number; readonly ticket: number }
  /** A permanent refusal of the store: it is refused like any other invalid service. */
  | { readonly kind: 'storeRefused'; readonly nowMs: number; readonly ticket: number; readonly reason: string }
  /** The retention time is over: everything that the owner does not confirm is removed. */
  | { readonly kind: 'withdraw' }
  /** The note to the owner about this service may have changed. */
  | { readonly kind: 'noted'; readonly id: string }
  /** `aliveMs` is when the owner last gave a sign of life, a keep-alive answer included. */
  | { readonly kind: 'tick'; readonly nowMs: number; readonly aliveMs: number };

export type ConsumerOutput =
  | { readonly kind: 'send'; readonly message: ConsumerMessage }
  | {
      readonly kind: 'store';
      readonly ticket: number;
      readonly service: SharedService;
      readonly hash: Uint8Array;
      readonly bytes: number;
    }
  | { readonly kind: 'remove'; readonly ticket: number; readonly ids: readonly string[] }
  /** The owner still has it: if it was marked stale or suspect, it no longer is. */
  | { readonly kind: 'confirmed'; readonly id: string }
  /** The owner named it, with content that was refused: it has it, but not in the form that we hold. */
  | { readonly kind: 'named'; readonly id: string }
  /** `id` is empty when the owner did not say which service it meant. */
  | { readonly kind: 'refused'; readonly id: string; readonly reason: string; readonly isOverLimit?: boolean }
  | { readonly kind: 'suspect'; readonly ids: readonly string[] }
  | { readonly kind: 'reconciled'; readonly mode: ReconcileMode; readonly removed: number; readonly end?: SnapshotEnd }
  | { readonly kind: 'nothingConfirmed' }
  /** Unnamed services stay for now: they may be among the messages that could not be read. */
  | { readonly kind: 'heldBack'; readonly unreadable: number }
  /** The owner is silent: it is asked for a sign of life, which tells silence from a dead connection. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'close'; readonly code: Code; readonly reason: string };

export interface ConsumerSessionOptions {
  readonly resourceUrl: string;
  readonly bounds: ClaimBounds;
  /** Which services are wanted at all; the others are acknowledged and not kept. */
  readonly accepts: (service: SharedService) => boolean;
  /** How many ids may be held, those of refused services included, and how many bytes their content may take. */
  readonly servicesMax: number;
  readonly bytesMax: number;
  /** A note to the owner about an accepted service; empty if there is none. */
  readonly noteOf?: (id: string) => string;
  /** The stored services of this owner. Changes with the store, before the session is notified. */
  readonly held: HeldServices;
  /** The newest snapshot seen from this owner. */
  readonly lastEnd?: SnapshotEnd;
  /** Messages that wait for the store; an owner that sends more without waiting for answers floods us. */
  readonly pendingMax: number;
  readonly silenceMsMin: number;
  readonly graceMs: number;
  /** For how long a service has been suspect already, on earlier streams; undefined for one that was not. */
  readonly suspectForMs?: (id: string) => number | undefined;
}

/**
 * The answer to send once something is on disk. Keyed by a ticket of our own, because some owners send empty nonces.
 */
interface Pending {
  readonly ids: readonly string[];
  readonly bytes: number;
  readonly onStored: () => ConsumerOutput[];
  readonly onRefused: (reason: string) => ConsumerOutput[];
}

/** Pending writes for one id. */
interface Unsettled {
  /** How many tickets are about it. */
  tickets: number;
  /** The pending form; undefined for a removal. */
  coming: { readonly hash: string; readonly bytes: number } | undefined;
}

export class ConsumerSession {
  readonly #options: ConsumerSessionOptions;
  #state: ConsumerState = { kind: 'registering' };
  #mode: ReconcileMode = 'quiescence';
  /** Ids of which something is on its way to the disk. Their stored form is not there yet. */
  readonly #unsettled = new Map<string, Unsettled>();
  /** Ids of refused services of which nothing else is held: a note on disk says why. */
  readonly #refusedIds = new Set<string>();
  /** How many ids there will be on disk when all is settled, and how many bytes. */
  #count: number;
  #bytes: number;
  /** Held, and not mentioned on this stream yet. */
  readonly #unconfirmed: Set<string>;
  /** Mentioned on this stream, with its content; forgotten when the snapshot is over. */
  #mentioned: Map<string, string> | undefined = new Map();
  readonly #digest = new Uint8Array(32);
  readonly #pending = new Map<number, Pending>();
  #pendingBytes = 0;
  /** Messages of this snapshot that do not say which service they are about. */
  #nameless = 0;
  /** How many services of this snapshot were mentioned beyond those that are remembered. */
  #mentionedBesides = 0;
  #barrier: { readonly waitsFor: Set<number>; readonly then: () => ConsumerOutput[] } | undefined;
  /** Since when the owner could send: its last message, or our last answer. An owner may wait for each answer. */
  #ownersTurnMs = 0;
  /** Since then. */
  #hasProbed = false;
  #gapMsMax = 0;
  /** Since when the owner no longer names them. They go when their grace is over; it does not begin anew with a stream. */
  #suspects: Map<string, number> | undefined;
  /** Something that was held was mentioned on this stream. */
  #hasConfirmed = false;
  #ticket = 0;
  /** The owner is one of ours: it takes a second acknowledgement for what it is, and a foreign one might not. */
  #isOneOfOurs = false;
  /** Under which nonce each service was last acknowledged; only for an owner of ours. */
  readonly #acknowledged = new Map<string, string>();
  /** The last note sent to the owner for each service. */
  readonly #notes = new Map<string, string>();

  constructor(options: ConsumerSessionOptions) {
    this.#options = options;
    this.#count = options.held.size;
    this.#bytes = options.held.bytes;
    this.#unconfirmed = new Set(options.held.ids());
  }

  get state(): ConsumerState {
    return this.#state;
  }

  get mode(): ReconcileMode {
    return this.#mode;
  }

  /** Services that the owner no longer names, and whose grace is not over. */
  get suspects(): number {
    return this.#suspects?.size ?? 0;
  }

  /** Messages whose content is not on disk yet. */
  get unacknowledged(): number {
    return this.#pending.size;
  }

  /** Bytes of their content. */
  get unacknowledgedBytes(): number {
    return this.#pendingBytes;
  }

  /** Ids that are kept in memory, for whatever reason. */
  get remembered(): number {
    return this.#count + (this.#mentioned?.size ?? 0);
  }

  get isSnapshotOver(): boolean {
    return this.#mentioned === undefined;
  }

  step(input: ConsumerInput): ConsumerOutput[] {
    if (this.#state.kind === 'closed') return [];
    const outputs = this.#take(input);
    if ((this.#state as ConsumerState).kind !== 'closed') this.#state = { kind: this.#kindNow() };
    return outputs;
  }

  #take(input: ConsumerInput): ConsumerOutput[] {
    switch (input.kind) {
      case 'opened':
        this.#mode = input.hasSnapshotEnd ? 'exact' : 'quiescence';
        this.#isOneOfOurs = input.hasSnapshotEnd;
        this.#ownersTurnMs = input.nowMs;
        return [];
      case 'message':
        this.#gapMsMax = Math.max(this.#gapMsMax, input.nowMs - this.#ownersTurnMs);
        this.#beginOwnersTurn(input.nowMs);
        return this.#received(input.message);
      case 'stored':
        this.#beginOwnersTurn(input.nowMs);
        return [...(this.#takePending(input.ticket)?.onStored() ?? []), ...this.#lift(input.ticket)];
      case 'storeRefused':
        this.#beginOwnersTurn(input.nowMs);
        return [...(this.#takePending(input.ticket)?.onRefused(input.reason) ?? []), ...this.#lift(input.ticket)];
      case 'withdraw':
        return this.#withdraw();
      case 'noted':
        return this.#noted(input.id);
      case 'tick':
        return this.#tick(input.nowMs, input.aliveMs);
    }
  }

  #beginOwnersTurn(nowMs: number): void {
    this.#ownersTurnMs = nowMs;
    this.#hasProbed = false;
  }

  #kindNow(): 'registering' | 'receiving' | 'updating' | 'waiting' {
    if (this.#pending.size > 0) return 'updating';
    if (this.#mentioned === undefined) return 'waiting';
    return this.#mentioned.size === 0 ? 'registering' : 'receiving';
  }

  #received(message: ReceivedMessage): ConsumerOutput[] {
    if (this.#pending.size >= this.#options.pendingMax) {
      return this.#close(
        codes.invalidArgument,
        `the owner sent ${this.#pending.size} messages without waiting for an answer`,
      );
    }
    switch (message.kind) {
      case 'upsert':
        return this.#upsert(message);
      case 'delete':
        return this.#delete(message.nonce, message.id);
      case 'snapshotEnd':
        return this.#snapshotEnd(message.nonce, message.end);
      case 'unreadable':
        return this.#unreadable(message.nonce, message.id, message.reason);
    }
  }

  #upsert({ nonce, service, hash, bytes }: ReceivedMessage & { kind: 'upsert' }): ConsumerOutput[] {
    const hashed = hashText(hash);
    this.#mention(service.id, hashed);
    this.#acknowledged.delete(service.id);
    const errors = validateSharedService(service, this.#options.bounds);
    if (errors.length > 0) {
      const reason = reasonOf(errors.map(({ field, message }) => `${field}: ${message}`));
      return [...this.#named(service.id), ...this.#refusal(nonce, service.id, reason)];
    }
    if (!this.#options.accepts(service)) return this.#removeOne(nonce, service.id);
    const tooMuch = this.#whyNoRoom(service.id, bytes);
    if (tooMuch !== undefined) return this.#tooMany(nonce, service.id, tooMuch);
    if (!this.#unsettled.has(service.id) && this.#options.held.get(service.id)?.hash === hashed)
      return [{ kind: 'confirmed', id: service.id }, this.#accept(nonce, service.id)];
    this.#comes(service.id, { hash: hashed, bytes });
    const ticket = this.#await([service.id], {
      bytes,
      onStored: () => [this.#accept(nonce, service.id)],
      onRefused: (reason) => this.#refusal(nonce, service.id, reason),
    });
    return [{ kind: 'store', ticket, service, hash, bytes }];
  }

  /** The final stored form of this id once all writes are settled; undefined if there is none. */
  #willHold(id: string): { readonly bytes: number } | undefined {
    const unsettled = this.#unsettled.get(id);
    if (unsettled !== undefined) return unsettled.coming;
    return this.#options.held.get(id) ?? (this.#refusedIds.has(id) ? { bytes: 0 } : undefined);
  }

  #comes(id: string, coming: { readonly hash: string; readonly bytes: number }): void {
    const before = this.#willHold(id);
    if (before === undefined) this.#count += 1;
    this.#bytes += coming.bytes - (before?.bytes ?? 0);
    this.#refusedIds.delete(id);
    const unsettled = this.#unsettled.get(id);
    if (unsettled === undefined) this.#unsettled.set(id, { tickets: 0, coming });
    else unsettled.coming = coming;
  }

  #goes(id: string): void {
    const before = this.#willHold(id);
    if (before === undefined) return;
    this.#count -= 1;
    this.#bytes -= before.bytes;
    this.#refusedIds.delete(id);
    const unsettled = this.#unsettled.get(id);
    if (unsettled !== undefined) unsettled.coming = undefined;
  }

  #unreadable(nonce: string, id: string, reason: string): ConsumerOutput[] {
    if (id === '') this.#nameless += 1;
    this.#confirm(id);
    return [...this.#named(id), ...this.#refusal(nonce, id, reasonOf([reason]))];
  }

  #named(id: string): ConsumerOutput[] {
    return this.#willHold(id) === undefined ? [] : [{ kind: 'named', id }];
  }

  // Refused content leaves what was good before it in place, and counts as mentioned. The note of a refusal is held too,
  // so that a DELETE takes it away.
  #refusal(nonce: string, id: string, reason: string): ConsumerOutput[] {
    const isNew = this.#willHold(id) === undefined;
    const isOverLimit = isNew && this.#count >= this.#options.servicesMax;
    const isKept = id !== '' && id.length <= idLengthMax && !isOverLimit;
    if (isKept && isNew) {
      this.#refusedIds.add(id);
      this.#count += 1;
    }
    const refused: ConsumerOutput = { kind: 'refused', id, reason, ...(isOverLimit ? { isOverLimit } : {}) };
    return [refused, this.#nack(nonce, codes.invalidArgument, reason)];
  }

  #whyNoRoom(id: string, bytes: number): string | undefined {
    const { servicesMax, bytesMax } = this.#options;
    const before = this.#willHold(id);
    if (before === undefined && this.#count >= servicesMax)
      return `services: Too many: ${servicesMax} of this peer are kept here at most`;
    const more = bytes - (before?.bytes ?? 0);
    return more > 0 && this.#bytes + more > bytesMax
      ? `services: Too many: ${bytesMax} bytes of this peer's services are kept here at most`
      : undefined;
  }

  // Nothing of it is kept, so that a peer without end costs nothing but the answers.
  #tooMany(nonce: string, id: string, reason: string): ConsumerOutput[] {
    return [{ kind: 'refused', id, reason, isOverLimit: true }, this.#nack(nonce, codes.resourceExhausted, reason)];
  }

  #delete(nonce: string, id: string): ConsumerOutput[] {
    if (id === '')
      return [this.#nack(nonce, codes.invalidArgument, 'id: Required value: a DELETE names the service by its id')];
    this.#forget(id);
    this.#confirm(id);
    this.#acknowledged.delete(id);
    this.#notes.delete(id);
    return this.#removeOne(nonce, id);
  }

  // A removal by an earlier message may still be pending.
  #removeOne(nonce: string, id: string): ConsumerOutput[] {
    const isThere = this.#unsettled.has(id) || this.#willHold(id) !== undefined;
    return isThere ? this.#remove([id], () => [this.#ack(nonce)]) : [this.#ack(nonce)];
  }

  #snapshotEnd(nonce: string, end: SnapshotEnd): ConsumerOutput[] {
    const wrong = this.#whatIsWrongWith(end);
    if (wrong !== undefined) {
      this.#mode = 'quiescence';
      return [this.#nack(nonce, codes.failedPrecondition, wrong)];
    }
    this.#mentioned = undefined;
    const gone = [...this.#unconfirmed];
    this.#unconfirmed.clear();
    const done: ConsumerOutput = { kind: 'reconciled', mode: 'exact', removed: gone.length, end };
    const removal = gone.length === 0 ? [] : this.#remove(gone, () => []);
    return [...removal, ...this.#afterAllPending(() => [done, this.#ack(nonce)])];
  }

  // The end of a snapshot is acknowledged like anything else: when all that it stands for is on disk.
  #afterAllPending(then: () => ConsumerOutput[]): ConsumerOutput[] {
    if (this.#pending.size === 0) return then();
    this.#barrier = { waitsFor: new Set(this.#pending.keys()), then };
    return [];
  }

  #whatIsWrongWith(end: SnapshotEnd): string | undefined {
    const last = this.#options.lastEnd;
    const count = (this.#mentioned?.size ?? 0) + this.#mentionedBesides;
    if (this.#mentioned === undefined) return 'a second end of one snapshot';
    if (this.#nameless > 0 && end.count === count + this.#nameless)
      return `${this.#nameless} messages of the snapshot could not be read: nothing is removed for what it does not name`;
    if (end.count !== count) return `the snapshot has ${end.count} services, ${count} arrived`;
    if (!isSameHash(end.digest, this.#digest)) return 'what arrived is not what the snapshot says it holds';
    if (last?.epoch === end.epoch && end.revision < last.revision)
      return `the snapshot is of revision ${end.revision}, older than ${last.revision}, which was seen before`;
    return undefined;
  }

  #tick(nowMs: number, aliveMs: number): ConsumerOutput[] {
    if (this.#mode === 'exact') return [];
    if (this.#suspects !== undefined) return this.#endGrace(this.#suspects, nowMs);
    const silenceMs = Math.max(this.#options.silenceMsMin, 20 * this.#gapMsMax);
    const isSilent = nowMs - this.#ownersTurnMs >= silenceMs;
    if (this.#mentioned === undefined || !isSilent || this.#pending.size > 0) return [];
    if (aliveMs <= this.#ownersTurnMs) {
      // Once: an owner that allows few pings may not answer this one either.
      const probe: ConsumerOutput[] = this.#hasProbed ? [] : [{ kind: 'probe' }];
      this.#hasProbed = true;
      return probe;
    }
    this.#mentioned = undefined;
    if (this.#unconfirmed.size === 0) return [{ kind: 'reconciled', mode: 'quiescence', removed: 0 }];
    if (this.#nameless > 0) return [{ kind: 'heldBack', unreadable: this.#nameless }];
    // An owner that names nothing of what we hold may have started empty by mistake: retention decides, not we.
    if (!this.#hasConfirmed) return [{ kind: 'nothingConfirmed' }];
    const forMs = (id: string) => this.#options.suspectForMs?.(id);
    this.#suspects = new Map(Array.from(this.#unconfirmed, (id) => [id, nowMs - (forMs(id) ?? 0)]));
    const fresh = [...this.#unconfirmed].filter((id) => forMs(id) === undefined);
    return fresh.length === 0 ? [] : [{ kind: 'suspect', ids: fresh }];
  }

  #endGrace(suspects: Map<string, number>, nowMs: number): ConsumerOutput[] {
    // The owner may wait for this answer before it names the next service.
    if (this.#pending.size > 0) return [];
    const gone: string[] = [];
    for (const [id, sinceMs] of suspects) {
      if (nowMs - sinceMs >= this.#options.graceMs) gone.push(id);
    }
    for (const id of gone) {
      suspects.delete(id);
      this.#unconfirmed.delete(id);
    }
    const isOver = suspects.size === 0;
    if (isOver) this.#suspects = undefined;
    const done: ConsumerOutput[] = isOver ? [{ kind: 'reconciled', mode: 'quiescence', removed: gone.length }] : [];
    return gone.length === 0 ? done : this.#remove(gone, () => done);
  }

  #withdraw(): ConsumerOutput[] {
    const gone = [...this.#unconfirmed];
    this.#unconfirmed.clear();
    return gone.length === 0 ? [] : this.#remove(gone, () => []);
  }

  #lift(ticket: number): ConsumerOutput[] {
    const barrier = this.#barrier;
    if (barrier === undefined || !barrier.waitsFor.delete(ticket) || barrier.waitsFor.size > 0) return [];
    this.#barrier = undefined;
    return barrier.then();
  }

  #takePending(ticket: number): Pending | undefined {
    const pending = this.#pending.get(ticket);
    if (this.#pending.delete(ticket)) this.#pendingBytes -= pending?.bytes ?? 0;
    for (const id of pending?.ids ?? []) {
      const unsettled = this.#unsettled.get(id);
      if (unsettled === undefined) continue;
      unsettled.tickets -= 1;
      if (unsettled.tickets === 0) this.#settle(id, unsettled);
    }
    return pending;
  }

  // From here on the stored form counts: the store may have refused the pending one.
  #settle(id: string, { coming }: Unsettled): void {
    this.#unsettled.delete(id);
    const held = this.#options.held.get(id);
    this.#bytes += (held?.bytes ?? 0) - (coming?.bytes ?? 0);
    this.#count += (held === undefined ? 0 : 1) - (coming === undefined ? 0 : 1);
  }

  #remove(ids: readonly string[], onStored: () => ConsumerOutput[]): ConsumerOutput[] {
    for (const id of ids) this.#goes(id);
    return [{ kind: 'remove', ticket: this.#await(ids, { bytes: 0, onStored, onRefused: () => [] }), ids }];
  }

  #await(ids: readonly string[], then: Omit<Pending, 'ids'>): number {
    this.#ticket += 1;
    this.#pending.set(this.#ticket, { ids, ...then });
    this.#pendingBytes += then.bytes;
    for (const id of ids) {
      const unsettled = this.#unsettled.get(id);
      if (unsettled === undefined) this.#unsettled.set(id, { tickets: 1, coming: undefined });
      else unsettled.tickets += 1;
    }
    return this.#ticket;
  }

  #mention(id: string, hash: string): void {
    this.#confirm(id);
    if (this.#mentioned === undefined) return;
    this.#forget(id);
    const isKnown = this.#willHold(id) !== undefined;
    if (isKnown || this.#mentioned.size < this.#options.servicesMax) this.#mentioned.set(id, hash);
    else this.#mentionedBesides += 1;
    exclusiveOr(this.#digest, hashBytes(hash));
  }

  #confirm(id: string): void {
    if (!this.#unconfirmed.delete(id)) return;
    const isFirst = !this.#hasConfirmed;
    const wasSuspect = this.#suspects?.delete(id) ?? false;
    this.#hasConfirmed = true;
    if (this.#mode !== 'quiescence' || !(isFirst || wasSuspect)) return;
    // Silence was taken for the end too early: the catalog is still coming, and the others may be in it.
    this.#suspects = undefined;
    this.#mentioned ??= new Map();
  }

  #forget(id: string): void {
    const before = this.#mentioned?.get(id);
    if (before === undefined) return;
    exclusiveOr(this.#digest, hashBytes(before));
    this.#mentioned?.delete(id);
  }

  /** Acknowledges a service, with what its owner should know of it. */
  #accept(nonce: string, id: string): ConsumerOutput {
    const note = this.#options.noteOf?.(id) ?? '';
    if (note === '') this.#notes.delete(id);
    else this.#notes.set(id, note);
    if (this.#isOneOfOurs && nonce !== '') this.#acknowledged.set(this.#options.held.get(id)?.id ?? id, nonce);
    return this.#ack(nonce, note);
  }

  // For a service that waits for its acknowledgement, the note goes with that.
  #noted(id: string): ConsumerOutput[] {
    const nonce = this.#acknowledged.get(id);
    const isOld = (this.#options.noteOf?.(id) ?? '') === (this.#notes.get(id) ?? '');
    return nonce === undefined || isOld ? [] : [this.#accept(nonce, id)];
  }

  #ack(nonce: string, note = ''): ConsumerOutput {
    const { resourceUrl } = this.#options;
    return { kind: 'send', message: { kind: 'ack', nonce, resourceUrl, ...(note === '' ? {} : { note }) } };
  }

  #nack(nonce: string, code: Code, reason: string): ConsumerOutput {
    return { kind: 'send', message: { kind: 'nack', nonce, resourceUrl: this.#options.resourceUrl, code, reason } };
  }

  #close(code: Code, reason: string): ConsumerOutput[] {
    this.#state = { kind: 'closed', code };
    return [{ kind: 'close', code, reason }];
  }
}
