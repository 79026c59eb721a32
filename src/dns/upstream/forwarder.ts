// Answers a query by asking other servers, through a cache. Equal questions that wait at the same time are asked
// once; a truncated reply is fetched again over TCP; when no server answers, an expired answer is better than none
// and is marked as such (RFC 8767, RFC 8914). No client can make a server look dead, or keep others from waiting
// (waiting-room.ts).

import { rcode } from '../../base/dns/codes.ts';
import { hashBytes } from '../../base/dns/name.ts';
import { signMessage, type TsigKey, verifyMessage } from '../../base/dns/tsig.ts';
import type { World } from '../../base/world.ts';
import type { ForwardTimes, ServerAddress } from '../config/config.ts';
import type { Answer } from '../message/answer.ts';
import type { Later, Step } from '../message/handler.ts';
import { extendedError, type Query } from '../message/wire.ts';
import type { Tally } from '../metrics/observe.ts';
import type { ServerStats } from '../metrics/server-stats.ts';
import { Asking } from './asking.ts';
import type { ReplyCache } from './cache.ts';
import { type CachedReply, isAnswer, unkept } from './cached-reply.ts';
import { Deadlines } from './deadlines.ts';
import { type Exchange, sendBy, type TakeReply } from './exchange.ts';
import { type LoopProbe, loopProbeFor } from './loop-probe.ts';
import { buildProbe, buildQuestion, type SourceTag, withoutOpt } from './question.ts';
import { Race, type RaceRules } from './race.ts';
import type { IsOfOthers } from './related.ts';
import { failureOf, type ReadOptions, type Reply, readReply } from './reply.ts';
import type { ServerSet } from './servers.ts';
import type { WaitingRoom } from './waiting-room.ts';

export interface ForwarderOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly exchange: Exchange;
  readonly cache: ReplyCache;
  readonly room: WaitingRoom;
  readonly servers: ServerSet;
  /** Random upper and lower case in questions, which a forger would have to guess too. */
  readonly hasRandomCase?: boolean;
  readonly times?: Partial<ForwardTimes>;
  /** Signs questions; then only signed replies count. */
  readonly key?: TsigKey;
  /** Whether the servers resolve any name for us, or answer for zones of their own. */
  readonly isRecursive?: boolean;
  /** For noticing that the servers pass back to us what we pass on: this server's mark, and the zone, empty for all names. */
  readonly loop?: { readonly mark: string; readonly zone: string };
  /** The exchange asks over TLS, whatever the addresses say. */
  readonly isOverTls?: boolean;
  /** Records with such names are left out of replies. */
  readonly isOfOthers?: IsOfOthers;
  readonly tally?: Tally;
  readonly serverStats?: ServerStats;
  /** Told of errors of ours in reading a reply. */
  readonly onFault: (error: unknown) => void;
}

const defaultForwardTimes: ForwardTimes = {
  hedgeMs: 300,
  resendMs: 2000,
  totalMs: 5000,
  probeMs: 1000,
  silentMs: 1500,
  staleAfterMs: 1800,
};

/** A federation's answers depend on who is healthy: failing over must not wait for a TTL that was meant for clients. */
const federationFreshMs = 500;
/** RFC 9520 section 3.2: a second at least. When the upstream servers are back, all names benefit at once. */
const unreachableMs = 1000;
const tcpMs = 2000;
/** So long a loop is taken for one without another look. */
const loopMs = 5000;
const tooMany = failureOf(rcode.SERVFAIL, extendedError.other, 'too many questions are waiting for other servers');
const tooManyOfClient = failureOf(
  rcode.SERVFAIL,
  extendedError.other,
  'too many questions of this client are waiting for other servers',
);
const loopFailure = failureOf(
  rcode.REFUSED,
  extendedError.other,
  'loop: the servers that this query is passed on to pass it back here',
);
/** While all servers are silent: enough to notice that one is back. */
const askingSilentMax = 200;
/** Questions under way beyond which none is asked before its time: those that somebody waits for come first. */
const refreshingMax = 1000;
const refreshedShare = { min: 0.05, max: 0.25 };

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #times: ForwardTimes;
  readonly #asking = new Map<string, Asking>();
  readonly #isPadded: boolean;
  readonly #reading: ReadOptions;
  readonly #raceRules: RaceRules<ServerAddress, Reply>;

  readonly #loopProbe: LoopProbe | undefined;
  /** When each server was last seen to pass back what it got from us. */
  readonly #loopSeenMs = new Map<ServerAddress, number>();

  constructor(options: ForwarderOptions) {
    const { world, servers } = options;
    this.#options = options;
    // Only a resolver for all names has answers whose order means nothing.
    this.#reading = { isOfOthers: options.isOfOthers, keepsOrder: !options.isRecursive };
    this.#isPadded = options.isOverTls ?? servers.addresses.some(({ tls }) => tls !== undefined);
    this.#loopProbe = options.loop && loopProbeFor(options.loop);
    this.#times = { ...defaultForwardTimes, ...options.times };
    this.#raceRules = {
      world,
      deadlines: new Deadlines(world),
      isGood: isAnswer,
      onSlow: (server) => {
        if (servers.takeProbe(server, world.clock.monotonicMs())) void this.#probe(server);
      },
      giveUp: { afterMs: this.#times.silentMs, isDue: () => servers.areAllSilent },
    };
  }

  handle(query: Query, answer: Answer, source?: SourceTag): Step | Later {
    const { cache, room, world, tally } = this.#options;
    if (this.#loopProbe?.isIn(query)) {
      this.#loopProbe.fill(answer);
      return 'done';
    }
    const key = cache.keyOf(query, source);
    const nowMs = world.clock.monotonicMs();
    const cached = cache.get(key, nowMs);
    if (cached && nowMs < cached.retryMs) {
      const isFresh = nowMs < cached.freshUntilMs;
      cache.hits += 1;
      tally?.add(isFresh ? 'cacheHits' : 'cacheStale');
      room.fill(query, answer, cached, isFresh ? Math.floor((nowMs - cached.storedMs) / 1000) : 'stale');
      if (isFresh && isNearlyOver(cached, query, nowMs)) this.#refresh(query, cached, key, source);
      return 'done';
    }
    cache.misses += 1;
    tally?.add('cacheMisses');
    if (source) answer.handler = 'stub';
    const old = cached && isAnswer(cached) ? cached.copy() : undefined;
    const refusal = this.#refusalOf(query);
    if (refusal) {
      room.fill(query, answer, old ?? unkept(refusal, nowMs), old ? 'stale' : 0);
      return 'done';
    }
    return this.#wait(query, answer, key, { source, old });
  }

  /** Asks again before the answer has run out, so that nobody waits for a name that is asked for often. */
  #refresh(query: Query, cached: CachedReply, key: string, source: SourceTag | undefined): void {
    const { cache, servers, tally } = this.#options;
    const askingKey = askingKeyOf(key, source);
    if (this.#asking.size >= refreshingMax || this.#asking.has(askingKey) || servers.areAllSilent) return;
    cache.markRefreshed(key, cached);
    tally?.add('cacheRefreshed');
    this.#start(query, new Asking({ key, askingKey, source }));
  }

  /** Why it cannot wait with the others. */
  #refusalOf({ clientAddress }: Query): Reply | undefined {
    const { servers, room } = this.#options;
    if (this.#asking.size >= askingSilentMax && servers.areAllSilent) return this.#nobody();
    const place = room.placeFor(clientAddress);
    return place === 'free' ? undefined : place === 'full' ? tooMany : tooManyOfClient;
  }

  /** One question for all who wait for the same answer; an old answer rather than a late one. */
  #wait(query: Query, answer: Answer, key: string, { source, old }: WaitOptions): Step | Later {
    const { room, servers, tally } = this.#options;
    const askingKey = askingKeyOf(key, source);
    const known = this.#asking.get(askingKey);
    const stale = known ? known.stale : old && servers.areAllSilent ? old : undefined;
    if (stale) {
      tally?.add('cacheStale');
      room.fill(query, answer, stale, 'stale');
      if (!known) this.#start(query, new Asking({ key, askingKey, source, stale }));
      return 'done';
    }
    const waiter = room.enter(query, answer);
    const asking = known ?? new Asking({ key, askingKey, source });
    asking.waiters.push(waiter);
    if (old) asking.becomeStale(this.#options.world.timers, this.#times.staleAfterMs, () => this.#giveOld(asking, old));
    if (!known) this.#start(query, asking);
    return waiter;
  }

  /** The question goes on: its answer is for those who ask later. */
  #giveOld(asking: Asking, old: CachedReply): void {
    asking.stale = old;
    this.#giveAll(asking, old, 'stale');
  }

  #giveAll(asking: Asking, cached: CachedReply, age: number | 'stale'): void {
    const { room, tally } = this.#options;
    for (const waiter of asking.waiters.splice(0)) {
      if (age === 'stale') tally?.add('cacheStale');
      room.answer(waiter, cached, age);
    }
  }

  #start(query: Query, asking: Asking): void {
    const { servers, world, hasRandomCase } = this.#options;
    const nowMs = world.clock.monotonicMs();
    this.#asking.set(asking.askingKey, asking);
    const { source } = asking;
    const message = buildQuestion(query, {
      source,
      random: hasRandomCase ? world.random : undefined,
      isPadded: this.#isPadded,
    });
    for (const server of servers.takeDueProbes(nowMs)) void this.#probe(server);
    if (this.#isLoop()) return this.#end(asking, unkept(loopFailure, nowMs), 0);
    let isSent = false;
    asking.race = new Race<ServerAddress, Reply>({
      rules: this.#raceRules,
      servers: servers.inOrder(),
      times: servers.areAllSilent ? { ...this.#times, totalMs: this.#times.silentMs } : this.#times,
      ask: (server, timeoutMs, done) => {
        // The transport writes its id into what it sends: every further question is a copy.
        const own = isSent ? Buffer.from(message) : message;
        isSent = true;
        this.#try(server, own, timeoutMs, done);
      },
      onEnd: (good, bad) => this.#take(asking, good, bad),
    });
    asking.race.start();
  }

  #take(asking: Asking, good: Reply | undefined, bad: readonly Reply[]): void {
    const { cache, world } = this.#options;
    const { key, source } = asking;
    const nowMs = world.clock.monotonicMs();
    if (good) return this.#end(asking, cache.put(key, good, nowMs, source && federationFreshMs), 0);
    if (this.#isLoop()) return this.#end(asking, unkept(loopFailure, nowMs), 0);
    const reply = bad.find(({ isTruncated }) => isTruncated) ?? bad[0] ?? this.#nobody();
    const isBrief = source !== undefined || bad.length === 0;
    // A failure of a query over another transport does not concern the clients here.
    const isStrange = source !== undefined && source.way !== '';
    const cached = isStrange ? unkept(reply, nowMs) : cache.put(key, reply, nowMs, isBrief ? unreachableMs : undefined);
    // Answers are given to those who wait, and each may lead to another look into the cache.
    const old = cache.answer(key, nowMs)?.copy();
    this.#end(asking, old ?? cached, old ? 'stale' : 0);
  }

  #end(asking: Asking, cached: CachedReply, age: number | 'stale'): void {
    asking.end();
    this.#asking.delete(asking.askingKey);
    this.#giveAll(asking, cached, age);
  }

  #nobody(): Reply {
    const named = this.#options.servers.addresses.map(({ host, port }) => `${host}:${port}`).join(', ');
    return failureOf(rcode.SERVFAIL, extendedError.noReachableAuthority, `no answer from ${named}`);
  }

  /** Whether it is there at all. Any reply says so, also one to another question that comes meanwhile. */
  async #probe(server: ServerAddress): Promise<void> {
    const { servers, world, exchange, isRecursive = false } = this.#options;
    const sinceMs = world.clock.monotonicMs();
    const { probeMs: timeoutMs } = this.#times;
    void this.#probeLoop(server);
    try {
      await exchange.ask({ server, message: buildProbe({ isRecursive }), timeoutMs, isTcp: false });
      servers.answered(server, world.clock.monotonicMs());
    } catch {
      servers.didNotAnswer(server, sinceMs);
    }
    this.#options.serverStats?.setSilent(server, servers.isSilent(server));
  }

  async #probeLoop(server: ServerAddress): Promise<void> {
    const { world, exchange } = this.#options;
    const probe = this.#loopProbe;
    if (!probe) return;
    const question = { server, message: probe.question(), timeoutMs: this.#times.probeMs, isTcp: false };
    const reply = await exchange.ask(question).catch(() => undefined);
    if (!reply || !probe.hasComeBack(reply)) return;
    this.#loopSeenMs.set(server, world.clock.monotonicMs());
    if (this.#isLoop()) for (const { race } of [...this.#asking.values()]) race?.stop();
  }

  /** All servers pass back what they get from us. */
  #isLoop(): boolean {
    const { servers, world } = this.#options;
    if (this.#loopSeenMs.size === 0) return false;
    const sinceMs = world.clock.monotonicMs() - loopMs;
    const { addresses } = servers;
    return addresses.length > 0 && addresses.every((server) => (this.#loopSeenMs.get(server) ?? -Infinity) > sinceMs);
  }

  /** Undefined if the server talks nonsense or is silent. */
  #try(server: ServerAddress, message: Uint8Array, timeoutMs: number, done: TakeRead): void {
    this.#exchange(server, message, timeoutMs, false, (reply) => {
      if (reply === undefined) return done(undefined);
      // Where TCP is blocked, the client gets TC to try for itself.
      if (reply.isTruncated)
        return this.#exchange(server, message, Math.min(tcpMs, timeoutMs), true, (whole) => done(whole ?? reply));
      if (reply.rcode !== rcode.FORMERR && reply.rcode !== rcode.NOTIMP) return done(reply);
      // A server from before EDNS: without OPT it may understand (RFC 6891 section 7).
      this.#exchange(server, withoutOpt(message), timeoutMs, false, (other) => done(other ?? reply));
    });
  }

  #exchange(server: ServerAddress, plain: Uint8Array, timeoutMs: number, isTcp: boolean, done: TakeRead): void {
    const { key, world } = this.#options;
    if (!key) {
      this.#send(server, plain, timeoutMs, isTcp, (bytes) => done(bytes && this.#read(bytes)));
      return;
    }
    const timeSeconds = Math.floor(world.clock.wallMs() / 1000);
    const { message, mac } = signMessage(plain, key, { timeSeconds });
    const verified = (bytes: Uint8Array) => {
      const verdict = verifyMessage(bytes, { keys: [key], timeSeconds, requestMac: mac });
      return verdict.kind === 'good' ? verdict.message : undefined;
    };
    this.#send(server, message, timeoutMs, isTcp, (bytes) => done(bytes && this.#read(bytes, verified)));
  }

  /** An error of ours on a reply that nobody foresaw costs that reply, not the thread. */
  #read(bytes: Uint8Array, verified?: (bytes: Uint8Array) => Uint8Array | undefined): Reply | undefined {
    try {
      const message = verified ? verified(bytes) : bytes;
      return message && readReply(message, this.#reading);
    } catch (error) {
      this.#options.onFault(error);
      return undefined;
    }
  }

  #send(server: ServerAddress, message: Uint8Array, timeoutMs: number, isTcp: boolean, done: TakeReply): void {
    const { exchange, servers, world, serverStats } = this.#options;
    serverStats?.count(server, 'asked');
    sendBy(exchange, { server, message, timeoutMs, isTcp }, (reply) => {
      if (reply === undefined) serverStats?.count(server, 'unanswered');
      else {
        servers.answered(server, world.clock.monotonicMs());
        serverStats?.setSilent(server, false);
        if (isFailure(reply[3]! & 15)) serverStats?.count(server, 'failed');
      }
      done(reply);
    });
  }
}

type TakeRead = (reply: Reply | undefined) => void;

interface WaitOptions {
  readonly source: SourceTag | undefined;
  /** An answer that has run out. */
  readonly old: CachedReply | undefined;
}

/** Over another transport there may be another answer. */
function askingKeyOf(key: string, source: SourceTag | undefined): string {
  return source === undefined || source.way === '' ? key : `${key} ${source.way}`;
}

/**
 * In the last quarter to twentieth of its time, by its name: answers that came together are not all asked for together again.
 * Failures last to their end.
 */
function isNearlyOver(cached: CachedReply, { name, nameLength }: Query, nowMs: number): boolean {
  const shareLeft = (cached.freshUntilMs - nowMs) / (cached.freshUntilMs - cached.storedMs);
  if (shareLeft > refreshedShare.max || cached.isRefreshed || !isAnswer(cached)) return false;
  const spread = (hashBytes(name, 0, nameLength) & 255) / 255;
  return shareLeft <= refreshedShare.min + spread * (refreshedShare.max - refreshedShare.min);
}

function isFailure(code: number): boolean {
  return code !== rcode.NOERROR && code !== rcode.NXDOMAIN;
}
