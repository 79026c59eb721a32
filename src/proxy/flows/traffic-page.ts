// What a node proxy answers to GET /traffic: all of its totals, with the rates of the last seconds. Pure.

import type { ProxyState } from '../state.ts';
import { type PlaceRow, ratesOf, type TotalRow, type Totals, type Traffic } from './totals.ts';

export interface TrafficRow extends TotalRow {
  /** Per second, over the last ten seconds or so. Absent while nothing comes. */
  readonly rates?: Traffic;
}

/** Calls of other clusters to Pods of this node that no export allows; in Audit they passed. */
interface DeniedRow {
  readonly from: string;
  /** `namespace/name`, or the address of no Service. */
  readonly service: string;
  readonly packets: number;
}

export interface TrafficPage {
  readonly node: string;
  /** The cluster of the node, and where the node is; empty texts if nobody said. */
  readonly from: string;
  readonly region: string;
  readonly zone: string;
  /** When the counting began, and when this was read, by the node's clock. */
  readonly sinceMs: number;
  readonly atMs: number;
  /** By service and the cluster that served it. */
  readonly rows: readonly TrafficRow[];
  /** By place of the endpoints. */
  readonly places: readonly PlaceRow[];
  readonly denied: readonly DeniedRow[];
}

interface Reading {
  readonly atMs: number;
  readonly rows: ReadonlyMap<string, TotalRow>;
}

const everyMs = 5_000;
const windowMs = 10_000;

/** Remembers totals of some seconds ago. */
export class RateWindow {
  readonly #totals: Totals;
  /** The oldest first: the first is what is compared with. */
  #readings: readonly Reading[];

  constructor(totals: Totals, nowMs: number) {
    this.#totals = totals;
    this.#readings = [{ atMs: nowMs, rows: new Map() }];
  }

  /** To be called every few seconds; times are those of a clock that nobody sets. */
  note(nowMs: number): void {
    if (nowMs - this.#readings.at(-1)!.atMs < everyMs) return;
    const rows = new Map(this.#totals.rows().map((row) => [keyOf(row), row]));
    const readings = [...this.#readings, { atMs: nowMs, rows }];
    // One of them is at least as old as the window.
    const isPast = ({ atMs }: Reading) => nowMs - atMs >= windowMs;
    this.#readings = readings.slice(Math.max(0, readings.findLastIndex(isPast)));
  }

  rows(nowMs: number): TrafficRow[] {
    const { atMs, rows } = this.#readings[0]!;
    return this.#totals.rows().map((row) => {
      const rates = ratesOf(row, rows.get(keyOf(row)), (nowMs - atMs) / 1000);
      return Object.values(rates).some((rate) => rate > 0) ? { ...row, rates } : row;
    });
  }
}

function keyOf({ service, cluster }: TotalRow): string {
  return `${service} ${cluster}`;
}

export interface TrafficSource {
  readonly node: string;
  readonly state: Pick<ProxyState, 'view'>;
  readonly totals: Totals;
  readonly window: RateWindow;
  readonly clock: { wallMs(): number; monotonicMs(): number };
  readonly sinceMs: number;
  readonly denied: Iterable<DeniedRow>;
}

export function trafficPage({ node, state, totals, window, clock, sinceMs, denied }: TrafficSource): TrafficPage {
  const { cluster: from, region = '', zone = '' } = state.view.self;
  const nowMs = clock.monotonicMs();
  window.note(nowMs);
  return {
    ...{ node, from, region, zone, sinceMs, atMs: clock.wallMs() },
    rows: window.rows(nowMs),
    places: totals.places(),
    denied: deniedRows(denied),
  };
}

/** Ports together. */
function deniedRows(refusals: Iterable<DeniedRow>): DeniedRow[] {
  const rows = new Map<string, DeniedRow>();
  for (const { from, service, packets } of refusals) {
    const key = `${from} ${service}`;
    rows.set(key, { from, service, packets: packets + (rows.get(key)?.packets ?? 0) });
  }
  return [...rows.values()];
}
