// How often something may be tried: a few times from one address, and not many more from all of them together. Pure, with
// time passed in.

import { BoundedCache } from './bounded-cache.ts';
import type { Clock } from './world.ts';

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

interface Pace {
  readonly burst: number;
  /** How long it takes to earn another one. */
  readonly everyMs: number;
}

export interface TryLimitsOptions {
  readonly perAddress: Pace;
  readonly inAll: Pace;
}

const addressesMax = 10_000;

export class TryLimits {
  readonly #clock: Clock;
  readonly #options: TryLimitsOptions;
  readonly #addresses = new BoundedCache<Bucket>(addressesMax);
  #all: Bucket | undefined;

  constructor(clock: Clock, options: TryLimitsOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Counts the try, which may weigh more than one. */
  mayTry(address: string, weight = 1): boolean {
    const nowMs = this.#clock.monotonicMs();
    const own = refilled(this.#addresses.get(address), this.#options.perAddress, nowMs);
    const all = refilled(this.#all, this.#options.inAll, nowMs);
    if (own.tokens < weight || all.tokens < weight) return false;
    this.#addresses.set(address, { tokens: own.tokens - weight, atMs: nowMs });
    this.#all = { tokens: all.tokens - weight, atMs: nowMs };
    return true;
  }
}

function refilled(bucket: Bucket | undefined, { burst, everyMs }: Pace, nowMs: number): Bucket {
  if (bucket === undefined) return { tokens: burst, atMs: nowMs };
  return { tokens: Math.min(burst, bucket.tokens + (nowMs - bucket.atMs) / everyMs), atMs: nowMs };
}
