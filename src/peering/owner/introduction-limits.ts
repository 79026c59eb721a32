// Rate limit for introduction tokens: a few attempts from one address, and not many more from all of them together,
// so that guessing leads nowhere. Pure, with time passed in.

import { BoundedCache } from '../../base/bounded-cache.ts';
import type { Clock } from '../../base/world.ts';

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

interface Pace {
  readonly burst: number;
  /** How long it takes to earn another try. */
  readonly everyMs: number;
}

const perAddress: Pace = { burst: 5, everyMs: 10_000 };
const inAll: Pace = { burst: 60, everyMs: 1000 };
const addressesMax = 10_000;

export class IntroductionLimits {
  readonly #clock: Clock;
  readonly #addresses = new BoundedCache<Bucket>(addressesMax);
  #all: Bucket | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts the try. */
  mayTry(address: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const own = refilled(this.#addresses.get(address), perAddress, nowMs);
    const all = refilled(this.#all, inAll, nowMs);
    if (own.tokens < 1 || all.tokens < 1) return false;
    this.#addresses.set(address, { tokens: own.tokens - 1, atMs: nowMs });
    this.#all = { tokens: all.tokens - 1, atMs: nowMs };
    return true;
  }
}

function refilled(bucket: Bucket | undefined, { burst, everyMs }: Pace, nowMs: number): Bucket {
  if (bucket === undefined) return { tokens: burst, atMs: nowMs };
  return { tokens: Math.min(burst, bucket.tokens + (nowMs - bucket.atMs) / everyMs), atMs: nowMs };
}
