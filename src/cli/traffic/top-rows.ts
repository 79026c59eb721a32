// The rows of `portolan top`: sums over nodes, and rates between two readings. Pure.

import type { Connections, Traffic } from '../../proxy/flows/totals.ts';
import type { TrafficPage } from '../../proxy/flows/traffic-page.ts';
import { formatBytes } from './flow-text.ts';

export type By = 'service' | 'cluster';

export interface NodeTotals {
  /** Differs for every start of a proxy: its counters begin at zero. */
  readonly key: string;
  readonly page: TrafficPage;
}

export interface TopRow extends Traffic {
  readonly service?: string;
  readonly from: string;
  readonly to?: string;
  readonly failed: number;
  readonly triedPerSecond: number;
  readonly failedPerSecond: number;
  readonly sentPerSecond: number;
  readonly receivedPerSecond: number;
}

/** The busiest first. */
export function topRows(before: readonly NodeTotals[], now: readonly NodeTotals[], by: By): TopRow[] {
  const earlier = new Map(before.map(({ key, page }) => [key, page]));
  const rows = new Map<string, TopRow>();
  for (const { key, page } of now) {
    const last = earlier.get(key);
    const seconds = last === undefined ? 0 : (page.atMs - last.atMs) / 1000;
    const known = new Map((last?.rows ?? []).map((row) => [`${row.service} ${row.cluster}`, row]));
    for (const row of page.rows) {
      const old = known.get(`${row.service} ${row.cluster}`);
      const rate = (value: number, was = 0) => (seconds > 0 ? Math.max(0, value - was) / seconds : 0);
      const place = by === 'service' ? { service: row.service, from: page.from } : { from: page.from, to: row.cluster };
      const name = Object.values(place).join(' ');
      const sum = rows.get(name);
      const add = (column: keyof Traffic) => row[column] + (sum?.[column] ?? 0);
      rows.set(name, {
        ...place,
        ...{ tried: add('tried'), answered: add('answered'), refused: add('refused'), reset: add('reset') },
        ...{ sent: add('sent'), received: add('received') },
        failed: failedOf(row) + (sum?.failed ?? 0),
        triedPerSecond: rate(row.tried, old?.tried) + (sum?.triedPerSecond ?? 0),
        failedPerSecond: rate(failedOf(row), old && failedOf(old)) + (sum?.failedPerSecond ?? 0),
        sentPerSecond: rate(row.sent, old?.sent) + (sum?.sentPerSecond ?? 0),
        receivedPerSecond: rate(row.received, old?.received) + (sum?.receivedPerSecond ?? 0),
      });
    }
  }
  return [...rows.values()].sort(
    (a, b) =>
      b.triedPerSecond - a.triedPerSecond ||
      b.sentPerSecond + b.receivedPerSecond - a.sentPerSecond - a.receivedPerSecond ||
      b.tried - a.tried,
  );
}

/** Every attempt is answered, refused, or has neither. */
function failedOf({ tried, answered }: Connections): number {
  return Math.max(0, tried - answered);
}

export function topTable(rows: readonly TopRow[], by: By): [head: string[], rows: string[][]] {
  const head = [
    ...(by === 'service' ? ['SERVICE', 'FROM'] : ['FROM', 'TO']),
    ...['CONN/S', 'FAILED/S', 'SENT/S', 'RECEIVED/S', 'CONNECTIONS', 'FAILED', 'RESET', 'SENT', 'RECEIVED'],
  ];
  return [
    head,
    rows.map((row) => [
      ...(row.service === undefined ? [row.from, row.to || '?'] : [row.service, row.from]),
      ...[row.triedPerSecond, row.failedPerSecond].map((rate) => rate.toFixed(1)),
      ...[row.sentPerSecond, row.receivedPerSecond].map((rate) => formatBytes(Math.round(rate))),
      ...[row.tried, row.failed, row.reset].map(String),
      ...[row.sent, row.received].map(formatBytes),
    ]),
  ];
}
