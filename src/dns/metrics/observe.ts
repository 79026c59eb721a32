// Counts every answer by zone, rcode and time taken, and what else a thread counts (dropped packets, closed connections, use
// of the cache), in memory that another thread can read at any moment; writes a line for each query while that is on.

import { rcodeNames, typeText } from '../../base/dns/codes.ts';
import { decodeName } from '../../base/dns/name.ts';
import type { LogFields } from '../../base/log.ts';
import type { Clock } from '../../base/world.ts';
import type { Answer } from '../message/answer.ts';
import type { Observer } from '../message/handler.ts';
import type { Query } from '../message/wire.ts';
import { readServerStats, ServerStats, type ServerTotals, serverStatsCells } from './server-stats.ts';

const tallyNames = [
  /** Packets from port 0, which cannot be answered. */
  'droppedPortZero',
  /** Packets and queries that ended in an error of ours. */
  'droppedFault',
  'cacheHits',
  'cacheMisses',
  'cacheStale',
  'cacheRefreshed',
] as const;

/** Upper bounds in seconds; the last bucket has none. */
export const latencyBounds: readonly number[] = [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.1, 1];
/** Row 0 is for what belongs to no zone. */
const zonesMax = 16;
const rcodesMax = 32;
const bucketsAt = zonesMax * rcodesMax;
/** Per zone: its buckets, then the sum of all times. */
const latencySlots = latencyBounds.length + 2;
const sumSlot = latencySlots - 1;
const tallyAt = bucketsAt + zonesMax * latencySlots;
const serversAt = tallyAt + tallyNames.length;
const slots = serversAt + serverStatsCells;

export interface ObserverOptions {
  readonly clock: Clock;
  /** Made by `createCounters`; one per thread. */
  readonly counters: SharedArrayBuffer;
  /** Asked for every query: must be cheap. */
  readonly isLogging: () => boolean;
  readonly writeLine: (fields: LogFields) => void;
  /** For the log: what the query says of the cluster that asks. */
  readonly sourceOf?: (query: Query) => LogFields;
}

export function createCounters(): SharedArrayBuffer {
  return new SharedArrayBuffer(8 * slots);
}

/** The part of a thread's counters that is not about answers. */
export function tallyIn(counters: SharedArrayBuffer): Tally {
  return new Tally(new Float64Array(counters, 8 * tallyAt, tallyNames.length));
}

/** The part about servers that are asked. */
export function serverStatsIn(counters: SharedArrayBuffer): ServerStats {
  return new ServerStats(serverCells(counters));
}

function serverCells(counters: SharedArrayBuffer): Float64Array {
  return new Float64Array(counters, 8 * serversAt, serverStatsCells);
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
    const latencyAt = bucketsAt + zone * latencySlots;
    this.#counters[latencyAt + sumSlot]! += seconds;
    let bucket = 0;
    while (bucket < latencyBounds.length && seconds > latencyBounds[bucket]!) bucket++;
    this.#counters[latencyAt + bucket]! += 1;
    if (this.#options.isLogging()) this.#options.writeLine(this.#describe(query, answer, seconds));
  }

  #describe(query: Query, answer: Answer, seconds: number): LogFields {
    return {
      client: `${query.clientAddress}:${query.clientPort}`,
      transport: query.transport,
      name: query.nameLength === 0 ? '' : decodeName(query.name.subarray(0, query.nameLength)),
      type: typeText(query.type),
      ...this.#options.sourceOf?.(query),
      rcode: rcodeNames[answer.rcode] ?? String(answer.rcode),
      ...(answer.extendedError < 0 ? {} : { extendedError: `${answer.extendedError} ${answer.extendedText}`.trim() }),
      answers: answer.answerCount,
      handler: answer.handler,
      microseconds: Math.round(1e6 * seconds),
    };
  }
}

export interface CounterTotals {
  readonly byZoneAndRcode: readonly { readonly zone: number; readonly rcode: number; readonly count: number }[];
  readonly latencies: readonly ZoneLatency[];
  readonly tally: Readonly<Record<TallyName, number>>;
  readonly servers: readonly ServerTotals[];
}

export interface ZoneLatency {
  readonly zone: number;
  /** As many as there are bounds, and one more. */
  readonly counts: readonly number[];
  readonly sumSeconds: number;
}

/** Sums over all threads; zones that were never asked for are left out. Zone -1 stands for none. */
export function readCounters(all: readonly SharedArrayBuffer[]): CounterTotals {
  const sums = new Float64Array(slots);
  for (const memory of all) new Float64Array(memory).forEach((value, i) => (sums[i]! += value));
  const byZoneAndRcode: { zone: number; rcode: number; count: number }[] = [];
  for (let i = 0; i < bucketsAt; i++) {
    const count = sums[i]!;
    if (count > 0) byZoneAndRcode.push({ zone: Math.floor(i / rcodesMax) - 1, rcode: i % rcodesMax, count });
  }
  const latencies = Array.from({ length: zonesMax }, (_, row) => latencyOf(sums, row));
  return {
    byZoneAndRcode,
    latencies: latencies.filter(({ counts }) => counts.some((count) => count > 0)),
    tally: readTally(sums.subarray(tallyAt)),
    servers: readServerStats(all.map(serverCells)),
  };
}

function latencyOf(sums: Float64Array, row: number): ZoneLatency {
  const at = bucketsAt + row * latencySlots;
  return { zone: row - 1, counts: [...sums.subarray(at, at + sumSlot)], sumSeconds: sums[at + sumSlot]! };
}

export type TallyName = (typeof tallyNames)[number];

export class Tally {
  readonly #cells: Float64Array;

  constructor(cells: Float64Array) {
    this.#cells = cells;
  }

  add(name: TallyName): void {
    this.#cells[indexOf[name]]! += 1;
  }
}

const indexOf = Object.fromEntries(tallyNames.map((name, i) => [name, i])) as Readonly<Record<TallyName, number>>;

function readTally(cells: Float64Array): Record<TallyName, number> {
  return Object.fromEntries(tallyNames.map((name, i) => [name, cells[i]!])) as Record<TallyName, number>;
}
