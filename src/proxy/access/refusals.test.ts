import { expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import { Callers } from '../../clusterset/rules/exports/callers.ts';
import { registerProxyMetrics } from '../nft/metrics.ts';
import { AccessPlan, configOf } from './plan.ts';
import { Refusals } from './refusals.ts';

const plan = new AccessPlan(
  configOf(
    {
      mode: 'Exported',
      sources: new Map([['west', ['10.2.0.0/16']]]),
      podRanges: ['10.1.0.0/16'],
      closedRanges: [],
    },
    [],
  ),
);
plan.setSlice('shop/db-1', { service: 'shop/db', tuples: ['4 10.1.0.7 . tcp . 5432'] });

const seen = (...elements: [source: string, target: string, port: number, packets: number][]) =>
  JSON.stringify({
    nftables: [
      { metainfo: {} },
      {
        set: {
          elem: elements.map(([source, target, port, packets]) => ({
            elem: { val: { concat: [source, target, 'tcp', port] }, counter: { packets, bytes: 60 } },
          })),
        },
      },
    ],
  });
const counting = () => new Refusals({ wallMs: () => Date.parse('2026-01-01T00:00:00Z') });
const shown = (refusals: Refusals) =>
  refusals.mostFrequent(10).map(({ from, service, port, packets }) => `${from} ${service} ${port} ${packets}`);

test('refusals: counters rise, time out and come back -> every packet is counted once', () => {
  const refusals = counting();
  const read = (...elements: Parameters<typeof seen>) => refusals.count('seen4', seen(...elements), plan);
  read(['10.2.0.1', '10.1.0.7', 5432, 3]);
  read(['10.2.0.1', '10.1.0.7', 5432, 3]);
  read(['10.2.0.1', '10.1.0.7', 5432, 5]);
  read();
  read(['10.2.0.1', '10.1.0.7', 5432, 2]);
  expect(shown(refusals)).toEqual(['west shop/db 5432/tcp 7']);
});

test('refusals: each reading -> the calls of each caller since the one before; in Audit none were refused', () => {
  const of = (mode: 'Exported' | 'Audit') => {
    const calls: object[] = [];
    const refusals = new Refusals({ wallMs: () => 0 }, (call) => calls.push(call));
    const own = new AccessPlan({ ...plan.config, mode });
    own.setSlice('shop/db-1', { service: 'shop/db', tuples: ['4 10.1.0.7 . tcp . 5432'] });
    for (const packets of [3, 3, 5]) refusals.count('seen4', seen(['10.2.0.1', '10.1.0.7', 5432, packets]), own);
    return calls;
  };
  const call = { from: 'west', client: '10.2.0.1', service: 'shop/db', endpoint: '10.1.0.7', port: 5432 };
  expect(of('Exported')).toEqual([3, 2].map((packets) => ({ ...call, protocol: 'tcp', packets })));
  expect(of('Audit')).toEqual([]);
});

test('refusals: a policy leaves out what the export names -> noted beside it', () => {
  const limited = new AccessPlan(plan.config, new Callers('[{"namespace":"shop","from":{"south":"all"}}]'));
  limited.setSlice('shop/db-1', { service: 'shop/db', tuples: ['4 10.1.0.7 . tcp . 5432'] });
  limited.setExport('shop/db', { exportTo: undefined });
  const refusals = counting();
  refusals.count('seen4', seen(['10.2.0.1', '10.1.0.7', 5432, 3]), limited);
  expect(refusals.mostFrequent(1)).toMatchObject([{ from: 'west', service: 'shop/db', byPolicy: true, packets: 3 }]);
  limited.setExport('shop/db', { exportTo: ['south'] });
  expect([limited.isLeftOut('west', 'shop/db'), limited.isLeftOut('south', 'shop/db')]).toEqual([false, false]);
});

test('refusals: an address without a Service, a caller that is no member, nonsense -> by address; left out', () => {
  const refusals = counting();
  refusals.count('seen4', seen(['10.2.0.1', '10.1.0.9', 22, 1], ['192.0.2.1', '10.1.0.7', 5432, 9]), plan);
  refusals.count('seen6', JSON.stringify({ nftables: [{ set: {} }, { set: { elem: [{}] } }] }), plan);
  expect(shown(refusals)).toEqual(['west 10.1.0.9 22/tcp 1']);
});

test('refusals: more pairs than are kept -> the rest is counted as other, no packet is lost, series are bounded', async () => {
  const refusals = counting();
  const attempts = Array.from({ length: 1500 }, (_, index): [string, string, number, number] => {
    plan.setSlice(`shop/s${index}`, { service: `shop/s${index}`, tuples: [`4 10.1.9.9 . tcp . ${1000 + index}`] });
    return ['10.2.0.1', '10.1.9.9', 1000 + index, 2];
  });
  refusals.count('seen4', seen(...attempts), plan);
  const all = [...refusals.all()];
  expect(all.length).toBeLessThanOrEqual(1001);
  expect(all.reduce((sum, { packets }) => sum + packets, 0)).toBe(3000);
  const metrics = createMetrics();
  registerProxyMetrics({
    ...{ metrics, size: () => ({ services: 0, ports: 0 }), problems: () => 0, isStale: () => false },
    ...{ isEnforced: () => false, refusals: () => refusals.all() },
    ...{ silent: () => new Map(), paths: () => [] },
  });
  const text = await metrics.text();
  const series = [...text.matchAll(/^portolan_proxy_access_refused_packets_total\{(.*)\} (\d+)$/gm)];
  expect(series.length).toBe(201);
  expect(series.reduce((sum, [, , value]) => sum + Number(value), 0)).toBe(3000);
  expect(text).toContain(
    'portolan_proxy_access_refused_packets_total{namespace="shop",service="s0",source_cluster="west"} 2',
  );
  expect(text).toMatch(/^portolan_proxy_access_enforced 0$/m);
});
