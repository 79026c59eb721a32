// Replies of other servers, kept for their TTL and a while longer in case no server answers. The key holds all that
// an answer can depend on; for federations that includes the cluster that asks. Pure; time is passed in.

import { nameBytesMax } from '../../base/dns/name.ts';
import type { CacheOptions } from '../config/config.ts';
import type { Query } from '../message/wire.ts';
import { asRefreshed, CachedReply, isAnswer, isUsable, packReply, withRetry } from './cached-reply.ts';
import type { SourceTag } from './question.ts';
import type { Reply } from './reply.ts';

const defaultCacheOptions: CacheOptions = { bytesMax: 32 << 20, ttlSecondsMax: 3600, staleMs: 3_600_000 };

/** Cost of an entry besides its bytes: a map's slot, and the heads of two texts. */
const entryOverheadBytes = 120;
/** RFC 9520 section 3.2: a failure is remembered, briefly. */
const failureMs = 5000;
const keyHeadBytes = 4;
/** The share of a full cache that stays when room is made. */
const keptShare = 0.99;

export class ReplyCache {
  readonly #options: CacheOptions;
  readonly #entries = new Map<string, string>();
  readonly #found = new CachedReply();
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

  /** An answer that may be served as stale. Holds until the next one is looked up. */
  answer(key: string, nowMs: number): CachedReply | undefined {
    const found = this.get(key, nowMs);
    return found && isAnswer(found) ? found : undefined;
  }

  /** Fresh or stale; undefined if there is nothing or it is too old for anything. Holds until the next one is looked up. */
  get(key: string, nowMs: number): CachedReply | undefined {
    const text = this.#entries.get(key);
    if (text === undefined) return undefined;
    if (isUsable(text, nowMs, this.#options.staleMs)) return this.#found.read(text);
    this.#drop(key, text);
    return undefined;
  }

  /** `freshMsMax` makes it be refreshed earlier than its TTL; the TTL for clients stays. */
  put(key: string, reply: Reply, nowMs: number, freshMsMax = Number.POSITIVE_INFINITY): CachedReply {
    const ttlMs = isAnswer(reply) ? 1000 * Math.min(reply.ttlSeconds, this.#options.ttlSecondsMax) : failureMs;
    const text = packReply(reply, { storedMs: nowMs, freshMs: Math.min(ttlMs, freshMsMax) });
    const cached = new CachedReply().read(text);
    const before = this.get(key, nowMs);
    // A failure never replaces an answer that could still be served as stale.
    if (before && !isAnswer(reply) && isAnswer(before)) {
      this.#entries.set(key, withRetry(before.text, Math.max(before.retryMs, cached.freshUntilMs)));
      return cached;
    }
    if (before) this.#drop(key, before.text);
    this.#entries.set(key, text);
    this.#bytes += sizeOf(key, text);
    this.#evict();
    return cached;
  }

  /** Servers are asked once for what is still in the cache, not each time it is asked for. */
  markRefreshed(key: string, { text }: CachedReply): void {
    this.#entries.set(key, asRefreshed(text));
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
    for (const [key, text] of this.#entries) {
      this.#drop(key, text);
      if (this.#bytes <= bytesWanted) return;
    }
  }

  #drop(key: string, text: string): void {
    this.#entries.delete(key);
    this.#bytes -= sizeOf(key, text);
  }
}

function sizeOf(key: string, text: string): number {
  return entryOverheadBytes + key.length + text.length;
}
