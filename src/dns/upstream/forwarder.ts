// Answers a query by asking other servers, through a cache. Equal questions that wait at the same time are asked once;
// a truncated reply is fetched again over TCP; when nobody answers, an answer that has run out is better than none and is
// marked as such (RFC 8767, RFC 8914).

import { signMessage, type TsigKey, verifyMessage } from '../../base/dns/tsig.ts';
import type { World } from '../../base/world.ts';
import { recordType } from '../../catalog/answers.ts';
import { Answer } from '../answer.ts';
import type { Later, Step } from '../handler.ts';
import { classIn, extendedError, headerBytes, Query, rcode, udpPayloadMax } from '../wire.ts';
import type { CachedReply, ReplyCache } from './cache.ts';
import type { Exchange } from './exchange.ts';
import { type Reply, readReply } from './reply.ts';
import type { ServerAddress, ServerSet } from './servers.ts';

export interface ForwarderOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly exchange: Exchange;
  readonly cache: ReplyCache;
  readonly servers: ServerSet;
  /** Random upper and lower case in questions, which a forger would have to guess too. */
  readonly hasRandomCase?: boolean;
  readonly attemptMs?: number;
  /** Signs questions; then only signed replies count. */
  readonly key?: TsigKey;
  /** Told of every answer that came later than its query. */
  readonly onAnswered?: (query: Query, answer: Answer) => void;
}

/** What is said of the one who asks: goes out as an option, and keeps answers for different askers apart. */
export interface SourceTag {
  readonly optionCode: number;
  readonly payload: Uint8Array;
  /** Equal for two askers exactly if they may share answers. */
  readonly key: string;
}

/** A federation's answers depend on who is healthy: failing over must not wait for a TTL that was meant for clients. */
const federationFreshMs = 500;
const defaultAttemptMs = 400;
const tcpMs = 2000;
const waitingMax = 10_000;
/** RFC 8767 section 4 */
const staleTtlSeconds = 30;

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #waiting = new Map<string, Promise<Outcome>>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  handle(query: Query, answer: Answer, source?: SourceTag): Step | Later {
    const { cache, world } = this.#options;
    const key = keyOf(query, source);
    const nowMs = world.clock.monotonicMs();
    const cached = cache.get(key, nowMs);
    if (cached && nowMs < cached.freshUntilMs) {
      cache.hits += 1;
      fill(answer, cached, Math.floor((nowMs - cached.storedMs) / 1000));
      return 'done';
    }
    cache.misses += 1;
    if (this.#waiting.size >= waitingMax) {
      answer.fail(rcode.SERVFAIL, extendedError.other, 'too many questions are waiting for other servers');
      return 'done';
    }
    return this.#later(copyOf(query), answer, key, source);
  }

  async #later(query: Query, original: Answer, key: string, source: SourceTag | undefined): Promise<Uint8Array> {
    const answer = new Answer(new Uint8Array(query.transport === 'udp' ? 2 * udpPayloadMax : 0x10000));
    answer.nsid = original.nsid;
    const { zone, signature, extendedError: error, extendedText: text } = original;
    const handler = source ? 'stub' : original.handler;
    const outcome = await this.resolve(query, key, source);
    answer.begin(query);
    answer.handler = handler;
    answer.zone = zone;
    answer.extendedError = error;
    answer.extendedText = text;
    if (outcome.kind === 'failed') answer.fail(rcode.SERVFAIL, extendedError.noReachableAuthority, outcome.why);
    else fill(answer, outcome.cached, outcome.kind === 'stale' ? 'stale' : 0);
    const length = answer.finish();
    this.#options.onAnswered?.(query, answer);
    const message = answer.bytes.subarray(0, length);
    return signature ? signMessage(message, signature.key, signature).message : message;
  }

  /** One question for all who wait for the same answer. */
  resolve(query: Query, key: string, source?: SourceTag): Promise<Outcome> {
    const known = this.#waiting.get(key);
    if (known) return known;
    const outcome = this.#ask(query, key, source).finally(() => this.#waiting.delete(key));
    this.#waiting.set(key, outcome);
    return outcome;
  }

  async #ask(query: Query, key: string, source: SourceTag | undefined): Promise<Outcome> {
    const { servers, cache, world } = this.#options;
    const message = buildQuestion(query, source, this.#options.hasRandomCase ? world.random : undefined);
    const nowMs = world.clock.monotonicMs();
    const candidates = servers.candidates(nowMs);
    const trial = servers.dueForTrial(nowMs);
    if (trial && !candidates.includes(trial)) void this.#try(trial, message);
    let failure: Reply | undefined;
    for (const server of candidates) {
      const reply = await this.#try(server, message);
      if (!reply) continue;
      if (reply.rcode === rcode.NOERROR || reply.rcode === rcode.NXDOMAIN) {
        const freshMsMax = source ? federationFreshMs : undefined;
        return { kind: 'fresh', cached: cache.put(key, reply, world.clock.monotonicMs(), freshMsMax) };
      }
      failure ??= reply;
    }
    const old = cache.get(key, world.clock.monotonicMs());
    if (old && (old.reply.rcode === rcode.NOERROR || old.reply.rcode === rcode.NXDOMAIN)) {
      return { kind: 'stale', cached: old };
    }
    if (failure) return { kind: 'fresh', cached: cache.put(key, failure, world.clock.monotonicMs()) };
    const named = servers.addresses.map(({ host, port }) => `${host}:${port}`).join(', ');
    return { kind: 'failed', why: `no answer from ${named}` };
  }

  /** Undefined if the server is silent or talks nonsense. */
  async #try(server: ServerAddress, message: Uint8Array): Promise<Reply | undefined> {
    const { servers, world } = this.#options;
    try {
      let reply = await this.#exchange(server, message, false);
      if (reply?.isTruncated) {
        reply = await this.#exchange(server, message, true);
      } else if (reply?.rcode === rcode.FORMERR) {
        // A server from before EDNS: without OPT it may understand (RFC 6891 section 7).
        reply = (await this.#exchange(server, withoutOpt(message), false)) ?? reply;
      }
      if (reply) servers.answered(server);
      else servers.failed(server, world.clock.monotonicMs());
      return reply;
    } catch {
      servers.failed(server, world.clock.monotonicMs());
      return undefined;
    }
  }

  async #exchange(server: ServerAddress, plain: Uint8Array, isTcp: boolean): Promise<Reply | undefined> {
    const { exchange, key, world, attemptMs = defaultAttemptMs } = this.#options;
    const timeoutMs = isTcp ? tcpMs : attemptMs;
    if (!key) return readReply(await exchange.ask({ server, message: plain, timeoutMs, isTcp }));
    const timeSeconds = Math.floor(world.clock.wallMs() / 1000);
    const { message, mac } = signMessage(plain, key, { timeSeconds });
    const signed = await exchange.ask({ server, message, timeoutMs, isTcp });
    const verdict = verifyMessage(signed, { keys: [key], timeSeconds, requestMac: mac });
    return verdict.kind === 'good' ? readReply(verdict.message) : undefined;
  }
}

export type Outcome =
  | { readonly kind: 'fresh' | 'stale'; readonly cached: CachedReply }
  | { readonly kind: 'failed'; readonly why: string };

/** Everything an answer can depend on. */
function keyOf(query: Query, source?: SourceTag): string {
  const name = Buffer.from(query.name.buffer, 0, query.nameLength).toString('latin1');
  return `${query.type} ${query.class} ${query.isDnssecOk ? 1 : 0} ${source?.key ?? ''} ${name}`;
}

function fill(answer: Answer, cached: CachedReply, age: number | 'stale'): void {
  const { reply } = cached;
  answer.isRecursionAvailable = true;
  answer.rcode = reply.rcode & 15;
  const error = age === 'stale' ? extendedError.staleAnswer : reply.extendedError;
  // What is wrong with the answer is more than what was wrong with the query.
  if (error !== -1) {
    answer.extendedError = error;
    answer.extendedText = '';
  }
  answer.body(reply, age === 'stale' ? { ttlSeconds: staleTtlSeconds } : { ageSeconds: age });
}

/** For those who answer later: the query itself is used again at once. */
export function copyOf(query: Query): Query {
  const copy = new Query();
  copy.sourceOption = query.sourceOption;
  copy.receivedMs = query.receivedMs;
  copy.transport = query.transport;
  copy.clientAddress = query.clientAddress;
  copy.clientPort = query.clientPort;
  copy.clientIdentity = query.clientIdentity;
  copy.read(Uint8Array.prototype.slice.call(query.packet, 0, query.length));
  return copy;
}

/** Our own question: nothing a client put into its OPT goes further than this. */
function buildQuestion(query: Query, source: SourceTag | undefined, random: World['random'] | undefined): Uint8Array {
  const option = source ? 4 + source.payload.length : 0;
  const bytes = Buffer.alloc(headerBytes + query.nameLength + 4 + 11 + option);
  bytes.writeUInt16BE(0x0100, 2);
  bytes.writeUInt16BE(1, 4);
  bytes.writeUInt16BE(1, 10);
  bytes.set(query.name.subarray(0, query.nameLength), headerBytes);
  if (random) mixCase(bytes, headerBytes, query.nameLength, random);
  let at = headerBytes + query.nameLength;
  at = bytes.writeUInt16BE(query.type, at);
  at = bytes.writeUInt16BE(classIn, at);
  at = bytes.writeUInt8(0, at);
  at = bytes.writeUInt16BE(recordType.OPT, at);
  at = bytes.writeUInt16BE(udpPayloadMax, at);
  at = bytes.writeUInt32BE(query.isDnssecOk ? 0x8000 : 0, at);
  at = bytes.writeUInt16BE(option, at);
  if (source) {
    at = bytes.writeUInt16BE(source.optionCode, at);
    at = bytes.writeUInt16BE(source.payload.length, at);
    bytes.set(source.payload, at);
  }
  return bytes;
}

function mixCase(bytes: Uint8Array, start: number, length: number, random: World['random']): void {
  const coins = random.bytes(Math.ceil(length / 8));
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i]!;
    if (byte >= 0x61 && byte <= 0x7a && ((coins[i >> 3]! >> (i & 7)) & 1) === 1) bytes[start + i] = byte - 32;
  }
}

function withoutOpt(message: Uint8Array): Uint8Array {
  let end = headerBytes;
  while (message[end] !== 0) end += message[end]! + 1;
  const bytes = message.slice(0, end + 5);
  bytes[10] = 0;
  bytes[11] = 0;
  return bytes;
}
