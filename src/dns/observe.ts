// Counts every answer by zone, rcode and time taken, in memory that another thread can read at any moment; and, while
// somebody has switched it on, writes a line for each query.

import { decodeName } from '../base/dns/name.ts';
import type { LogFields } from '../base/log.ts';
import type { Clock } from '../base/world.ts';
import type { Answer } from './answer.ts';
import type { Observer } from './responder.ts';
import { type Query, rcodeNames } from './wire.ts';

/** Upper bounds in seconds; the last bucket has none. */
export const latencyBounds: readonly number[] = [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.1, 1];
/** Row 0 is for what belongs to no zone. */
const zonesMax = 16;
const rcodesMax = 32;
const bucketsAt = zonesMax * rcodesMax;
const sumAt = bucketsAt + latencyBounds.length + 1;
const slots = sumAt + 1;

export interface ObserverOptions {
  readonly clock: Clock;
  /** Made by `createCounters`; one per thread. */
  readonly counters: SharedArrayBuffer;
  /** Asked for every query: must be cheap. */
  readonly isLogging: () => boolean;
  readonly writeLine: (fields: LogFields) => void;
}

export function createCounters(): SharedArrayBuffer {
  return new SharedArrayBuffer(8 * slots);
}

export class QueryObserver implements Observer {
  readonly #options: ObserverOptions;
  readonly #counters: Float64Array;

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.#counters = new Float64Array(options.counters);
  }

  answered(query: Query, answer: Answer): void {
    const seconds = (this.#options.clock.monotonicMs() - query.receivedMs) / 1000;
    const zone = answer.zone + 1 < zonesMax ? answer.zone + 1 : 0;
    this.#counters[zone * rcodesMax + (answer.rcode & 31)]! += 1;
    this.#counters[sumAt]! += seconds;
    let bucket = 0;
    while (bucket < latencyBounds.length && seconds > latencyBounds[bucket]!) bucket++;
    this.#counters[bucketsAt + bucket]! += 1;
    if (this.#options.isLogging()) this.#options.writeLine(describe(query, answer, seconds));
  }
}

function describe(query: Query, answer: Answer, seconds: number): LogFields {
  return {
    client: `${query.clientAddress}:${query.clientPort}`,
    transport: query.transport,
    name: query.nameLength === 0 ? '' : decodeName(query.name.subarray(0, query.nameLength)),
    type: query.type,
    rcode: rcodeNames[answer.rcode] ?? String(answer.rcode),
    answers: answer.answerCount,
    handler: answer.handler,
    microseconds: Math.round(1e6 * seconds),
  };
}

export interface CounterTotals {
  readonly byZoneAndRcode: readonly { readonly zone: number; readonly rcode: number; readonly count: number }[];
  /** As many as there are bounds, and one more. */
  readonly latencyCounts: readonly number[];
  readonly latencySumSeconds: number;
}

/** Sums over all threads. Zone -1 stands for none. */
export function readCounters(all: readonly SharedArrayBuffer[]): CounterTotals {
  const sums = new Float64Array(slots);
  for (const memory of all) new Float64Array(memory).forEach((value, i) => (sums[i]! += value));
  const byZoneAndRcode: { zone: number; rcode: number; count: number }[] = [];
  for (let i = 0; i < bucketsAt; i++) {
    const count = sums[i]!;
    if (count > 0) byZoneAndRcode.push({ zone: Math.floor(i / rcodesMax) - 1, rcode: i % rcodesMax, count });
  }
  return { byZoneAndRcode, latencyCounts: [...sums.slice(bucketsAt, sumAt)], latencySumSeconds: sums[sumAt]! };
}
