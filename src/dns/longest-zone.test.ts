// The longest matching zone decides, whether we or other servers hold it.

import { describe, expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../base/dns/message.ts';
import { FederationTable } from '../catalog/federation/federation-table.ts';
import type { StubZone } from './config/config.ts';
import { Asker, addService, makeCatalog, syncAll } from './testing/ask.ts';
import type { Exchange } from './upstream/exchange.ts';

/** Other servers, each of which answers everything with the last part of its own address. */
const elsewhere: Exchange = {
  ask: async ({ message, server }) => {
    const query = decodeMessage(message);
    const name = query.questions[0]!.name;
    const rdata = Uint8Array.from(server.host.split('.').map(Number));
    const answers = [{ name, type: 1, class: 1, ttl: 5, rdata }];
    return encodeMessage({ ...query, flags: 0x8180, answers, additionals: [] });
  },
  close: () => {},
};

const stub = (zone: string, nameserver: string, sendsSource = true): StubZone => ({
  zone,
  nameservers: [nameserver],
  sendsSource,
});

function setUp(stubZones: readonly StubZone[]) {
  const catalog = makeCatalog();
  const federation = new FederationTable({ table: catalog.table, federation: 'mine', suffix: 'fed.example' });
  federation.putText('/mine/shop/web/west', '{"externalIP": "192.0.2.1", "clusterIP": "10.0.0.1"}');
  federation.setSynced();
  addService(catalog, 'shop/web', { ips: ['10.96.0.7'] });
  addService(catalog, 'shop/away', { externalName: 'db.corp.cluster.local' });
  syncAll(catalog);
  const config = { federationZones: [federation.zone] };
  return { federation, asker: new Asker(catalog, { config, stubZones, exchange: elsewhere }) };
}

describe('dns: the longest zone that fits a name answers', () => {
  const { asker } = setUp([
    stub('other.svc.fed.example', '10.9.9.1'),
    stub('deep.mine.svc.fed.example', '10.9.9.2'),
    stub('corp.cluster.local', '10.9.9.3', false),
    stub('fed.example', '10.9.9.4', false),
  ]);

  test.each([
    ['web.shop.mine.svc.fed.example A', '10.0.0.1'],
    ['nothing.shop.mine.svc.fed.example A', 'NXDOMAIN'],
    ['web.shop.other.svc.fed.example A', '10.9.9.1'],
    ['web.deep.mine.svc.fed.example A', '10.9.9.2'],
    ['db.corp.cluster.local A', '10.9.9.3'],
    ['corp.cluster.local A', '10.9.9.3'],
    ['web.shop.svc.cluster.local A', '10.96.0.7'],
    ['nothing.shop.svc.cluster.local A', 'NXDOMAIN'],
    // The authority holds its federation's zone, not the whole suffix.
    ['www.fed.example A', '10.9.9.4'],
    ['away.shop.svc.cluster.local A', 'db.corp.cluster.local, 10.9.9.3'],
  ])('%s -> %s', async (question, expected) => {
    expect(await asker.ask(question)).toBe(expected);
  });

  test('a stub zone in ours comes and goes while it runs -> its names move with it', async () => {
    const { asker: other } = setUp([]);
    expect(await other.ask('db.corp.cluster.local A')).toBe('NXDOMAIN');
    other.service.stubZones.replace([stub('corp.cluster.local', '10.9.9.3', false)]);
    expect(await other.ask('db.corp.cluster.local A')).toBe('10.9.9.3');
    other.service.stubZones.replace([]);
    expect(await other.ask('db.corp.cluster.local A')).toBe('NXDOMAIN');
  });

  test('one of our own zones lies in another -> the inner one answers its names', async () => {
    const catalog = makeCatalog({ clustersetDomain: 'set.cluster.local' });
    addService(catalog, 'shop/web', { ips: ['10.96.0.7'] });
    syncAll(catalog);
    const inner = new Asker(catalog);
    expect(await inner.ask('dns-version.set.cluster.local TXT')).toBe('"1.0.0"');
    expect(await inner.ask('dns-version.cluster.local TXT')).toBe('"1.1.0"');
  });

  test('names of the zone itself -> its server has its name, and no service is in the way', async () => {
    expect(await asker.ask('mine.svc.fed.example NS')).toBe('mine.svc.fed.example');
    expect(await asker.ask('mine.svc.fed.example SOA')).toBe('SOA mine.svc.fed.example');
    expect(await asker.ask('ns.dns.mine.svc.fed.example A')).toBe('NXDOMAIN');
  });
});
