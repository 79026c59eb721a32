// Replies of other servers, kept for their TTL and a while longer in case no server answers. The key holds all that
// an answer can depend on; for federations that includes the cluster that asks. Pure; time is passed in.

import { rcode } from '../../base/dns/codes.ts';
import { nameBytesMax } from '../../base/dns/name.ts';
import type { Query } from '../wire.ts';
import type { SourceTag } from './question.ts';
import type { Reply } from './reply.ts';

export interface CachedReply {
  readonly reply: Reply;
  readonly storedMs: number;
  readonly freshUntilMs: number;
  /** No server could be asked again: until then it is served as stale without another try (RFC 8767 section 5). */
  retryMs: number;
  /** Moves on with every answer, so that clients are spread over addresses. */
  turn: number;
}

export interface CacheOptions {
  readonly bytesMax: number;
  readonly ttlSecondsMax: number;
  /** How long after its end an answer may still be served when no server answers (RFC 8767). */
  readonly staleMs: number;
}

const defaultCacheOptions: CacheOptions = { bytesMax: 32 << 20, ttlSecondsMax: 3600, staleMs: 3_600_000 };

/** Cost of an entry besides its bytes: key, map slot, objects. */
const entryOverheadBytes = 400;
/** RFC 9520 section 3.2: a failure is remembered, briefly. */
const failureMs = 5000;
const keyHeadBytes = 4;
/** Of a full cache, when room is made in it. */
const keptShare = 0.99;

export class ReplyCache {
  readonly #options: CacheOptions;
  readonly #entries = new Map<string, CachedReply>();
  readonly #keyBytes = Buffer.alloc(keyHeadBytes + nameBytesMax);
  #bytes = 0;
  hits = 0;
  misses = 0;

  constructor(options: CacheOptions = defaultCacheOptions) {
    this.#options = options;
  }

  /** Everything an answer can depend on. */
  keyOf(query: Query, source?: SourceTag): string {
    const bytes = this.#keyBytes;
    bytes[0] = query.type >> 8;
    bytes[1] = query.type & 255;
    bytes[2] = query.class & 255;
    bytes[3] = (query.class >> 8 ? 4 : 0) | (query.isDnssecOk ? 1 : 0) | (query.isCheckingDisabled ? 2 : 0);
    const { name, nameLength } = query;
    for (let i = 0; i < nameLength; i++) bytes[keyHeadBytes + i] = name[i]!;
    const key = bytes.toString('latin1', 0, keyHeadBytes + nameLength);
    // A name ends in its root: nothing behind it can be taken for a part of it.
    return source ? key + source.key : key;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** An answer that may be served as stale. */
  answer(key: string, nowMs: number): CachedReply | undefined {
    const entry = this.get(key, nowMs);
    return entry && isAnswer(entry.reply) ? entry : undefined;
  }

  /** Fresh or stale; undefined if there is nothing or it is too old for anything. */
  get(key: string, nowMs: number): CachedReply | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (nowMs < entry.freshUntilMs + this.#options.staleMs) return entry;
    this.#drop(key, entry);
    return undefined;
  }

  /** `freshMsMax` makes it be refreshed earlier than its TTL; the TTL for clients stays. */
  put(key: string, reply: Reply, nowMs: number, freshMsMax = Number.POSITIVE_INFINITY): CachedReply {
    const ttlMs = isAnswer(reply) ? 1000 * Math.min(reply.ttlSeconds, this.#options.ttlSecondsMax) : failureMs;
    const freshUntilMs = nowMs + Math.min(ttlMs, freshMsMax);
    const entry = { reply, storedMs: nowMs, freshUntilMs, retryMs: freshUntilMs, turn: 0 };
    const before = this.get(key, nowMs);
    // A failure never replaces an answer that could still be served as stale.
    if (before && !isAnswer(reply) && isAnswer(before.reply)) {
      before.retryMs = freshUntilMs;
      return entry;
    }
    if (before) this.#drop(key, before);
    this.#entries.set(key, entry);
    this.#bytes += sizeOf(key, entry);
    this.#evict();
    return entry;
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  /** The oldest go first; what is in use comes back when it is asked for again. Many at a time: the way to the first entry of a
   *  Map leads over the places of all that were deleted before it. */
  #evict(): void {
    const { bytesMax } = this.#options;
    if (this.#bytes <= bytesMax) return;
    const bytesWanted = bytesMax * keptShare;
    for (const [key, entry] of this.#entries) {
      this.#drop(key, entry);
      if (this.#bytes <= bytesWanted) return;
    }
  }

  #drop(key: string, entry: CachedReply): void {
    this.#entries.delete(key);
    this.#bytes -= sizeOf(key, entry);
  }
}

/** A whole one: neither a failure nor cut off. */
export function isAnswer(reply: Reply): boolean {
  return (reply.rcode === rcode.NOERROR || reply.rcode === rcode.NXDOMAIN) && !reply.isTruncated;
}

function sizeOf(key: string, { reply }: CachedReply): number {
  return entryOverheadBytes + key.length + reply.records.length + 8 * reply.ttlOffsets.length;
}
