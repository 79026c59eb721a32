// Our side of one peer's catalog: dials, registers, stores what comes, answers, and comes back after a failure. While
// the owner is away everything stays as it was; what is older than the retention time goes. Two pure parts decide the
// next step: `connection.ts` says when to dial, `consumer-session.ts` what to store and answer.

import { X509Certificate } from 'node:crypto';
import type { CallHandlers } from '../../base/grpc/server-options.ts';
import { type Code, codes } from '../../base/grpc/status.ts';
import type { ClientCall, ClientHandlers, CloseCause, Dial } from '../../base/grpc/transport-client.ts';
import { errorText, type Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { Timer, World } from '../../base/world.ts';
import { whatIsWrongWithChain } from '../../base/x509/chain.ts';
import type { PeerVersion } from '../kinds/peer.ts';
import { type LinkConfig, type LinkLimits, linkLimits } from '../rules/link-config.ts';
import { Connection, type ConnectionInput, type ConnectionOutput, type LinkState } from '../session/connection.ts';
import {
  type ConsumerInput,
  type ConsumerOutput,
  ConsumerSession,
  type ReconcileMode,
} from '../session/consumer-session.ts';
import type { ConsumerMessage, SnapshotEnd } from '../session/messages.ts';
import { type ServeBack, serveBack } from '../transport/served-back.ts';
import { type Draft, drafts, snapshotHeader } from '../transport/wire.ts';
import type { PeerServiceStore } from './peer-service-store.ts';
import { type Refusal, RefusalList } from './refusals.ts';
import { type Absence, StaleClock } from './stale-clock.ts';

export interface LinkOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly peer: string;
  readonly config: LinkConfig;
  readonly store: PeerServiceStore;
  readonly dial: Dial;
  /** Serves an owner that subscribes to us on the stream that we opened. */
  readonly serve?: ServeBack;
  readonly credentials: () => { readonly certificate: string; readonly key: string } | undefined;
  /** Wall time of the last sign of life before this process started, if it is known. */
  readonly lastContactMs?: number;
  /** How long the owner had been away then, as far as we were running. */
  readonly awayMs?: number;
  /** How often the owner let itself be asked for a sign of life, if it objected before. */
  readonly keepAliveMs?: number;
  /** Wall time at which its Peer was made, if it is known. */
  readonly madeMs?: number;
  readonly limits?: Partial<LinkLimits>;
  /** A note to the owner about an accepted service; empty if there is none. */
  readonly noteOf?: (id: string) => string;
  readonly onChanged?: () => void;
  readonly onRefused?: (refusal: { readonly id: string; readonly reason: string }) => void;
}

export interface LinkReport {
  readonly state: LinkState;
  readonly version: PeerVersion;
  readonly mode: ReconcileMode | undefined;
  readonly keepAliveMs: number;
  /** Services that the owner no longer names; they go when their grace is over. */
  readonly suspects: number;
  readonly services: number;
  readonly aliveMs: number | undefined;
  readonly fullSyncMs: number | undefined;
  readonly unacknowledged: number;
  readonly behindSinceMs: number | undefined;
  readonly staleSinceMs: number | undefined;
  /** How long our services were unconfirmed, not counting the time we were away ourselves. */
  readonly awayMs: number;
  readonly refusals: RefusalList;
}

const tickMs = 1000;
/** Looking at an owner's certificate again costs some signatures. */
const judgeMs = 5000;
/** After a start an owner has this long to answer before its services are removed, however long it was away. */
const firstChanceMs = 60_000;
/** Above `pendingPause` there can only be what was on its way already. */
const pendingFactor = 64;

export class ConsumerLink {
  readonly #options: LinkOptions;
  readonly #limits: LinkLimits;
  readonly #connection: Connection;
  readonly #stale: StaleClock;
  readonly #refusals: RefusalList;
  readonly #refusalLines: LogBudget;
  readonly #startedMs: number;
  /** Monotonic time since which there is no stream. */
  #lostMs: number;
  #call: ClientCall | undefined;
  #session: ConsumerSession | undefined;
  #timer: Timer | undefined;
  #ticker: Timer | undefined;
  #connectedMs: number | undefined;
  #judgedMs = 0;
  #isJudgeable = true;
  /** Time of the owner's last message on an accepted stream. */
  #heard: { readonly wallMs: number; readonly monotonicMs: number } | undefined;
  #aliveMs: number | undefined;
  /** The same by the clock that times messages. */
  #aliveMonotonicMs = 0;
  #fullSyncMs: number | undefined;
  #behindSinceMs: number | undefined;
  /** Not kept on disk: after a start the first snapshot counts if its count and digest fit, however old it is. */
  #lastEnd: SnapshotEnd | undefined;
  #isPaused = false;
  #isEnded = false;
  /** The owner as a consumer of ours, on the same stream. */
  #served: CallHandlers | undefined;
  #headers: Readonly<Record<string, string | string[] | undefined>> = {};

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#limits = { ...linkLimits, ...options.limits };
    const { held, versions } = options.config;
    const { clock } = options.world;
    const newMs = (options.madeMs ?? 0) + this.#limits.newPeerMs - clock.wallMs();
    this.#connection = new Connection({
      ...{ random: options.world.random, versions, held },
      newUntilMs: clock.monotonicMs() + Math.min(newMs, this.#limits.newPeerMs),
      keepAliveMs: Math.max(this.#limits.keepAliveMs, options.keepAliveMs ?? 0),
    });
    this.#refusals = new RefusalList(options.store);
    this.#refusalLines = new LogBudget(options.world.clock);
    this.#startedMs = options.world.clock.monotonicMs();
    this.#lostMs = this.#startedMs;
    this.#stale = new StaleClock({
      world: options.world,
      store: options.store,
      retentionMs: options.config.retentionMs,
      staleAfterMs: this.#limits.staleAfterMs,
      withdraw: () => this.#withdraw(),
    });
    const { lastContactMs: sinceMs = options.world.clock.wallMs(), awayMs = 0 } = options;
    if (options.store.size > 0) this.#stale.lost({ sinceMs, awayMs });
  }

  get state(): LinkState {
    return this.#connection.state;
  }

  report(): LinkReport {
    const session = this.#session;
    return {
      state: this.state,
      version: this.#connection.version,
      keepAliveMs: this.#connection.keepAliveMs,
      // Before the owner's first message the mode is unknown.
      mode: this.#connection.openedMs === undefined ? undefined : session?.mode,
      suspects: session?.suspects ?? 0,
      services: this.#options.store.size - this.#options.store.quarantined,
      aliveMs: this.#aliveMs,
      fullSyncMs: this.#fullSyncMs,
      unacknowledged: session?.unacknowledged ?? 0,
      behindSinceMs: this.#behindSinceMs,
      staleSinceMs: this.#stale.sinceMs,
      awayMs: this.absence?.awayMs ?? this.#unheardMs(),
      refusals: this.#refusals,
    };
  }

  /** Since when the owner is away; undefined while it is there. */
  get absence(): Absence | undefined {
    return this.#stale.absence;
  }

  /** Dials; the store must have been loaded. */
  start(): void {
    this.#connect({ kind: 'dial', certificate: this.#certificate() });
  }

  #certificate(): string | undefined {
    return this.#options.credentials()?.certificate;
  }

  #connect(input: ConnectionInput): void {
    const before = this.state.kind;
    for (const output of this.#connection.step(input)) this.#follow(output);
    if (this.state.kind !== before) this.#options.onChanged?.();
  }

  #follow(output: ConnectionOutput): void {
    const { world, log } = this.#options;
    if (output.kind === 'dial') return this.#dial(output.version, output.keepAliveMs);
    const { code, reason } = output;
    if (output.kind === 'stopped')
      return log.error('stopped taking from this peer; portolan peer retry tries again', { code, reason });
    const { delayMs } = output;
    log.info('the stream ended, trying again', { code, reason, delayMs: Math.round(delayMs) });
    this.#timer = world.timers.after(delayMs, () => this.#connect({ kind: 'dial', certificate: this.#certificate() }));
  }

  /** Somebody asked for it: tries at once, whether it had stopped, waits, or has a stream that may be of no use. */
  retry(): void {
    if (this.#isEnded || this.#options.config.held !== undefined) return;
    const call = this.#call;
    const hadSession = this.#session !== undefined;
    this.#timer?.cancel();
    this.#closeSession();
    if (hadSession) call?.cancel();
    this.#connect({ kind: 'retry', certificate: this.#certificate() });
  }

  /** Roots or certificates are other ones: a stream that they still allow goes on, one that had stopped is tried again. */
  trustChanged(): void {
    if (this.#connection.openedMs === undefined) this.retry();
    else this.#judge();
  }

  /** The note about this service may have changed. */
  noted(id: string): void {
    this.#step({ kind: 'noted', id });
  }

  /** Ends the stream and everything that was planned. Stored services stay. */
  stop(): void {
    this.#isEnded = true;
    this.#timer?.cancel();
    this.#stale.stop();
    this.#closeSession();
    this.#call?.cancel();
  }

  #draft(): Draft {
    return draftOf(this.#connection.version);
  }

  #dial(version: PeerVersion, keepAliveMs: number): void {
    const { config, credentials, dial } = this.#options;
    const draft = draftOf(version);
    const own = credentials();
    if (own === undefined) return;
    const session = this.#newSession(draft);
    this.#session = session;
    this.#call = dial(
      {
        address: config.address,
        serverName: config.serverName,
        path: draft.path,
        headers: { [snapshotHeader]: '1' },
        ...own,
        roots: config.roots,
        isExpected: config.isExpected,
        messageBytesMax: this.#limits.messageBytesMax,
        connectMsMax: this.#limits.connectMsMax,
        keepAliveMs,
        answerMsMax: this.#limits.answerMsMax,
      },
      this.#handlers(session, draft),
    );
    this.#send({ kind: 'subscribe', resourceUrl: draft.resourceUrl });
  }

  #handlers(session: ConsumerSession, draft: Draft): ClientHandlers {
    // Events of an earlier stream are ignored.
    const isCurrent = () => this.#session === session;
    return {
      onOpened: (headers) => {
        if (!isCurrent()) return;
        this.#headers = headers;
        this.#opened(headers[snapshotHeader] === '1');
      },
      onDrain: () => isCurrent() && this.#served?.onDrain(),
      onMessage: (bytes) => isCurrent() && this.#received(draft, bytes),
      onOversized: ({ length, beginning }) => isCurrent() && this.#oversized(draft, beginning, length),
      onAlive: () => {
        if (!isCurrent()) return;
        this.#alive();
        this.#served?.onAlive?.();
      },
      onClosed: (code, reason, cause) => isCurrent() && this.#closed(code, reason, cause),
    };
  }

  #newSession(draft: Draft): ConsumerSession {
    const { config, store, noteOf } = this.#options;
    return new ConsumerSession({
      resourceUrl: draft.resourceUrl,
      bounds: config.bounds,
      accepts: config.accepts,
      servicesMax: config.servicesMax,
      bytesMax: config.bytesMax,
      noteOf,
      held: store.held,
      ...(this.#lastEnd === undefined ? {} : { lastEnd: this.#lastEnd }),
      pendingMax: this.#limits.pendingPause * pendingFactor,
      silenceMsMin: config.quietMs,
      suspectForMs: (id) => this.#stale.suspectForMs(id),
      graceMs: config.graceMs,
    });
  }

  #alive(): void {
    const { clock } = this.#options.world;
    this.#aliveMs = clock.wallMs();
    this.#aliveMonotonicMs = clock.monotonicMs();
    if (this.#connection.openedMs !== undefined)
      this.#heard = { wallMs: this.#aliveMs, monotonicMs: this.#aliveMonotonicMs };
    if (this.#connectedMs !== undefined) return;
    this.#connectedMs = this.#aliveMonotonicMs;
    this.#tick();
  }

  /** The owner took the stream up: its headers came, or it is one of those that send them with their first message. */
  #opened(hasSnapshotEnd: boolean): void {
    const nowMs = this.#options.world.clock.monotonicMs();
    if (hasSnapshotEnd && this.#session?.isSnapshotOver)
      return this.#call?.cancel(codes.unavailable, 'the owner said too late that it marks the end of its catalog');
    if (this.#connection.openedMs === undefined) {
      this.#refusals.clear();
      // TLS accepted the owner under these roots just now, so our own check must not differ.
      this.#isJudgeable = this.#whatIsWrongWithOwner() === undefined;
    }
    this.#connection.step({ kind: 'opened', nowMs });
    this.#alive();
    this.#stale.heard();
    this.#step({ kind: 'opened', nowMs, hasSnapshotEnd });
  }

  #tick(): void {
    const session = this.#session;
    this.#ticker = this.#options.world.timers.after(tickMs, () => {
      const nowMs = this.#options.world.clock.monotonicMs();
      const isOpen = () => this.#connection.openedMs !== undefined;
      if (isOpen()) this.#step({ kind: 'tick', nowMs, aliveMs: this.#aliveMonotonicMs });
      else if (nowMs - (this.#connectedMs ?? nowMs) >= this.#options.config.quietMs) this.#opened(false);
      if (isOpen() && nowMs - this.#judgedMs >= judgeMs) this.#judge();
      if (this.#session === session) this.#tick();
    });
  }

  // TLS judged the owner once, when it was dialed; its certificate expires, and its roots may be taken away. Then it is
  // dialed again at once: it may have a certificate by now that is good, and if not, that is found out there.
  #judge(): void {
    const { world, log } = this.#options;
    this.#judgedMs = world.clock.monotonicMs();
    const wrong = this.#isJudgeable ? this.#whatIsWrongWithOwner() : undefined;
    if (wrong === undefined) return;
    log.warn('the owner is trusted no longer as it came, dialing it again', { reason: wrong });
    this.retry();
  }

  #whatIsWrongWithOwner(): string | undefined {
    const { config, world } = this.#options;
    const presented = this.#call?.presented?.() ?? [];
    if (presented.length === 0) return undefined;
    const roots = config.roots.map((pem) => new X509Certificate(pem));
    return whatIsWrongWithChain({ presented, roots, nowMs: world.clock.wallMs(), purpose: 'server' });
  }

  #received(draft: Draft, bytes: Buffer): void {
    try {
      if (draft.isBidirectional) this.#serveBack(draft, bytes);
      const message = draft.decodeOwnerMessage(bytes);
      if (message === undefined) return;
      this.#step({ kind: 'message', nowMs: this.#options.world.clock.monotonicMs(), message });
    } catch (error) {
      this.#call?.cancel(codes.invalidArgument, `invalid message from the owner: ${errorText(error)}`);
    }
  }

  /** The owner may subscribe to us on the same stream. */
  #serveBack(draft: Draft, bytes: Buffer): void {
    const { peer, serve } = this.#options;
    if (serve === undefined || this.#call === undefined || draft.decodeConsumerMessage(bytes) === undefined) return;
    this.#served ??= serveBack({ peer, path: draft.path, call: this.#call, headers: this.#headers, serve });
    this.#served?.onMessage(bytes);
  }

  #oversized(draft: Draft, beginning: Buffer, length: number): void {
    const reason = `the message: Too long: ${length} bytes are more than ${this.#limits.messageBytesMax}`;
    const message = { kind: 'unreadable', ...draft.namesIn(beginning), reason } as const;
    this.#step({ kind: 'message', nowMs: this.#options.world.clock.monotonicMs(), message });
  }

  #step(input: ConsumerInput): void {
    const session = this.#session;
    if (session === undefined) return;
    for (const output of session.step(input)) this.#act(session, output);
    if (this.#session !== session) return;
    this.#connect({ kind: 'session', state: session.state.kind });
    this.#measure(session);
  }

  #stored(ticket: number): void {
    this.#step({ kind: 'stored', nowMs: this.#options.world.clock.monotonicMs(), ticket });
  }

  #act(session: ConsumerSession, output: ConsumerOutput): void {
    const { store, world } = this.#options;
    const isCurrent = () => this.#session === session;
    switch (output.kind) {
      case 'send':
        return this.#send(output.message);
      case 'store':
        this.#refusals.mended(output.service.id);
        this.#stale.confirmed(output.service.id);
        return store.put(output.service, output.hash, (result) => {
          if (!isCurrent()) return;
          if (result.kind === 'stored') this.#stored(output.ticket);
          else
            this.#step({
              kind: 'storeRefused',
              nowMs: world.clock.monotonicMs(),
              ticket: output.ticket,
              reason: result.reason,
            });
        });
      case 'remove':
        for (const id of output.ids) this.#refusals.mended(id);
        return store.remove(output.ids, () => isCurrent() && this.#stored(output.ticket));
      case 'confirmed':
        this.#refusals.mended(output.id);
        return this.#stale.confirmed(output.id);
      case 'named':
        return this.#stale.confirmed(output.id);
      case 'refused':
        return this.#refused(output);
      case 'suspect':
        return this.#stale.suspect(output.ids);
      case 'nothingConfirmed':
        this.#options.log.warn('the owner sent none of its earlier services; keeping them for the retention time');
        return this.#stale.unnamed();
      case 'heldBack':
        this.#options.log.warn('invalid messages from this peer; keeping unconfirmed services for the retention time', {
          unreadable: output.unreadable,
        });
        return this.#stale.unnamed();
      case 'reconciled':
        return this.#reconciled(output.mode, output.removed, output.end);
      case 'probe':
        return this.#call?.probe?.();
      case 'close':
        return this.#call?.cancel(output.code, output.reason);
    }
  }

  #refused(refusal: Refusal): void {
    const { world, log } = this.#options;
    const fields = this.#refusalLines.take();
    if (fields !== undefined)
      log.warn('a service of this peer was refused', { id: refusal.id, reason: refusal.reason, ...fields });
    this.#refusals.add(refusal, world.clock.wallMs());
    this.#options.onRefused?.(refusal);
    this.#options.onChanged?.();
  }

  #reconciled(mode: ReconcileMode, removed: number, end: SnapshotEnd | undefined): void {
    this.#options.log.info('the catalog of this peer is complete', {
      mode,
      removed,
      services: this.#options.store.size,
    });
    this.#fullSyncMs = this.#options.world.clock.wallMs();
    this.#lastEnd = end ?? this.#lastEnd;
    this.#stale.reset();
    this.#connection.step({ kind: 'reconciled' });
    this.#options.onChanged?.();
  }

  #send(message: ConsumerMessage): void {
    const call = this.#call;
    if (call === undefined) return;
    call.send(this.#draft().encodeConsumerMessage(message, this.#options.config.context));
    if (call.unsentBytes > this.#limits.unsentBytesMax)
      call.cancel(codes.invalidArgument, 'the owner floods us: it sends without reading our answers');
  }

  // Reading stops only while the disk catches up; it goes on without the owner having to do anything.
  #measure(session: ConsumerSession): void {
    const pending = session.unacknowledged;
    if (pending > 0) this.#behindSinceMs ??= this.#options.world.clock.wallMs();
    else this.#behindSinceMs = undefined;
    const share = Math.max(
      pending / this.#limits.pendingPause,
      session.unacknowledgedBytes / this.#limits.pendingBytesPause,
    );
    const isPaused = share >= (this.#isPaused ? 0.5 : 1);
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#call?.pause();
    else this.#call?.resume();
  }

  #closeSession(): void {
    this.#session = undefined;
    this.#served?.onClosed();
    this.#served = undefined;
    this.#headers = {};
    this.#ticker?.cancel();
    this.#isPaused = false;
    this.#behindSinceMs = undefined;
    this.#connectedMs = undefined;
    if (this.#connection.openedMs !== undefined) this.#lostMs = this.#options.world.clock.monotonicMs();
    if (!this.#isEnded) this.#lost();
  }

  #unheardMs(): number {
    return this.#connection.openedMs === undefined ? this.#options.world.clock.monotonicMs() - this.#lostMs : 0;
  }

  #lost(): void {
    const { world, store, lastContactMs } = this.#options;
    const heard = this.#heard;
    this.#heard = undefined;
    if (store.size === 0) return;
    const nowMs = world.clock.monotonicMs();
    if (heard !== undefined) this.#stale.lost({ sinceMs: heard.wallMs, awayMs: nowMs - heard.monotonicMs });
    else if (this.absence === undefined)
      this.#stale.lost({ sinceMs: this.#aliveMs ?? lastContactMs ?? world.clock.wallMs(), awayMs: 0 });
  }

  #closed(code: Code, reason: string, cause?: CloseCause): void {
    const nowMs = this.#options.world.clock.monotonicMs();
    this.#closeSession();
    if (this.#isEnded) return;
    const hadTooManyPings = cause === 'tooManyPings';
    this.#connect({ kind: 'closed', nowMs, code, reason, certificate: this.#certificate(), hadTooManyPings });
  }

  /** The retention time is over: all unconfirmed services are removed. */
  #withdraw(): boolean {
    const { store, log } = this.#options;
    if (this.#session === undefined ? !this.#mayGiveUp() : !this.#session.isSnapshotOver) return false;
    log.warn('the retention time is over, removing unconfirmed services of the owner', { services: store.size });
    if (this.#session === undefined) store.remove([...store.values()].map(({ id }) => id));
    else this.#step({ kind: 'withdraw' });
    this.#options.onChanged?.();
    return true;
  }

  // After a start the owner is asked first: it may have been there all the time that we were not.
  #mayGiveUp(): boolean {
    const { config, world } = this.#options;
    if (config.held !== undefined) return true;
    const runningMs = world.clock.monotonicMs() - this.#startedMs;
    return this.#connection.hasFailed && runningMs >= Math.min(firstChanceMs, config.retentionMs);
  }
}

function draftOf(version: PeerVersion): Draft {
  return drafts.find(({ name }) => name === version) as Draft;
}
