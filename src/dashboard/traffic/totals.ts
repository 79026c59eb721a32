// Connections by service and by pair of clusters, added up over the node proxies of all homes: sums are those of the kernels,
// rates those of the last seconds. Pure; a page that is not as expected counts as none.

import type { TrafficPage } from '../../proxy/flows/traffic-page.ts';
import type { Traffic } from '../wire/views.ts';

export interface ProxyPage {
  /** Differs for every start of a proxy: its counters begin at zero. */
  readonly key: string;
  /** The cluster of its node. */
  readonly from: string;
  readonly page: TrafficPage;
}

type Sums = { -readonly [Column in keyof Traffic]: Traffic[Column] };

interface Seen {
  readonly atMs: number;
  readonly rows: ReadonlyMap<string, { readonly tried: number; readonly failed: number }>;
}

/** A rate forgets what was before with this time: short enough to see a failure, long enough not to flicker. */
const smoothMs = 5_000;
const rowsOfProxyMax = 20_000;

export class TrafficTotals {
  #seen = new Map<string, Seen>();
  #all = new Map<string, Sums>();
  #takenMs: number | undefined;

  all(): Iterable<Traffic> {
    return this.#all.values();
  }

  /** The pages of all proxies that answered; `nowMs` is of a clock that never goes back. */
  take(pages: readonly ProxyPage[], nowMs: number): void {
    const all = new Map<string, Sums>();
    const seen = new Map<string, Seen>();
    const before = this.#all;
    for (const { key, from, page } of pages) {
      const last = this.#seen.get(key);
      const passedMs = last === undefined ? 0 : Math.max(1, nowMs - last.atMs);
      const weight = 1 - keptAfter(passedMs);
      const rows = new Map<string, { tried: number; failed: number }>();
      for (const { service, cluster, tried, answered, refused, reset, sent, received } of rowsOf(page)) {
        const failed = Math.max(0, tried - answered);
        const own = `${service} ${cluster}`;
        rows.set(own, { tried, failed });
        const old = last?.rows.get(own);
        const rate = (now: number, was: number) =>
          last === undefined ? 0 : (weight * 1000 * Math.max(0, now - was)) / passedMs;
        const sum = sumOf(all, { service, from, to: cluster });
        sum.tried += tried;
        sum.answered += answered;
        sum.refused += refused;
        sum.reset += reset;
        sum.sent += sent;
        sum.received += received;
        sum.perSecond += rate(tried, old?.tried ?? 0);
        sum.failedPerSecond += rate(failed, old?.failed ?? 0);
      }
      seen.set(key, { atMs: nowMs, rows });
    }
    const kept = this.#takenMs === undefined ? 0 : keptAfter(nowMs - this.#takenMs);
    for (const [key, sum] of all) {
      const old = before.get(key);
      if (old === undefined) continue;
      sum.perSecond += kept * old.perSecond;
      sum.failedPerSecond += kept * old.failedPerSecond;
    }
    this.#takenMs = nowMs;
    this.#all = all;
    this.#seen = seen;
  }
}

/** The share of an earlier rate that still counts. */
function keptAfter(passedMs: number): number {
  return Math.exp(-Math.max(0, passedMs) / smoothMs);
}

function sumOf(all: Map<string, Sums>, place: Pick<Traffic, 'service' | 'from' | 'to'>): Sums {
  const key = `${place.service} ${place.from} ${place.to}`;
  const found = all.get(key);
  if (found !== undefined) return found;
  const made = {
    ...place,
    tried: 0,
    answered: 0,
    refused: 0,
    reset: 0,
    sent: 0,
    received: 0,
    perSecond: 0,
    failedPerSecond: 0,
  };
  all.set(key, made);
  return made;
}

/** Proxies of other versions answer too. */
function rowsOf(page: TrafficPage | null): TrafficPage['rows'] {
  const rows: unknown = page?.rows;
  if (!Array.isArray(rows)) return [];
  return rows
    .slice(0, rowsOfProxyMax)
    .filter(
      (row: Partial<TrafficPage['rows'][number]> | null) =>
        typeof row?.service === 'string' &&
        typeof row.cluster === 'string' &&
        [row.tried, row.answered, row.refused, row.reset, row.sent, row.received].every((value) =>
          Number.isFinite(value),
        ),
    );
}
