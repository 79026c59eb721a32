// Answers a query by asking other servers, through a cache. Equal questions that wait at the same time are asked once;
// a truncated reply is fetched again over TCP; when nobody answers, an answer that has run out is better than none and is
// marked as such (RFC 8767, RFC 8914). No client can fill the places of those who wait, or make a server look dead.

import { signMessage, type TsigKey, verifyMessage } from '../../base/dns/tsig.ts';
import type { World } from '../../base/world.ts';
import { Answer } from '../answer.ts';
import type { ForwardTimes, ServerAddress } from '../config/config.ts';
import type { Later, Step } from '../handler.ts';
import type { Tally } from '../metrics/observe.ts';
import { extendedError, Query, rcode, udpPayloadMax } from '../wire.ts';
import { type CachedReply, isAnswer, type ReplyCache } from './cache.ts';
import type { Exchange, ExchangeOptions } from './exchange.ts';
import { type LoopProbe, loopProbeFor } from './loop-probe.ts';
import { buildProbe, buildQuestion, type SourceTag, withoutOpt } from './question.ts';
import { race } from './race.ts';
import { failureOf, type Reply, readReply } from './reply.ts';
import type { ServerStats } from './server-stats.ts';
import type { ServerSet } from './servers.ts';

export interface ForwarderOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly exchange: Exchange;
  readonly cache: ReplyCache;
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
  readonly tally?: Tally;
  readonly serverStats?: ServerStats;
  /** Told of every answer that came later than its query. */
  readonly onAnswered?: (query: Query, answer: Answer) => void;
}

export const defaultForwardTimes: ForwardTimes = {
  hedgeMs: 300,
  resendMs: 2000,
  totalMs: 5000,
  probeMs: 1000,
  silentMs: 1500,
  staleAfterMs: 1800,
};

/** A federation's answers depend on who is healthy: failing over must not wait for a TTL that was meant for clients. */
const federationFreshMs = 500;
/** RFC 9520 section 3.2: a second at least. What keeps everybody from being asked ends for all names at once. */
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
const waitingMax = 10_000;
const waitingPerClientMax = 1000;
/** While all servers are silent: enough to notice that one is back. */
const waitingSilentMax = 200;
/** RFC 8767 section 4 */
const staleTtlSeconds = 30;

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #times: ForwardTimes;
  readonly #waiting = new Map<string, Promise<Outcome>>();
  /** How many queries of each client wait. */
  readonly #byClient = new Map<string, number>();

  readonly #loopProbe: LoopProbe | undefined;
  /** When each server was last seen to pass back what it got from us. */
  readonly #loopSeenMs = new WeakMap<ServerAddress, number>();
  /** End what is being asked. */
  readonly #stops = new Set<() => void>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#loopProbe = options.loop && loopProbeFor(options.loop);
    this.#times = { ...defaultForwardTimes, ...options.times };
  }

  handle(query: Query, answer: Answer, source?: SourceTag): Step | Later {
    const { cache, world, tally } = this.#options;
    if (this.#loopProbe?.isIn(query)) {
      this.#loopProbe.fill(answer);
      return 'done';
    }
    const key = keyOf(query, source);
    const nowMs = world.clock.monotonicMs();
    const cached = cache.get(key, nowMs);
    if (cached && nowMs < cached.retryMs) {
      const isFresh = nowMs < cached.freshUntilMs;
      cache.hits += 1;
      tally?.add(isFresh ? 'cacheHits' : 'cacheStale');
      fill(query, answer, cached, isFresh ? Math.floor((nowMs - cached.storedMs) / 1000) : 'stale');
      return 'done';
    }
    cache.misses += 1;
    tally?.add('cacheMisses');
    const refusal = this.#refusalOf(query);
    if (refusal) {
      const old = cache.answer(key, nowMs);
      fill(query, answer, old ?? unkept(refusal, nowMs), old ? 'stale' : 0);
      return 'done';
    }
    return this.#later(copyOf(query), answer, key, source);
  }

  /** Why it cannot wait with the others. */
  #refusalOf({ clientAddress }: Query): Reply | undefined {
    const waiting = this.#waiting.size;
    if (waiting >= waitingSilentMax && this.#options.servers.areAllSilent) return this.#nobody();
    if (waiting >= waitingMax) return tooMany;
    return (this.#byClient.get(clientAddress) ?? 0) < waitingPerClientMax ? undefined : tooManyOfClient;
  }

  async #later(query: Query, original: Answer, key: string, source: SourceTag | undefined): Promise<Uint8Array> {
    const answer = new Answer(new Uint8Array(query.transport === 'udp' ? 2 * udpPayloadMax : 0x10000));
    answer.nsid = original.nsid;
    const { zone, signature, extendedError: error, extendedText: text } = original;
    const handler = source ? 'stub' : original.handler;
    this.#countClient(query.clientAddress, 1);
    const outcome = await this.resolve(query, key, source).finally(() => this.#countClient(query.clientAddress, -1));
    answer.begin(query);
    answer.handler = handler;
    answer.zone = zone;
    answer.extendedError = error;
    answer.extendedText = text;
    fill(query, answer, outcome.cached, outcome.kind === 'stale' ? 'stale' : 0);
    if (outcome.kind === 'stale') this.#options.tally?.add('cacheStale');
    const length = answer.finish();
    if (!query.isInner) this.#options.onAnswered?.(query, answer);
    const message = answer.bytes.subarray(0, length);
    return signature ? signMessage(message, signature.key, signature).message : message;
  }

  #countClient(address: string, step: 1 | -1): void {
    const count = (this.#byClient.get(address) ?? 0) + step;
    if (count === 0) this.#byClient.delete(address);
    else this.#byClient.set(address, count);
  }

  /** One question for all who wait for the same answer. */
  resolve(query: Query, key: string, source?: SourceTag): Promise<Outcome> {
    const waitingKey = source === undefined || source.way === '' ? key : `${key} ${source.way}`;
    const known = this.#waiting.get(waitingKey);
    if (known) return known;
    const asking = this.#ask(query, key, source).finally(() => this.#waiting.delete(waitingKey));
    const outcome = this.#orStale(asking, key);
    this.#waiting.set(waitingKey, outcome);
    return outcome;
  }

  /** An old answer rather than a late one; the question goes on. */
  #orStale(asking: Promise<Outcome>, key: string): Promise<Outcome> {
    const { cache, world, servers } = this.#options;
    const old = cache.answer(key, world.clock.monotonicMs());
    if (!old) return asking;
    const stale: Outcome = { kind: 'stale', cached: old };
    if (servers.areAllSilent) {
      asking.catch(() => {});
      return Promise.resolve(stale);
    }
    return new Promise((resolve, reject) => {
      const timer = world.timers.after(this.#times.staleAfterMs, () => resolve(stale));
      asking.finally(() => timer.cancel()).then(resolve, reject);
    });
  }

  async #ask(query: Query, key: string, source: SourceTag | undefined): Promise<Outcome> {
    const { servers, cache, world, hasRandomCase } = this.#options;
    const message = buildQuestion(query, { source, ...(hasRandomCase ? { random: world.random } : {}) });
    for (const server of servers.takeDueProbes(world.clock.monotonicMs())) void this.#probe(server);
    if (this.#isLoop()) return { kind: 'fresh', cached: unkept(loopFailure, world.clock.monotonicMs()) };
    let stop = () => {};
    const times = servers.areAllSilent ? { ...this.#times, totalMs: this.#times.silentMs } : this.#times;
    const { good, bad } = await race<ServerAddress, Reply>({
      timers: world.timers,
      servers: servers.inOrder(),
      times,
      ask: (server, timeoutMs) => this.#try(server, message, timeoutMs),
      isGood: isAnswer,
      onSlow: (server) => {
        if (servers.takeProbe(server, world.clock.monotonicMs())) void this.#probe(server);
      },
      onStart: (end) => this.#stops.add((stop = end)),
      giveUp: { afterMs: this.#times.silentMs, isDue: () => servers.areAllSilent },
    }).finally(() => this.#stops.delete(stop));
    const nowMs = world.clock.monotonicMs();
    if (!good && this.#isLoop()) return { kind: 'fresh', cached: unkept(loopFailure, nowMs) };
    if (good) return { kind: 'fresh', cached: cache.put(key, good, nowMs, source && federationFreshMs) };
    const reply = bad.find(({ isTruncated }) => isTruncated) ?? bad[0] ?? this.#nobody();
    const isBrief = source !== undefined || bad.length === 0;
    // What a query of a strange way runs into is no news to those who ask here.
    const isStrange = source !== undefined && source.way !== '';
    const cached = isStrange ? unkept(reply, nowMs) : cache.put(key, reply, nowMs, isBrief ? unreachableMs : undefined);
    const old = cache.answer(key, nowMs);
    return old ? { kind: 'stale', cached: old } : { kind: 'fresh', cached };
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
    if (this.#isLoop()) for (const stop of this.#stops) stop();
  }

  /** All servers pass back what they get from us. */
  #isLoop(): boolean {
    const { servers, world } = this.#options;
    const sinceMs = world.clock.monotonicMs() - loopMs;
    const { addresses } = servers;
    return addresses.length > 0 && addresses.every((server) => (this.#loopSeenMs.get(server) ?? -Infinity) > sinceMs);
  }

  /** Undefined if the server talks nonsense; rejects if it is silent. */
  async #try(server: ServerAddress, message: Uint8Array, timeoutMs: number): Promise<Reply | undefined> {
    const reply = await this.#exchange(server, message, timeoutMs);
    if (reply?.isTruncated) {
      // Where TCP is blocked, the client is told to try for itself.
      return (await this.#exchange(server, message, Math.min(tcpMs, timeoutMs), true).catch(() => undefined)) ?? reply;
    }
    if (reply?.rcode !== rcode.FORMERR && reply?.rcode !== rcode.NOTIMP) return reply;
    // A server from before EDNS: without OPT it may understand (RFC 6891 section 7).
    return (await this.#exchange(server, withoutOpt(message), timeoutMs).catch(() => undefined)) ?? reply;
  }

  async #exchange(
    server: ServerAddress,
    plain: Uint8Array,
    timeoutMs: number,
    isTcp = false,
  ): Promise<Reply | undefined> {
    const { key, world } = this.#options;
    const ask = (message: Uint8Array) => this.#send({ server, message, timeoutMs, isTcp });
    if (!key) return readReply(await ask(plain));
    const timeSeconds = Math.floor(world.clock.wallMs() / 1000);
    const { message, mac } = signMessage(plain, key, { timeSeconds });
    const verdict = verifyMessage(await ask(message), { keys: [key], timeSeconds, requestMac: mac });
    return verdict.kind === 'good' ? readReply(verdict.message) : undefined;
  }

  async #send(question: ExchangeOptions): Promise<Uint8Array> {
    const { exchange, servers, world, serverStats } = this.#options;
    const { server } = question;
    serverStats?.count(server, 'asked');
    try {
      const reply = await exchange.ask(question);
      servers.answered(server, world.clock.monotonicMs());
      serverStats?.setSilent(server, false);
      if (isFailure(reply[3]! & 15)) serverStats?.count(server, 'failed');
      return reply;
    } catch (error) {
      serverStats?.count(server, 'unanswered');
      throw error;
    }
  }
}

function isFailure(code: number): boolean {
  return code !== rcode.NOERROR && code !== rcode.NXDOMAIN;
}

export interface Outcome {
  readonly kind: 'fresh' | 'stale';
  readonly cached: CachedReply;
}

/** For this time only. */
function unkept(reply: Reply, nowMs: number): CachedReply {
  return { reply, storedMs: nowMs, freshUntilMs: nowMs, retryMs: nowMs };
}

/** Everything an answer can depend on. */
function keyOf(query: Query, source?: SourceTag): string {
  const name = Buffer.from(query.name.buffer, 0, query.nameLength).toString('latin1');
  const wants = (query.isDnssecOk ? 1 : 0) | (query.isCheckingDisabled ? 2 : 0);
  return `${query.type} ${query.class} ${wants} ${source?.key ?? ''} ${name}`;
}

function fill(query: Query, answer: Answer, cached: CachedReply, age: number | 'stale'): void {
  const { reply } = cached;
  answer.isRecursionAvailable = true;
  answer.rcode = reply.rcode & 15;
  // RFC 6840 section 5.8: for those who ask for it.
  answer.isAuthentic = reply.isAuthentic && age !== 'stale' && (query.isDnssecOk || query.wantsAuthentic);
  // What is wrong with the answer is more than what was wrong with the query.
  if (age === 'stale' || reply.extendedError !== -1) {
    answer.extendedError = age === 'stale' ? extendedError.staleAnswer : reply.extendedError;
    answer.extendedText = age === 'stale' ? '' : reply.extendedText;
  }
  answer.body(reply, age === 'stale' ? { ttlSeconds: staleTtlSeconds } : { ageSeconds: age });
  if (reply.isTruncated) answer.isTruncated = true;
}

/** For those who answer later: the query itself is used again at once. */
export function copyOf(query: Query): Query {
  const copy = new Query();
  copy.sourceOption = query.sourceOption;
  copy.receivedMs = query.receivedMs;
  copy.isInner = query.isInner;
  copy.transport = query.transport;
  copy.clientAddress = query.clientAddress;
  copy.clientPort = query.clientPort;
  copy.clientIdentity = query.clientIdentity;
  copy.read(Uint8Array.prototype.slice.call(query.packet, 0, query.length));
  return copy;
}
