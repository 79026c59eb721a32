import { describe, expect, test } from 'vitest';
import type { ClusterRow, TrafficRow } from '../../wire/rows.ts';
import { lineHealth, lineWidth, pictureOf } from './model.ts';

const cluster = (id: string, more: Partial<ClusterRow> = {}): ClusterRow => ({
  ...{ id, region: 'north', zone: '', network: 'default', health: 'ok', says: 'alive', renewedMs: 0, services: 1 },
  ...{ ready: 1, imports: 1, isDraining: false, versions: [], parts: [], exportsTo: [] },
  ...more,
});
const traffic = (id: string, to: Record<string, [number, number]>): TrafficRow => ({
  ...{ id, why: '', connections: 0, failed: 0, perSecond: 0, failedPerSecond: 0, services: [] },
  to: Object.entries(to).map(([target, [perSecond, failedPerSecond]]) => ({ id: target, perSecond, failedPerSecond })),
});
const none = { peers: [], external: [], region: '' };

describe('map', () => {
  test('three clusters -> a card each, lines with the rate of each direction, dashes for gateways', () => {
    const reaches = [{ cluster: 'west', way: 'gateway' as const, text: '', isWell: true }];
    const { cards, lines } = pictureOf({
      ...none,
      clusters: [
        cluster('east', { reaches }),
        cluster('west', { exportsTo: ['east'] }),
        cluster('south', { region: 'south' }),
      ],
      traffic: [traffic('east', { west: [10, 2], east: [50, 0] })],
    });
    expect(cards.map(({ name, place }) => `${name} in ${place}`)).toEqual([
      'east in north',
      'west in north',
      'south in south',
    ]);
    expect(lines).toEqual([
      { from: 'cluster east', to: 'cluster west', perSecond: 10, failedPerSecond: 2, way: 'gateway' },
    ]);
  });

  test('a hundred clusters in five regions -> five cards with sums; one region open -> its clusters beside the others', () => {
    const clusters = Array.from({ length: 100 }, (_, n) =>
      cluster(`c${n}`, { region: `r${n % 5}`, health: n === 7 ? 'failed' : 'ok' }),
    );
    const input = {
      ...none,
      clusters,
      traffic: clusters.map(({ id }, n) => traffic(id, { [`c${(n + 1) % 100}`]: [2, 0] })),
    };
    const closed = pictureOf(input);
    expect(closed.cards.map(({ name, says, health }) => `${name}: ${says}, ${health}`)).toEqual([
      'r0: 20 clusters, ok',
      'r1: 20 clusters, ok',
      'r2: 1 of 20 not well, failed',
      'r3: 20 clusters, ok',
      'r4: 20 clusters, ok',
    ]);
    expect(closed.lines.map(({ perSecond }) => perSecond)).toEqual([40, 40, 40, 40, 40]);
    const open = pictureOf({ ...input, region: 'r2' });
    expect(open.cards.filter(({ kind }) => kind === 'cluster')).toHaveLength(20);
    expect(open.cards.filter(({ kind }) => kind === 'region')).toHaveLength(4);
  });

  test('a hundred clusters in one region -> never more cards than can be read, the failed one among them', () => {
    const clusters = Array.from({ length: 100 }, (_, n) => cluster(`c${n}`, { health: n === 93 ? 'failed' : 'ok' }));
    const { cards } = pictureOf({ ...none, clusters, traffic: [] });
    expect(cards).toHaveLength(30);
    expect(cards.some(({ name }) => name === 'c93')).toBe(true);
    expect(cards.at(-1)).toMatchObject({ kind: 'more', name: '71 more' });
  });

  test('clusters in two networks -> cards stand by network within their region', () => {
    const clusters = [cluster('a', { network: 'n2' }), cluster('b', { network: 'n1' })];
    expect(pictureOf({ ...none, clusters, traffic: [] }).cards.map(({ place }) => place)).toEqual([
      'north, network n1',
      'north, network n2',
    ]);
  });

  test('lines -> wider by rate, coloured by the share that fails', () => {
    expect([0, 1, 100, 1e9].map((rate) => lineWidth(rate) > 1)).toEqual([false, true, true, true]);
    expect(lineWidth(1_000)).toBeGreaterThan(lineWidth(100));
    expect(lineWidth(1e9)).toBe(10);
    const line = (perSecond: number, failedPerSecond: number) =>
      lineHealth({ perSecond, failedPerSecond, way: 'direct' });
    expect([line(0, 0), line(100, 0), line(100, 1), line(100, 50)]).toEqual(['ok', 'ok', 'conflict', 'failed']);
    expect(lineHealth({ perSecond: 0, failedPerSecond: 0, way: 'none' })).toBe('failed');
  });
});
