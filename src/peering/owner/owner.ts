// The owner's side of every stream: one session for each peer that is connected, fed with the changes of its catalog.
// A second stream of the same peer replaces the first. A slow or stalled consumer delays only itself.

import { Backoff } from '../../base/backoff.ts';
import type { CallHandlers, ServerCall } from '../../base/grpc/server-options.ts';
import { type Code, codes } from '../../base/grpc/status.ts';
import { errorText, type Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { Clock, Random, Timer, Timers } from '../../base/world.ts';
import type { PeerVersion } from '../kinds/peer.ts';
import { type OwnerInput, type OwnerOutput, OwnerSession, type OwnerState } from '../session/owner-session.ts';
import { reconnectBackoff } from '../session/reconnect.ts';
import type { IncomingStreams } from '../transport/incoming-streams.ts';
import { type Draft, drafts, snapshotHeader } from '../transport/wire.ts';
import type { PeerCaller } from '../trust/trust.ts';
import type { OwnerCatalog } from './owner-catalog.ts';

export interface ServedPeer {
  readonly name: string;
  /** Stays the same for the peer as long as its revisions can be compared: the uid of its Peer. */
  readonly epoch: string;
  readonly window: number;
  readonly versions: readonly PeerVersion[];
}

export interface OwnerOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
  readonly catalog: OwnerCatalog;
  /** Undefined for a peer that we do not know or do not serve. */
  readonly peer: (name: string) => ServedPeer | undefined;
  readonly hasSynced: () => boolean;
  /** How far into the home's history the catalog has come; never goes back. */
  readonly revision: () => number;
  readonly observer?: OwnerObserver;
  /** Where peers may publish to us on streams that they opened. */
  readonly incoming?: IncomingStreams | undefined;
}

interface OwnerObserver {
  /** A peer's answers or its connection changed. */
  changed(peer: string): void;
  refused?(refusal: Refusal & { readonly peer: string }): void;
}

interface Refusal {
  readonly id: string;
  readonly code: number;
  readonly reason: string;
}

/** State of one peer as a consumer of ours. */
export interface ConsumerReport {
  readonly peer: string;
  readonly identity: string;
  readonly version: PeerVersion;
  readonly state: OwnerState['kind'];
  readonly sinceMs: number;
  readonly aliveMs: number;
  readonly lag: number;
  readonly behindSinceMs: number | undefined;
  readonly unacknowledged: number;
  readonly fullSyncMs: number | undefined;
  /** Why the peer refused the end of the snapshot; empty if it did not. */
  readonly snapshotRefused: string;
  readonly refusals: ReadonlyMap<string, Refusal>;
  /** Its notes on accepted services: on names that it cannot give them. */
  readonly notes: ReadonlyMap<string, string>;
  isPending(id: string): boolean;
}

/** The remaining state of a stream that ended. */
export interface LeftConsumer {
  readonly endedMs: number;
  readonly aliveMs: number;
  readonly fullSyncMs: number | undefined;
}

/** A peer chooses what it says, and of how many services: both are kept within bounds. */
const noteLengthMax = 1024;
const reasonLengthMax = 1024;
/** The reasons of this many refusals are kept whole; later ones are cut. */
const wholeReasonsMax = 1000;
const shortReasonLengthMax = 100;
const notesMax = 10_000;

/** Streams that one peer may open in a burst, and how fast it earns new ones. */
const streamsBurst = 20;
const streamEveryMs = 1000;

export class Owner {
  readonly #options: OwnerOptions;
  readonly #streams = new Map<string, Stream>();
  readonly #budgets = new Map<string, { tokens: number; atMs: number }>();
  readonly #lines = new Map<string, LogBudget>();
  readonly #changed = new Map<string, Set<string>>();
  readonly #left = new Map<string, LeftConsumer>();

  constructor(options: OwnerOptions) {
    this.#options = options;
  }

  /** For the transport: undefined is Unimplemented. `isOurs` for a stream that we opened, on which the peer subscribes. */
  accept(call: ServerCall<PeerCaller>, options: { readonly isOurs?: boolean } = {}): CallHandlers | undefined {
    const peer = this.#options.peer(call.caller.peer);
    const draft = drafts.find(({ path }) => path === call.path);
    if (peer === undefined || draft === undefined || !peer.versions.includes(draft.name)) return undefined;
    if (!this.#mayOpen(peer.name)) {
      call.end(codes.unavailable, `peer ${peer.name} opens streams faster than one in ${streamEveryMs} ms`);
      return { onMessage() {}, onDrain() {}, onClosed() {} };
    }
    this.#streams.get(peer.name)?.end(codes.unavailable, 'replaced by a newer stream of the same peer');
    const lines = this.#lines.get(peer.name) ?? new LogBudget(this.#options.clock);
    this.#lines.set(peer.name, lines);
    const onClosed = () => this.#closed(stream);
    const incoming = options.isOurs ? undefined : this.#options.incoming;
    const stream = new Stream({ ...this.#options, incoming, call, draft, served: peer, lines, onClosed });
    this.#streams.set(peer.name, stream);
    this.#options.observer?.changed(peer.name);
    if (draft.isBidirectional && !options.isOurs) this.#options.incoming?.opened(call);
    return stream;
  }

  /** Several changes of one tick are looked at together. */
  changed(peer: string, id: string): void {
    if (!this.#streams.has(peer)) return;
    const ids = this.#changed.get(peer);
    if (ids !== undefined) return void ids.add(id);
    this.#changed.set(peer, new Set([id]));
    queueMicrotask(() => {
      const all = this.#changed.get(peer) ?? [];
      this.#changed.delete(peer);
      this.#streams.get(peer)?.step({ kind: 'changed', ids: all });
    });
  }

  report(peer: string): ConsumerReport | undefined {
    return this.#streams.get(peer)?.report();
  }

  *reports(): Generator<ConsumerReport> {
    for (const stream of this.#streams.values()) yield stream.report();
  }

  /** State of the last stream of a peer that has none now. */
  left(peer: string): LeftConsumer | undefined {
    return this.#streams.has(peer) ? undefined : this.#left.get(peer);
  }

  /** Its Peer is gone. */
  forget(peer: string, reason: string): void {
    this.restart(peer, reason);
    for (const known of [this.#left, this.#lines, this.#budgets]) known.delete(peer);
  }

  /** How many messages it may have in flight from now on, on its open stream too. */
  setWindow(peer: string, window: number): void {
    this.#streams.get(peer)?.step({ kind: 'window', window });
  }

  /** Ends the stream of a peer whose versions are other ones now; it comes back by itself. */
  restart(peer: string, reason: string): void {
    this.#streams.get(peer)?.end(codes.unavailable, reason);
  }

  #closed(stream: Stream): void {
    if (this.#streams.get(stream.peer) !== stream) return;
    this.#streams.delete(stream.peer);
    const { aliveMs, fullSyncMs } = stream.report();
    this.#left.set(stream.peer, { endedMs: this.#options.clock.wallMs(), aliveMs, fullSyncMs });
    this.#options.observer?.changed(stream.peer);
  }

  // A peer that comes back in a loop costs a whole catalog each time.
  #mayOpen(peer: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const budget = this.#budgets.get(peer) ?? { tokens: streamsBurst, atMs: nowMs };
    const tokens = Math.min(streamsBurst, budget.tokens + (nowMs - budget.atMs) / streamEveryMs);
    this.#budgets.set(peer, { tokens: Math.max(0, tokens - 1), atMs: nowMs });
    return tokens >= 1;
  }
}

interface StreamOptions extends OwnerOptions {
  readonly call: ServerCall<PeerCaller>;
  readonly draft: Draft;
  readonly served: ServedPeer;
  /** Log budget of the peer, across its streams. */
  readonly lines: LogBudget;
  readonly onClosed: () => void;
}

class Stream implements CallHandlers {
  readonly peer: string;
  readonly #options: StreamOptions;
  readonly #session: OwnerSession;
  readonly #refusals = new Map<string, Refusal>();
  readonly #notes = new Map<string, string>();
  readonly #sinceMs: number;
  #aliveMs: number;
  #behindSinceMs: number | undefined;
  #fullSyncMs: number | undefined;
  #snapshotRefused = '';
  /** As the consumer said it with its subscription. */
  #context = '';
  #isClosed = false;
  readonly #retries: Backoff;
  #nextRetry: Timer | undefined;

  constructor(options: StreamOptions) {
    const { call, draft, served, catalog, hasSynced, revision } = options;
    const hasSnapshotEnd = call.headers[snapshotHeader] === '1';
    const view = catalog.view(served.name, draft, { epoch: served.epoch, hasSynced, revision });
    this.peer = served.name;
    this.#options = options;
    this.#retries = new Backoff(options.random, reconnectBackoff);
    this.#sinceMs = options.clock.wallMs();
    this.#aliveMs = this.#sinceMs;
    const { window } = served;
    this.#session = new OwnerSession({ window, resourceUrl: draft.resourceUrl, hasSnapshotEnd, view: () => view });
    // At once: a consumer that asked for the marker must know before the first message whether it will come.
    call.sendHeaders(hasSnapshotEnd ? { [snapshotHeader]: '1' } : {});
  }

  onMessage(bytes: Buffer): void {
    this.onAlive();
    try {
      const { draft, call, incoming } = this.#options;
      const message = draft.decodeConsumerMessage(bytes);
      if (message?.kind === 'subscribe') this.#context = message.context ?? '';
      if (message !== undefined) this.step({ kind: 'message', message });
      if (draft.isBidirectional && incoming !== undefined && !incoming.message(call, bytes))
        this.#refusePublished(bytes);
    } catch (error) {
      this.step({ kind: 'unreadable', reason: `invalid request: ${errorText(error)}` });
    }
  }

  // We did not ask it to publish here: the answer says so, once for each of its messages.
  #refusePublished(bytes: Buffer): void {
    const { draft, call } = this.#options;
    const published = draft.decodeOwnerMessage(bytes);
    if (published === undefined) return;
    const reason = 'no subscription on this stream: set takeOverItsStream in its Peer here';
    const { nonce } = published;
    const refusal = {
      kind: 'nack',
      nonce,
      resourceUrl: draft.resourceUrl,
      code: codes.failedPrecondition,
      reason,
    } as const;
    call.send(draft.encodeConsumerMessage(refusal));
  }

  onDrain(): void {
    this.step({ kind: 'drained' });
  }

  onAlive(): void {
    this.#aliveMs = this.#options.clock.wallMs();
    this.#options.incoming?.alive(this.#options.call);
  }

  onClosed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#nextRetry?.cancel();
    this.#options.incoming?.closed(this.#options.call);
    this.#session.step({ kind: 'consumerLeft' });
    this.#options.onClosed();
  }

  end(code: Code, reason: string): void {
    this.#options.call.end(code, reason);
    this.onClosed();
  }

  step(input: OwnerInput): void {
    const before = this.#session.state.kind;
    for (const output of this.#session.step(input)) this.#act(output);
    this.#measure();
    this.#planRetry();
    if (this.#session.state.kind !== before) this.#options.observer?.changed(this.peer);
  }

  // Seed 000, createFederatedService: Unavailable is tried again with a back-off.
  #planRetry(): void {
    if (!this.#session.hasPostponed) {
      if (this.#nextRetry === undefined && this.#session.state.kind === 'waiting') this.#retries.reset();
      return;
    }
    if (this.#isClosed || this.#nextRetry !== undefined) return;
    this.#nextRetry = this.#options.timers.after(this.#retries.nextMs(), () => {
      this.#nextRetry = undefined;
      this.step({ kind: 'retry' });
    });
  }

  #act(output: OwnerOutput): void {
    switch (output.kind) {
      case 'send': {
        const isRoomLeft = this.#options.call.send(
          this.#options.draft.encodeOwnerMessage(output.message, this.#context),
        );
        if (!isRoomLeft) this.#session.step({ kind: 'blocked' });
        break;
      }
      case 'refused':
        this.#refused(output);
        break;
      case 'accepted':
        if (this.#refusals.delete(output.id)) this.#options.observer?.changed(this.peer);
        this.#note(output.id, beginningOf(output.note, noteLengthMax));
        break;
      case 'snapshotAccepted':
        this.#fullSyncMs = this.#options.clock.wallMs();
        this.#snapshotRefused = '';
        break;
      case 'snapshotRefused':
        this.#snapshotRefused = beginningOf(output.reason, reasonLengthMax);
        this.#warn('a peer found its snapshot incomplete', { reason: this.#snapshotRefused });
        this.#options.observer?.changed(this.peer);
        break;
      case 'close':
        this.end(output.code, output.reason);
    }
  }

  #refused({ id, code, reason: whole }: Refusal): void {
    const { catalog, observer } = this.#options;
    const lengthMax = this.#refusals.size < wholeReasonsMax ? reasonLengthMax : shortReasonLengthMax;
    const refusal = { id, code, reason: beginningOf(whole, lengthMax) };
    // A removal can be refused too; then nothing is left to report on.
    if (catalog.offered(this.peer, id) === undefined) this.#refusals.delete(id);
    else this.#refusals.set(id, refusal);
    this.#warn('a peer refused a service', { id, reason: refusal.reason });
    observer?.refused?.({ ...refusal, peer: this.peer });
    observer?.changed(this.peer);
  }

  #warn(text: string, fields: Record<string, unknown>): void {
    const more = this.#options.lines.take();
    if (more !== undefined) this.#options.log.warn(text, { peer: this.peer, ...fields, ...more });
  }

  #note(id: string, note: string): void {
    if (note === (this.#notes.get(id) ?? '')) return;
    this.#notes.delete(id);
    if (note !== '' && this.#notes.size < notesMax) {
      this.#notes.set(id, note);
      this.#warn('a peer took a service and has something to say of it', { id, note });
    }
    this.#options.observer?.changed(this.peer);
  }

  #measure(): void {
    const { lag } = this.#session;
    if (lag > 0) this.#behindSinceMs ??= this.#options.clock.wallMs();
    else this.#behindSinceMs = undefined;
    // A consumer that did not ask for the marker has the whole catalog when it has answered everything.
    if (this.#session.state.kind === 'waiting' && this.#snapshotRefused === '')
      this.#fullSyncMs ??= this.#options.clock.wallMs();
  }

  report(): ConsumerReport {
    const session = this.#session;
    return {
      peer: this.peer,
      identity: this.#options.call.caller.identity,
      version: this.#options.draft.name,
      state: session.state.kind,
      sinceMs: this.#sinceMs,
      aliveMs: this.#aliveMs,
      lag: session.lag,
      behindSinceMs: this.#behindSinceMs,
      unacknowledged: session.unacknowledged,
      fullSyncMs: this.#fullSyncMs,
      snapshotRefused: this.#snapshotRefused,
      refusals: this.#refusals,
      notes: this.#notes,
      isPending: (id) => session.isPending(id),
    };
  }
}

// Copied: a mere slice would keep the whole text in memory that it is a part of.
function beginningOf(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : Buffer.from(text.slice(0, lengthMax)).toString();
}
