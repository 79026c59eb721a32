// Answers for services of peers: under peers.local, at their FQDNs, and for their addresses.

import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { explain } from './explain/explainer.ts';
import { formatExplanation } from './explain/explanation.ts';
import { defaultSourceOption } from './message/wire.ts';
import { type AskerOptions, addService, extendedErrorOf, makeCatalog, syncAll } from './testing/ask.ts';
import { keyOfPeerService, makePeers, peerAsker, peerService } from './testing/peer-names.ts';
import type { Exchange } from './upstream/exchange.ts';

/** An upstream that knows every name as 203.0.113.1, and what it was asked for. */
function upstream(): { asked: string[]; options: AskerOptions } {
  const asked: string[] = [];
  const exchange: Exchange = {
    ask: async ({ message }) => {
      const { id, questions } = packet.decode(message);
      const { name, type } = questions![0]!;
      asked.push(name.toLowerCase());
      const answers =
        type === 'A' ? [{ type: 'A' as const, name, ttl: 60, class: 'IN' as const, data: '203.0.113.1' }] : [];
      return packet.encode({ type: 'response', id, questions, answers });
    },
    close: () => {},
  };
  return { asked, options: { exchange, config: { forward: { nameservers: ['192.0.2.53'] } } } };
}

function setUp(options: AskerOptions = {}) {
  const catalog = makeCatalog();
  const peers = makePeers(catalog);
  const { asked, options: forwarding } = upstream();
  const config = { ...forwarding.config, ...options.config };
  const asker = peerAsker(catalog, peers, { ...forwarding, ...options, config });
  syncAll(catalog);
  const ask = (question: string) => asker.ask(question);
  const errorOf = async (question: string) => extendedErrorOf(await asker.askPacket(question, { edns: true }));
  return { catalog, peers, asker, asked, ask, errorOf };
}

function synced(options: AskerOptions = {}) {
  const all = setUp(options);
  const service = peerService({ ports: [15443, 8443], status: { ips: ['241.0.0.1', 'fd00:241::1'] } });
  all.peers.upsert(service);
  all.peers.setSynced();
  return { ...all, service };
}

describe('dns: a service of a peer', () => {
  test.each([
    ['db.east.example A', '241.0.0.1'],
    ['db.east.example AAAA', 'fd00:241::1'],
    ['DB.East.Example A', '241.0.0.1'],
    ['db.east.example SRV', '8443 db.east.example, 15443 db.east.example'],
    ['_http._tcp.db.east.example SRV', '8443 db.east.example, 15443 db.east.example'],
    ['_http._tcp.db.east.example A', 'NODATA'],
    ['_tcp.db.east.example SRV', 'NODATA'],
    ['_grpc._tcp.db.east.example SRV', 'NXDOMAIN'],
    ['db.east.example TXT', 'NODATA'],
    ['db.east.example SOA', 'SOA db.east.example'],
    ['db.east.example NS', 'ns.dns.peers.local'],
    ['db.east.example ANY', 'HINFO RFC8482'],
    ['db.east.svc.peers.local A', '241.0.0.1'],
    ['db.east.svc.peers.local SRV', '8443 db.east.svc.peers.local, 15443 db.east.svc.peers.local'],
    ['_http._tcp.db.east.svc.peers.local SRV', '8443 db.east.svc.peers.local, 15443 db.east.svc.peers.local'],
    ['db.east.svc.peers.local TXT', 'NODATA'],
    ['other.east.svc.peers.local A', 'NXDOMAIN'],
    ['east.svc.peers.local A', 'NODATA'],
    ['svc.peers.local A', 'NODATA'],
    ['west.svc.peers.local A', 'NXDOMAIN'],
    ['peers.local SOA', 'SOA peers.local'],
    ['peers.local NS', 'ns.dns.peers.local'],
    ['1.0.0.241.in-addr.arpa PTR', 'db.east.example'],
  ])('%s -> %s', async (question, answer) => {
    expect(await synced().ask(question)).toBe(answer);
  });

  test('its FQDN -> answered with authority, SRV with the address beside it, "no" with the SOA of that name alone', async () => {
    const { asker } = synced();
    const srv = await asker.askPacket('_http._tcp.db.east.example SRV');
    expect(srv).toMatchObject({ flag_aa: true, flag_ra: true });
    expect(srv.additionals?.map((record) => (record as { data: unknown }).data)).toEqual(['241.0.0.1', 'fd00:241::1']);
    const none = await asker.askPacket('_x._tcp.db.east.example A');
    expect(none).toMatchObject({
      flag_aa: true,
      rcode: 'NXDOMAIN',
      authorities: [{ type: 'SOA', name: 'db.east.example', data: { mname: 'ns.dns.peers.local', minimum: 5 } }],
    });
  });

  test('neighbours of an FQDN, above, beside and below it -> go upstream [000-05]', async () => {
    const { ask, asked } = synced();
    const neighbours = ['east.example', 'www.east.example', 'a.db.east.example', '_acme-challenge.db.east.example'];
    for (const name of neighbours) expect(await ask(`${name} A`)).toBe('203.0.113.1');
    expect(asked).toEqual(neighbours);
    await ask('db.east.example A');
    expect(asked).toHaveLength(neighbours.length);
  });

  test('protocols that say how and not what, or are no labels -> the bare name alone has SRV', async () => {
    const { ask, peers } = synced();
    peers.upsert(peerService({ protocols: ['tcp', 'HTTP/1.1', 'kubernetes.io/h2c', 'my_proto'] }));
    expect(await ask('db.east.example SRV')).toBe('15443 db.east.example');
    expect(await ask('_h2c._tcp.db.east.example SRV')).toBe('15443 db.east.example');
    for (const label of ['_tcp', '_http', '_my_proto', '_1'])
      expect(await ask(`${label}._tcp.db.east.example SRV`)).toBe('NXDOMAIN');
  });

  test("withdrawn -> its names are nobody's again, and so is its address", async () => {
    const { ask, peers, service } = synced();
    peers.remove(keyOfPeerService(service));
    expect(await ask('db.east.example A')).toBe('203.0.113.1');
    expect(await ask('_http._tcp.db.east.example SRV')).toBe('NODATA');
    expect(await ask('db.east.svc.peers.local A')).toBe('NXDOMAIN');
    expect(await ask('svc.peers.local A')).toBe('NXDOMAIN');
    expect(await ask('1.0.0.241.in-addr.arpa PTR')).toBe('NODATA');
  });

  test('refused -> has no name', async () => {
    const { ask, peers } = setUp();
    const refused = peerService({ status: { state: 'Refused', hostnames: ['db.east.example'] } });
    peers.upsert(refused);
    peers.setSynced();
    expect(await ask('db.east.example A')).toBe('203.0.113.1');
    expect(await ask('db.east.svc.peers.local A')).toBe('NXDOMAIN');
  });

  test('its owner is away or no longer names it -> answered, with extended error 3; vouched for again -> without', async () => {
    const { ask, peers, errorOf } = synced();
    peers.upsert(peerService({ fqdn: 'live.east.example', name: 'live' }));
    for (const state of ['Stale', 'Suspect'] as const) {
      peers.upsert(peerService({ status: { state } }));
      expect(await ask('db.east.example A')).toBe('241.0.0.1');
      for (const name of ['db.east.example A', 'db.east.svc.peers.local A', '_http._tcp.db.east.example SRV'])
        expect(await errorOf(name)).toBe('3');
      expect(await errorOf('live.east.example A')).toBeUndefined();
    }
    peers.upsert(peerService({ status: { state: 'Active' } }));
    expect(await errorOf('db.east.example A')).toBeUndefined();
  });

  test('the home is away -> all of them answered, with extended error 3', async () => {
    const { peers, errorOf } = synced();
    peers.setStale(true);
    expect(await errorOf('db.east.example A')).toBe('3');
    expect(await errorOf('db.east.svc.peers.local A')).toBe('3');
    expect(await errorOf('no.east.svc.peers.local A')).toBe('19');
  });

  test('it has no address yet -> the name exists, nobody else is asked', async () => {
    const { ask, peers, asked } = synced();
    peers.upsert(peerService({ status: { ips: [] } }));
    expect(await ask('db.east.example A')).toBe('NODATA');
    expect(asked).toEqual([]);
  });

  test('an ExternalName of the cluster leads to it -> its address behind the alias', async () => {
    const { ask, catalog } = synced();
    addService(catalog, 'shop/fqdn', { externalName: 'db.east.example' });
    addService(catalog, 'shop/alias', { externalName: 'db.east.svc.peers.local' });
    addService(catalog, 'shop/gone', { externalName: 'no.east.svc.peers.local' });
    catalog.flush();
    expect(await ask('fqdn.shop.svc.cluster.local A')).toBe('db.east.example, 241.0.0.1');
    expect(await ask('alias.shop.svc.cluster.local A')).toBe('db.east.svc.peers.local, 241.0.0.1');
    expect(await ask('gone.shop.svc.cluster.local A')).toBe('NXDOMAIN no.east.svc.peers.local');
  });

  test("a name that is a federation's -> asked there, whatever a peer claims", async () => {
    const stubZones = [{ zone: 'svc.federation', nameservers: ['192.0.2.53'], sendsSource: true }];
    const { ask, peers, asked } = setUp({ stubZones });
    peers.upsert(peerService({ fqdn: 'web.shop.svc.federation' }));
    peers.setSynced();
    expect(await ask('web.shop.svc.federation A')).toBe('203.0.113.1');
    expect(asked).toEqual(['web.shop.svc.federation']);
  });

  test("the cluster domain is answered by another server -> addresses of peers' services still lead back to them", async () => {
    const stubZones = ['cluster.local', 'in-addr.arpa'].map((zone) => ({
      zone,
      nameservers: ['192.0.2.53'],
      sendsSource: false,
    }));
    const { ask, asked } = synced({ stubZones, config: { clusterZone: undefined } });
    expect(await ask('1.0.0.241.in-addr.arpa PTR')).toBe('db.east.example');
    expect(asked).toEqual([]);
    expect(await ask('2.0.0.241.in-addr.arpa PTR')).toBe('NODATA');
    expect(asked).toEqual(['2.0.0.241.in-addr.arpa']);
  });
});

describe('dns: before it is known what peers share', () => {
  test('the cluster domain is answered by another server -> virtual addresses wait, all others are asked there', async () => {
    const stubZones = ['in-addr.arpa', 'ip6.arpa'].map((zone) => ({
      zone,
      nameservers: ['192.0.2.53'],
      sendsSource: false,
    }));
    const { ask, asked, peers } = setUp({ stubZones, config: { clusterZone: undefined } });
    const [peer, cluster] = ['1.0.0.241.in-addr.arpa', '7.0.96.10.in-addr.arpa'];
    expect(await ask(`${peer} PTR`)).toBe('SERVFAIL');
    expect(await ask(`${cluster} PTR`)).toBe('NODATA');
    expect(asked).toEqual([cluster]);
    peers.upsert(peerService());
    peers.setSynced();
    expect(await ask(`${peer} PTR`)).toBe('db.east.example');
  });

  test("a name that may be a peer's -> SERVFAIL with extended error 14, nobody is asked", async () => {
    const { ask, asked, errorOf } = setUp();
    for (const name of ['db.east.example', 'www.example.com', 'db.east.svc.peers.local', '1.0.0.241.in-addr.arpa'])
      expect(await ask(`${name} A`)).toBe('SERVFAIL');
    expect(await errorOf('www.example.com A')).toBe('14 what peers share has not been read from its home yet');
    expect(asked).toEqual([]);
  });

  test("names that cannot be a peer's -> answered", async () => {
    const stubZones = [
      { zone: 'svc.federation', nameservers: ['192.0.2.53'], sendsSource: true },
      { zone: 'cluster.local', nameservers: ['192.0.2.53'], sendsSource: false },
    ];
    const { ask } = setUp({ stubZones, config: { clusterZone: undefined } });
    expect(await ask('web.shop.svc.federation A')).toBe('203.0.113.1');
    expect(await ask('web.shop.svc.cluster.local A')).toBe('203.0.113.1');
  });

  test('an alias that leads to one -> SERVFAIL, not an alias to nowhere', async () => {
    const { ask, catalog } = setUp();
    addService(catalog, 'shop/fqdn', { externalName: 'db.east.example' });
    addService(catalog, 'shop/alias', { externalName: 'db.east.svc.peers.local' });
    catalog.flush();
    expect(await ask('fqdn.shop.svc.cluster.local A')).toMatch(/^SERVFAIL/);
    expect(await ask('alias.shop.svc.cluster.local A')).toMatch(/^SERVFAIL/);
  });

  test('not to be waited for any longer -> other names go upstream, peers.local stays SERVFAIL', async () => {
    const { ask, peers } = setUp();
    peers.upsert(peerService());
    peers.passOthers();
    expect(await ask('www.example.com A')).toBe('203.0.113.1');
    expect(await ask('db.east.example A')).toBe('241.0.0.1');
    expect(await ask('no.east.svc.peers.local A')).toBe('SERVFAIL');
  });
});

describe('dig: a name of a peer', () => {
  const clock = { wallMs: () => 0, monotonicMs: () => 6000 };
  function explaining() {
    const all = synced();
    const { asker, catalog, peers } = all;
    const options = { service: asker.service, clock, catalog, peerTable: peers, sourceOption: defaultSourceOption };
    const why = async (name: string, type = 'A') => formatExplanation(await explain(options, { name, type }));
    return { ...all, why };
  }

  test('FQDN, alias, port and address -> the PeerService, its peer, state, revision and age', async () => {
    const { why, peers } = explaining();
    const source = 'PeerService portolan-system/east.db.east.example, peer east, Active, revision 7, 5s old';
    expect((await why('db.east.example')).split('\n')).toEqual([
      'db.east.example A from west: NOERROR by peers',
      '  A 241.0.0.1  ttl 5',
      `    ${source}`,
      '',
    ]);
    expect(await why('db.east.svc.peers.local')).toContain(source);
    expect(await why('_http._tcp.db.east.example', 'SRV')).toContain(source);
    expect(await why('1.0.0.241.in-addr.arpa', 'PTR')).toContain(source);
    peers.upsert(peerService({ status: { state: 'Stale', since: '2026-11-15T08:00:00Z' } }));
    const stale = await why('db.east.example');
    expect(stale).toContain('extended error 3');
    expect(stale).toContain('Stale since 2026-11-15T08:00:00Z');
  });

  test('a name that two claim -> who has it, and who does not', async () => {
    const { why, peers } = explaining();
    peers.upsert(peerService({ peer: 'north', firstSeenMs: 2 }));
    expect(await why('db.east.example')).toContain(
      'left out: PeerService portolan-system/north.db.east.example of peer north: ' +
        'PeerService portolan-system/east.db.east.example of peer east has this name',
    );
  });

  test('no address yet, no such service, a name no peer may have -> said', async () => {
    const { why, peers } = explaining();
    peers.upsert(peerService({ status: { ips: [] } }));
    expect(await why('db.east.example')).toContain('has no virtual address yet');
    expect(await why('no.east.svc.peers.local')).toContain('no PeerService that was taken has this name');
    peers.upsert(peerService({ fqdn: '_http.east.example', name: 'x' }));
    expect(await why('_http.east.example')).toContain('labels that begin with _ are for ports');
  });
});
