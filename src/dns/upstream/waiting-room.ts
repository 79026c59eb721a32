// Queries that wait for other servers, in one thread: bounded in total and fair by source. A source may have four times as
// many waiting as there are free places, so one alone gets most of them, several share them, and there is always room for
// one that comes new. Answers are written here too, into memory that all of them share.

import { signMessage } from '../../base/dns/tsig.ts';
import { Answer } from '../message/answer.ts';
import type { Later, TakeMessage } from '../message/handler.ts';
import { extendedError, messageBytesMax, Query } from '../message/wire.ts';
import type { CachedReply } from './cached-reply.ts';
import { Turns } from './turns.ts';

export const defaultWaitingMax = 10_000;
const sharePerFreePlace = 4;
/** RFC 8767 section 4 */
const staleTtlSeconds = 30;

interface Source {
  readonly address: string;
  waiting: number;
}

export interface WaitingRoomOptions {
  readonly max?: number;
  readonly onAnswered?: (query: Query, answer: Answer) => void;
  /** Told of errors of ours, which concern one answer. */
  readonly onFault: (error: unknown) => void;
}

export class WaitingRoom {
  readonly #max: number;
  readonly #sources = new Map<string, Source>();
  #waiting = 0;
  readonly #query = new Query();
  readonly #answer = new Answer(new Uint8Array(messageBytesMax + 2));
  readonly #turns = new Turns();
  /** Told of every answer. */
  readonly #onAnswered: WaitingRoomOptions['onAnswered'];
  readonly #onFault: WaitingRoomOptions['onFault'];

  constructor(options: WaitingRoomOptions) {
    this.#max = options.max ?? defaultWaitingMax;
    this.#onAnswered = options.onAnswered;
    this.#onFault = options.onFault;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Whether a query of this source may wait; if not, whether the room is full or only the source's share of it. */
  placeFor(address: string): 'free' | 'full' | 'share is full' {
    const free = this.#max - this.#waiting;
    if (free <= 0) return 'full';
    const waiting = this.#sources.get(address)?.waiting ?? 0;
    return waiting < sharePerFreePlace * free ? 'free' : 'share is full';
  }

  enter(query: Query, answer: Answer): Waiter {
    let source = this.#sources.get(query.clientAddress);
    if (!source) {
      source = { address: query.clientAddress, waiting: 0 };
      this.#sources.set(source.address, source);
    }
    source.waiting += 1;
    this.#waiting += 1;
    return new Waiter(source, query, answer);
  }

  /** Gives one who waits its answer, and its place to others. A fault loses this answer only. */
  answer(waiter: Waiter, cached: CachedReply, age: number | 'stale'): void {
    const { source } = waiter;
    this.#waiting -= 1;
    source.waiting -= 1;
    if (source.waiting === 0) this.#sources.delete(source.address);
    try {
      waiter.deliver(this.#message(waiter, cached, age));
    } catch (error) {
      this.#onFault(error);
    }
  }

  /** Undefined, which is silence, after a fault. */
  #message(waiter: Waiter, cached: CachedReply, age: number | 'stale'): Uint8Array | undefined {
    const query = this.#query;
    const answer = this.#answer;
    try {
      waiter.restore(query, answer);
      this.fill(query, answer, cached, age);
      const length = answer.finish();
      if (!query.isInner) this.#onAnswered?.(query, answer);
      const message = copyOf(answer.bytes, length);
      const { signature } = answer;
      return signature ? signMessage(message, signature.key, signature).message : message;
    } catch (error) {
      this.#onFault(error);
      return undefined;
    }
  }

  /** Fills an answer from a reply. */
  fill(query: Query, answer: Answer, cached: CachedReply, age: number | 'stale'): void {
    const isStale = age === 'stale';
    answer.isRecursionAvailable = true;
    answer.rcode = cached.rcode & 15;
    // RFC 6840 section 5.8: for those who ask for it.
    answer.isAuthentic = cached.isAuthentic && !isStale && (query.isDnssecOk || query.wantsAuthentic);
    // An error of the answer takes precedence over one of the query.
    if (isStale || cached.extendedError !== -1) {
      answer.extendedError = isStale ? extendedError.staleAnswer : cached.extendedError;
      answer.extendedText = isStale ? '' : cached.extendedText;
    }
    // A "no" is never held for longer than its zone allows, however old.
    const staleSeconds = cached.isNegative ? Math.min(staleTtlSeconds, cached.ttlSeconds) : staleTtlSeconds;
    const turn = cached.rotateCount === 0 ? 0 : this.#turns.next(query);
    answer.body(cached, isStale ? 0 : age, isStale ? staleSeconds : -1, turn);
    if (cached.isTruncated) answer.isTruncated = true;
  }
}

/** One query, and all that its answer needs besides the reply. */
export class Waiter implements Later {
  readonly source: Source;
  readonly #packet: Buffer;
  readonly #transport: Query['transport'];
  readonly #clientPort: number;
  readonly #clientIdentity: string;
  readonly #receivedMs: number;
  readonly #isInner: boolean;
  readonly #sourceOption: number;
  readonly #nsid: Uint8Array;
  readonly #keepaliveMs: number;
  readonly #cookie: Uint8Array | undefined;
  readonly #handler: string;
  readonly #zone: number;
  readonly #signature: Answer['signature'];
  readonly #extendedError: number;
  readonly #extendedText: string;
  #take: TakeMessage | undefined;
  #early: { readonly message: Uint8Array | undefined } | undefined;

  constructor(source: Source, query: Query, answer: Answer) {
    this.source = source;
    this.#packet = copyOf(query.packet, query.length);
    this.#transport = query.transport;
    this.#clientPort = query.clientPort;
    this.#clientIdentity = query.clientIdentity;
    this.#receivedMs = query.receivedMs;
    this.#isInner = query.isInner;
    this.#sourceOption = query.sourceOption;
    this.#nsid = answer.nsid;
    this.#keepaliveMs = answer.keepaliveMs;
    this.#cookie = answer.cookie;
    this.#handler = answer.handler;
    this.#zone = answer.zone;
    this.#signature = answer.signature;
    this.#extendedError = answer.extendedError;
    this.#extendedText = answer.extendedText;
  }

  take(take: TakeMessage): void {
    if (this.#early) take(this.#early.message);
    else this.#take = take;
  }

  deliver(message: Uint8Array | undefined): void {
    if (this.#take) this.#take(message);
    else this.#early = { message };
  }

  restore(query: Query, answer: Answer): void {
    query.transport = this.#transport;
    query.clientAddress = this.source.address;
    query.clientPort = this.#clientPort;
    query.clientIdentity = this.#clientIdentity;
    query.receivedMs = this.#receivedMs;
    query.isInner = this.#isInner;
    query.sourceOption = this.#sourceOption;
    query.read(this.#packet);
    answer.nsid = this.#nsid;
    answer.keepaliveMs = this.#keepaliveMs;
    answer.begin(query);
    answer.cookie = this.#cookie;
    answer.handler = this.#handler;
    answer.zone = this.#zone;
    answer.signature = this.#signature;
    answer.extendedError = this.#extendedError;
    answer.extendedText = this.#extendedText;
  }
}

/** A piece of the buffer pool: much cheaper than memory of its own. */
function copyOf(bytes: Uint8Array, length: number): Buffer {
  const copy = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i++) copy[i] = bytes[i]!;
  return copy;
}
