// Metrics and log lines of forwarded queries.

import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import { encodeSource } from '../source/source-option.ts';
import { Asker, addService, makeCatalog, syncAll } from '../testing/ask.ts';
import type { Exchange } from '../upstream/exchange.ts';
import { registerDnsMetrics } from './metrics.ts';
import { readCounters } from './observe.ts';

/** 192.0.2.1 answers, 192.0.2.2 refuses, all others are silent. */
const exchange: Exchange = {
  ask: async ({ message, server }) => {
    const { id, questions } = packet.decode(Buffer.from(message));
    if (server.host === '192.0.2.2') return packet.encode({ type: 'response', id, questions, flags: 5 });
    if (server.host !== '192.0.2.1') throw new Error('timed out');
    const answers = [{ type: 'A', name: questions![0]!.name, ttl: 60, data: '203.0.113.1' }] as never;
    return packet.encode({ type: 'response', id, questions, answers });
  },
  close: () => {},
};

function setUp(nameservers: string[]) {
  const catalog = makeCatalog();
  addService(catalog, 'shop/partner', { externalName: 'api.partner.example' });
  syncAll(catalog);
  const stubZones = [{ zone: 'fed.svc.federation', nameservers: ['192.0.2.3'], sendsSource: true }];
  const trusted = { ranges: ['127.0.0.9/32'], identities: [] };
  const asker = new Asker(catalog, { exchange, stubZones, config: { forward: { nameservers }, trusted } });
  catalog.table.setQueryLog(true);
  return { asker, catalog };
}

const sourceOf = (cluster: string) => ({
  edns: { options: [{ code: 65_001, data: Buffer.from(encodeSource({ cluster, hops: 0 })) }] },
});

describe('dns observed', () => {
  test('an alias that is followed upstream -> one query, its own time, one line', async () => {
    const { asker } = setUp(['192.0.2.1']);
    expect(await asker.ask('partner.shop.svc.cluster.local A')).toBe('api.partner.example, 203.0.113.1');
    const { byZoneAndRcode, latencies } = readCounters([asker.counters]);
    expect(byZoneAndRcode.map(({ count }) => count)).toEqual([1]);
    expect(latencies.map(({ sumSeconds }) => sumSeconds)).toEqual([0]);
    expect(asker.lines).toMatchObject([{ name: 'partner.shop.svc.cluster.local', type: 'A', rcode: 'NOERROR' }]);
  });

  test('query log -> types in words, the cluster that asks and whether it is believed, the extended error', async () => {
    const { asker } = setUp(['192.0.2.1']);
    await asker.ask('dns-version.cluster.local TXT');
    await asker.ask('www.example.com TYPE65280'.replace('TYPE65280', 'UNKNOWN_65280'));
    await asker.ask('web.shop.fed.svc.federation A', { address: '127.0.0.9', ...sourceOf('east') });
    await asker.ask('dns-version.cluster.local A', sourceOf('west'));
    expect(asker.lines).toMatchObject([
      { type: 'TXT' },
      { type: 'TYPE65280' },
      { type: 'A', source: 'east', rcode: 'SERVFAIL', extendedError: '22 no answer from 192.0.2.3:53' },
      { source: 'west', isSourceDropped: true },
    ]);
    expect(asker.lines[0]).not.toHaveProperty('source');
    expect(asker.lines[0]).not.toHaveProperty('extendedError');
    expect(asker.lines[2]).not.toHaveProperty('isSourceDropped');
  });

  test('metrics -> use of the cache, and of each server questions, silence, failures and state; threads replaced', async () => {
    const { asker, catalog } = setUp(['192.0.2.2', '192.0.2.1', '192.0.2.4']);
    const metrics = createMetrics();
    const counters = () => [asker.counters];
    registerDnsMetrics({ metrics, counters, zones: () => catalog.zones, workerRestarts: () => 3 });
    for (let i = 0; i < 3; i++) await asker.ask('www.example.com A');
    await asker.ask('web.shop.fed.svc.federation A');
    const text = await metrics.text();
    const value = (metric: string) => text.split('\n').find((line) => line.startsWith(`portolan_dns_${metric} `));
    expect(value('cache_total{result="hit"}')).toMatch(/ 2$/);
    expect(value('cache_total{result="miss"}')).toMatch(/ 2$/);
    expect(value('upstream_questions_total{server="192.0.2.1:53"}')).toMatch(/ 1$/);
    expect(value('upstream_failures_total{server="192.0.2.2:53"}')).toMatch(/ 1$/);
    expect(value('upstream_unanswered_total{server="192.0.2.3:53"}')).toMatch(/ 1$/);
    expect(value('upstream_unanswered_total{server="192.0.2.1:53"}')).toMatch(/ 0$/);
    expect(value('upstream_up{server="192.0.2.1:53"}')).toMatch(/ 1$/);
    expect(value('worker_restarts_total')).toMatch(/ 3$/);
    expect(value('packets_dropped_total{reason="port-zero"}')).toMatch(/ 0$/);
    expect(text).not.toContain('192.0.2.4');
  });
});
