import { describe, expect, test } from 'vitest';
import type { TotalRow } from '../../proxy/flows/totals.ts';
import type { TrafficPage } from '../../proxy/flows/traffic-page.ts';
import { trafficRows } from '../rows/traffic.ts';
import { TrafficTotals } from './totals.ts';

const row = (tried: number, answered: number, more: Partial<TotalRow> = {}): TotalRow => ({
  ...{ service: 'shop/cart', cluster: 'west', tried, answered, refused: 0, reset: 0, sent: 9, received: 90 },
  ...more,
});
const page = (key: string, from: string, rows: readonly TotalRow[]) => ({
  ...{ key, from },
  page: { node: key, from, sinceMs: 0, atMs: 0, rows } as unknown as TrafficPage,
});

/** Readings every two seconds of one node in east. */
function readings(counts: readonly TotalRow[][], from = 'east'): TrafficTotals {
  const totals = new TrafficTotals();
  for (const [index, rows] of counts.entries()) totals.take([page('n1', from, rows)], index * 2_000);
  return totals;
}

describe('traffic totals', () => {
  test('the first reading -> sums of the kernel, and no rate yet', () => {
    const [sum] = [...readings([[row(500, 490)]]).all()];
    expect(sum).toMatchObject({ tried: 500, answered: 490, perSecond: 0, failedPerSecond: 0 });
  });

  test('100 a second of which 10 fail, for 30 s -> those rates; nothing for 30 s -> none', () => {
    const busy = Array.from({ length: 16 }, (_, n) => [row(200 * n, 180 * n)]);
    const [now] = [...readings(busy).all()];
    expect(now!.perSecond).toBeCloseTo(100, 0);
    expect(now!.failedPerSecond).toBeCloseTo(10, 0);
    const idle = Array.from({ length: 16 }, () => [row(3_000, 2_700)]);
    const [later] = [...readings([...busy, ...idle]).all()];
    expect(later!.perSecond).toBeLessThan(0.5);
  });

  test('a proxy is restarted -> its counters begin anew, and no rate falls below zero or jumps', () => {
    const totals = new TrafficTotals();
    totals.take([page('n1 a', 'east', [row(1_000, 1_000)])], 0);
    totals.take([page('n1 b', 'east', [row(5, 5)])], 2_000);
    expect([...totals.all()]).toMatchObject([{ tried: 5, sent: 9, received: 90, perSecond: 0, failedPerSecond: 0 }]);
  });

  test('two nodes of one cluster and one of another -> sums by source cluster', () => {
    const totals = new TrafficTotals();
    const take = (n: number, atMs: number) =>
      totals.take(
        [page('n1', 'east', [row(n, n)]), page('n2', 'east', [row(n, n)]), page('n3', 'south', [row(n, 0)])],
        atMs,
      );
    for (let n = 0; n < 20; n += 1) take(20 * n, n * 2_000);
    const rows = trafficRows(
      totals.all(),
      new Map([
        ['east', ''],
        ['south', ''],
        ['west', 'no proxy reports there'],
      ]),
    );
    expect(
      rows.map(({ id, connections, failed, perSecond, failedPerSecond, why }) => [
        id,
        connections,
        failed,
        perSecond,
        failedPerSecond,
        why,
      ]),
    ).toEqual([
      ['east', 760, 0, 20, 0, ''],
      ['south', 380, 380, 10, 10, ''],
      ['west', 0, 0, 0, 0, 'no proxy reports there'],
    ]);
    expect(rows[0]!.to).toEqual([{ id: 'west', perSecond: 20, failedPerSecond: 0 }]);
  });

  test('a page of another version, or with numbers that are none -> counts as nothing, the others stay', () => {
    const totals = new TrafficTotals();
    const bad = [null, { rows: null }, { rows: [null, { service: 5 }, { ...row(1, 1), tried: 'many' }] }];
    const pages = bad.map((one, index) => ({ key: `bad ${index}`, from: 'east', page: one as never }));
    totals.take([...pages, page('n1', 'east', [row(7, 7)])], 0);
    expect([...totals.all()]).toMatchObject([{ tried: 7 }]);
  });
});
