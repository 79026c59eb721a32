// Counts which address of a cached answer comes first, so that clients are spread over all of them. Counted by question: most
// clients ask for A and AAAA in turn, and on one counter with an even number of addresses each kind would always begin with the
// same one. A refreshed answer goes on where the one before stopped.

import { hashBytes } from '../../base/dns/name.ts';
import type { Query } from '../message/wire.ts';

/** Enough that two names in use seldom share one. */
const counters = 16_384;

export class Turns {
  readonly #next = new Uint16Array(counters);

  next({ name, nameLength, type }: Query): number {
    const slot = (hashBytes(name, 0, nameLength) + type) & (counters - 1);
    const turn = this.#next[slot]!;
    this.#next[slot] = turn + 1;
    return turn;
  }
}
