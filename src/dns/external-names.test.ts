// Answers for external services: their virtual IPs at their hostnames, and nothing beside them.

import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { ExternalTable } from '../catalog/outside/external-table.ts';
import { PeerTable } from '../catalog/outside/peer-table.ts';
import { externalService } from '../external/testing/services.ts';
import { makeCatalog, stillClock, syncAll } from './testing/ask.ts';
import { peerAsker, peerService } from './testing/peer-names.ts';
import type { Exchange } from './upstream/exchange.ts';

const exchange: Exchange = {
  ask: async ({ message }) => {
    const { id, questions } = packet.decode(message);
    const { name, type } = questions![0]!;
    const answers =
      type === 'A' ? [{ type: 'A' as const, name, ttl: 60, class: 'IN' as const, data: '203.0.113.1' }] : [];
    return packet.encode({ type: 'response', id, questions, answers });
  },
  close: () => {},
};

function setUp() {
  const catalog = makeCatalog();
  const { table } = catalog;
  const peers: PeerTable = new PeerTable({
    ...{ table, clock: stillClock, otherZones: () => catalog.zones, otherParties: ['external'] },
    isTaken: (name) => external.holds(name),
  });
  const external: ExternalTable = new ExternalTable({ table, peers, gate: peers.gate });
  const asker = peerAsker(catalog, peers, { exchange, config: { forward: { nameservers: ['192.0.2.53'] } } });
  syncAll(catalog);
  return { peers, external, ask: (question: string) => asker.ask(question) };
}

const spec = '{ match: [{ type: InternalVIP, value: mongo.ext.svc.local, port: 27017 }] }';
const mongo = (ip: string, name = 'mongo') => externalService(spec, { name, vips: { 'Mongo.ext.svc.local': ip } });

describe('dns: an external service', () => {
  test.each([
    ['mongo.ext.svc.local A', '242.0.0.1'],
    ['MONGO.ext.svc.local A', '242.0.0.1'],
    ['mongo.ext.svc.local AAAA', 'NODATA'],
    ['mongo.ext.svc.local NS', 'ns.dns.peers.local'],
    ['1.0.0.242.in-addr.arpa PTR', 'mongo.ext.svc.local'],
    ['other.ext.svc.local A', '203.0.113.1'],
    ['ext.svc.local A', '203.0.113.1'],
    ['x.mongo.ext.svc.local A', '203.0.113.1'],
  ])('%s -> %s', async (question, answer) => {
    const { peers, external, ask } = setUp();
    external.upsert(mongo('242.0.0.1'));
    external.setSynced();
    peers.setSynced();
    expect(await ask(question)).toBe(answer);
  });

  test('both families, another address, gone -> as its status says, then as without', async () => {
    const { peers, external, ask } = setUp();
    external.upsert({
      ...mongo('242.0.0.1'),
      status: {
        vips: ['242.0.0.1', 'fd70::1'].map((ip) => ({ ip, type: 'Portolan', hostname: 'mongo.ext.svc.local' })),
      },
    });
    external.setSynced();
    peers.setSynced();
    expect(await ask('mongo.ext.svc.local AAAA')).toBe('fd70::1');
    external.upsert(mongo('242.0.0.2'));
    expect(await ask('mongo.ext.svc.local A')).toBe('242.0.0.2');
    expect(await ask('mongo.ext.svc.local AAAA')).toBe('NODATA');
    external.remove('portolan-system/mongo');
    expect(await ask('mongo.ext.svc.local A')).toBe('203.0.113.1');
  });

  test('two resources share a name -> answered until both are gone', async () => {
    const { peers, external, ask } = setUp();
    external.upsert(mongo('242.0.0.1'));
    external.upsert(mongo('242.0.0.1', 'other'));
    external.setSynced();
    peers.setSynced();
    external.remove('portolan-system/mongo');
    expect(await ask('mongo.ext.svc.local A')).toBe('242.0.0.1');
    external.remove('portolan-system/other');
    expect(await ask('mongo.ext.svc.local A')).toBe('203.0.113.1');
  });

  test('a name that a peer has too -> the external service answers while it holds it, then the peer again', async () => {
    const { peers, external, ask } = setUp();
    peers.upsert(peerService({ fqdn: 'mongo.ext.svc.local' }));
    external.setSynced();
    peers.setSynced();
    expect(await ask('mongo.ext.svc.local A')).toBe('241.0.0.1');
    external.upsert(mongo('242.0.0.1'));
    expect(await ask('mongo.ext.svc.local A')).toBe('242.0.0.1');
    expect(peers.report('mongo.ext.svc.local')?.why).toContain('an older MeshExternalService owns it');
    external.remove('portolan-system/mongo');
    expect(await ask('mongo.ext.svc.local A')).toBe('241.0.0.1');
  });

  test('not read yet -> names outside are held back until peers and external services are known', async () => {
    const { peers, external, ask } = setUp();
    peers.setSynced();
    expect(await ask('anything.example A')).toBe('SERVFAIL');
    external.setSynced();
    expect(await ask('anything.example A')).toBe('203.0.113.1');
  });
});
