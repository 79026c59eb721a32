// One consumer's subscription, on its owner's side: what was sent, what is in flight, what is next. Pure: `step`
// takes an input and returns what to do; the states are those of the protocol's server (Appendix A).
//
// Memory is bounded by the number of services: ids that changed are kept once, however often they changed, and one
// message per id is in flight at a time, so a slow consumer gets the newest state and not every state in between.

import { type Code, codes } from '../../base/grpc/status.ts';
import { type ConsumerMessage, exclusiveOr, type Offer, type OwnerMessage } from './messages.ts';

/**
 * The services that this consumer may see now. Shared by all consumers with the same rights, and never changed during
 * a step.
 */
export interface OwnerView {
  readonly hasSynced: boolean;
  readonly epoch: string;
  readonly revision: number;
  readonly ids: Iterable<string>;
  offer(id: string): Offer | undefined;
}

export type OwnerState =
  /** Accepts the stream; nothing was asked yet. */
  | { readonly kind: 'accepting' }
  /** Has something to send, and room in the window or not. */
  | { readonly kind: 'sending' }
  /** Everything was sent and answered; waits for a change or for the consumer to leave. */
  | { readonly kind: 'waiting' }
  /** The stream was ended with a code. */
  | { readonly kind: 'closed'; readonly code: Code };

export type OwnerInput =
  | { readonly kind: 'message'; readonly message: ConsumerMessage }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | { readonly kind: 'changed'; readonly ids: Iterable<string> }
  /** The way to the consumer is full: nothing is added to it until it has drained. */
  | { readonly kind: 'blocked' }
  | { readonly kind: 'drained' }
  /** The peer may have another number of messages in flight. */
  | { readonly kind: 'window'; readonly window: number }
  /** Services that the consumer could not take for now are offered again. */
  | { readonly kind: 'retry' }
  | { readonly kind: 'consumerLeft' };

export type OwnerOutput =
  | { readonly kind: 'send'; readonly message: OwnerMessage }
  | { readonly kind: 'refused'; readonly id: string; readonly code: number; readonly reason: string }
  /** `note` is the consumer's remark; empty if there is none. It may come again, with another note. */
  | { readonly kind: 'accepted'; readonly id: string; readonly note: string }
  | { readonly kind: 'snapshotAccepted' }
  | { readonly kind: 'snapshotRefused'; readonly reason: string }
  | { readonly kind: 'close'; readonly code: Code; readonly reason: string };

export interface OwnerSessionOptions {
  /** Messages in flight: 1 is the protocol's own `strict` mode. */
  readonly window: number;
  readonly resourceUrl: string;
  /** The consumer asked for the end of the snapshot to be marked. */
  readonly hasSnapshotEnd: boolean;
  readonly view: () => OwnerView;
}

interface InFlight {
  /** Undefined for the end of the snapshot. */
  readonly id: string | undefined;
  /** Hash of the offer; undefined for a withdrawal. */
  readonly hash: Uint8Array | undefined;
}

export class OwnerSession {
  readonly #options: OwnerSessionOptions;
  #state: OwnerState = { kind: 'accepting' };
  /** Ids to send, oldest first; none of them is in flight. */
  readonly #dirty = new Set<string>();
  /** Ids in flight that changed since they were sent. */
  readonly #changedInFlight = new Set<string>();
  /** The last message about each id on this stream. */
  readonly #told = new Map<string, Offer>();
  readonly #refused = new Map<string, Uint8Array>();
  /** Refused as Unavailable: the consumer may take them later as they are. */
  readonly #postponed = new Set<string>();
  readonly #inFlight = new Map<string, InFlight>();
  /** Under which nonce each service was last sent, both ways; only for a consumer of ours, which may answer again. */
  readonly #nonces = new Map<string, string>();
  readonly #sent = new Map<string, string>();
  readonly #idsInFlight = new Set<string>();
  /** Ids of the snapshot that were not sent yet; undefined once the snapshot is over. */
  #snapshot: Set<string> | undefined;
  #window: number;
  #isBlocked = false;
  #nonce = 0;

  constructor(options: OwnerSessionOptions) {
    this.#options = options;
    this.#window = options.window;
  }

  get state(): OwnerState {
    return this.#state;
  }

  /** Services the consumer has not acknowledged in their newest form. */
  get lag(): number {
    return this.#dirty.size + this.#idsInFlight.size;
  }

  /** Whether the consumer still has to answer for the newest form of this service. */
  isPending(id: string): boolean {
    return this.#state.kind === 'accepting' || this.#dirty.has(id) || this.#idsInFlight.has(id);
  }

  get hasPostponed(): boolean {
    return this.#postponed.size > 0;
  }

  get unacknowledged(): number {
    return this.#inFlight.size;
  }

  step(input: OwnerInput): OwnerOutput[] {
    if (this.#state.kind === 'closed') return [];
    switch (input.kind) {
      case 'message':
        return this.#take(input.message);
      case 'unreadable':
        return this.#close(codes.invalidArgument, input.reason);
      case 'changed':
        if (this.#state.kind === 'accepting') return [];
        for (const id of input.ids) this.#mark(id);
        return this.#fill([]);
      case 'retry':
        return this.#retry();
      case 'blocked':
        this.#isBlocked = true;
        return [];
      case 'drained':
        this.#isBlocked = false;
        return this.#state.kind === 'accepting' ? [] : this.#fill([]);
      case 'window':
        this.#window = input.window;
        return this.#state.kind === 'accepting' ? [] : this.#fill([]);
      case 'consumerLeft':
        this.#state = { kind: 'closed', code: codes.ok };
        return [];
    }
  }

  #take(message: ConsumerMessage): OwnerOutput[] {
    if (message.resourceUrl !== '' && message.resourceUrl !== this.#options.resourceUrl) {
      return this.#close(
        codes.invalidArgument,
        `resource_url is ${JSON.stringify(message.resourceUrl)}, this endpoint serves ${this.#options.resourceUrl}`,
      );
    }
    if (message.kind === 'subscribe') return this.#subscribe(message.resourceUrl);
    if (this.#state.kind === 'accepting')
      return this.#close(
        codes.invalidArgument,
        'an answer came before the consumer registered: send resource_url first',
      );
    return this.#answered(message);
  }

  #subscribe(resourceUrl: string): OwnerOutput[] {
    if (resourceUrl === '')
      return this.#close(
        codes.invalidArgument,
        `resource_url is missing, this endpoint serves ${this.#options.resourceUrl}`,
      );
    const view = this.#options.view();
    // Never an empty catalog by mistake: a consumer would remove what it holds.
    if (!view.hasSynced) return this.#close(codes.unavailable, "the owner's catalog has not synced yet");
    // Every snapshot costs as much as there are services; one at a time is what an honest consumer needs.
    if (this.#snapshot !== undefined)
      return this.#close(codes.invalidArgument, 'the consumer registered again before its catalog was complete');
    this.#snapshot = new Set(view.ids);
    for (const id of this.#told.keys()) if (!this.#snapshot.has(id)) this.#mark(id);
    for (const id of this.#snapshot) {
      this.#mark(id);
      this.#told.delete(id);
    }
    this.#refused.clear();
    this.#postponed.clear();
    return this.#fill([]);
  }

  #retry(): OwnerOutput[] {
    for (const id of this.#postponed) {
      this.#refused.delete(id);
      this.#told.delete(id);
      this.#mark(id);
    }
    this.#postponed.clear();
    return this.#fill([]);
  }

  #mark(id: string): void {
    if (this.#idsInFlight.has(id)) this.#changedInFlight.add(id);
    else this.#dirty.add(id);
  }

  #answered(message: Exclude<ConsumerMessage, { kind: 'subscribe' }>): OwnerOutput[] {
    // Some peers answer without a nonce; they have one message in flight, so it is the oldest.
    const nonce = message.nonce === '' ? (this.#inFlight.keys().next().value ?? '') : message.nonce;
    const answered = this.#inFlight.get(nonce);
    if (answered === undefined) return this.#answeredAgain(message);
    this.#inFlight.delete(nonce);
    const outputs: OwnerOutput[] = [];
    if (answered.id === undefined) {
      outputs.push(
        message.kind === 'ack' ? { kind: 'snapshotAccepted' } : { kind: 'snapshotRefused', reason: message.reason },
      );
    } else {
      this.#idsInFlight.delete(answered.id);
      if (this.#changedInFlight.delete(answered.id)) this.#dirty.add(answered.id);
      outputs.push(this.#judge(message, answered.id, answered.hash));
    }
    return this.#fill(outputs);
  }

  /** A consumer of ours says something else of what it had acknowledged. */
  #answeredAgain(message: Exclude<ConsumerMessage, { kind: 'subscribe' }>): OwnerOutput[] {
    const id = this.#sent.get(message.nonce);
    if (id === undefined || message.kind === 'nack' || this.#refused.has(id)) return [];
    return [{ kind: 'accepted', id, note: message.note ?? '' }];
  }

  #judge(
    message: Exclude<ConsumerMessage, { kind: 'subscribe' }>,
    id: string,
    hash: Uint8Array | undefined,
  ): OwnerOutput {
    this.#postponed.delete(id);
    if (message.kind === 'ack') {
      this.#refused.delete(id);
      return { kind: 'accepted', id, note: message.note ?? '' };
    }
    // Quarantined until its content changes; the other services go on.
    if (hash !== undefined) this.#refused.set(id, hash);
    if (hash !== undefined && message.code === codes.unavailable) this.#postponed.add(id);
    return { kind: 'refused', id, code: message.code, reason: message.reason };
  }

  /** Sends as much as the window allows. */
  #fill(outputs: OwnerOutput[]): OwnerOutput[] {
    const view = this.#options.view();
    for (const id of this.#dirty) {
      if (!this.#hasRoom()) break;
      this.#dirty.delete(id);
      this.#snapshot?.delete(id);
      const message = this.#next(id, view);
      if (message !== undefined) this.#send(message, id, outputs);
    }
    this.#endSnapshot(view, outputs);
    this.#state = { kind: this.#isIdle() ? 'waiting' : 'sending' };
    return outputs;
  }

  #isIdle(): boolean {
    return this.#dirty.size === 0 && this.#inFlight.size === 0 && this.#snapshot === undefined;
  }

  #hasRoom(): boolean {
    return !this.#isBlocked && this.#inFlight.size < this.#window;
  }

  #next(id: string, view: OwnerView): OwnerMessage | undefined {
    const offer = view.offer(id);
    const told = this.#told.get(id);
    if (offer === undefined) {
      if (told === undefined) return undefined;
      this.#told.delete(id);
      this.#refused.delete(id);
      this.#postponed.delete(id);
      return { kind: 'delete', nonce: '', offer: told };
    }
    if (told?.hash === offer.hash || isRefused(this.#refused.get(id), offer)) return undefined;
    if (told !== undefined && Buffer.compare(told.hash, offer.hash) === 0) return undefined;
    this.#told.set(id, offer);
    return { kind: told === undefined ? 'create' : 'update', nonce: '', offer };
  }

  #send(message: OwnerMessage, id: string | undefined, outputs: OwnerOutput[]): void {
    this.#nonce += 1;
    const nonce = String(this.#nonce);
    const isOffer = message.kind === 'create' || message.kind === 'update';
    const hash = isOffer ? message.offer.hash : undefined;
    this.#inFlight.set(nonce, { id, hash });
    if (id !== undefined) this.#idsInFlight.add(id);
    if (id !== undefined && this.#options.hasSnapshotEnd) this.#rememberNonce(id, isOffer ? nonce : undefined);
    outputs.push({ kind: 'send', message: { ...message, nonce } });
  }

  #rememberNonce(id: string, nonce: string | undefined): void {
    this.#sent.delete(this.#nonces.get(id) ?? '');
    if (nonce === undefined) {
      this.#nonces.delete(id);
      return;
    }
    this.#nonces.set(id, nonce);
    this.#sent.set(nonce, id);
  }

  // The marker covers what was sent so far, which is what the consumer can check.
  #endSnapshot(view: OwnerView, outputs: OwnerOutput[]): void {
    if (this.#snapshot === undefined || this.#snapshot.size > 0) return;
    if (this.#options.hasSnapshotEnd && !this.#hasRoom()) return;
    this.#snapshot = undefined;
    if (!this.#options.hasSnapshotEnd) return;
    const digest = new Uint8Array(32);
    for (const offer of this.#told.values()) exclusiveOr(digest, offer.hash);
    const end = { epoch: view.epoch, revision: view.revision, count: this.#told.size, digest };
    this.#send({ kind: 'snapshotEnd', nonce: '', end }, undefined, outputs);
  }

  #close(code: Code, reason: string): OwnerOutput[] {
    this.#state = { kind: 'closed', code };
    return [{ kind: 'close', code, reason }];
  }
}

function isRefused(refused: Uint8Array | undefined, offer: Offer): boolean {
  return refused !== undefined && Buffer.compare(refused, offer.hash) === 0;
}
