// Requirements of the RFCs on any server.

import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { FederationTable } from '../catalog/federation/federation-table.ts';
import { Asker, addImport, encodeQuestion, extendedErrorOf, makeCatalog, syncAll } from './testing/ask.ts';
import type { Exchange } from './upstream/exchange.ts';

const name = 'checkout.shop.svc.clusterset.local';

function makeAsker() {
  const catalog = makeCatalog();
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'], ports: ['http:80'] });
  const endpoints = (count: number) => Array.from({ length: count }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  addImport(catalog, 'shop/many', { type: 'Headless', slices: [{ cluster: 'east', endpoints: endpoints(60) }] });
  addImport(catalog, 'shop/huge', { type: 'Headless', slices: [{ cluster: 'east', endpoints: endpoints(5000) }] });
  syncAll(catalog);
  return new Asker(catalog);
}

describe('dns: more records than a message holds', () => {
  const long = 'a-service-with-a-name-as-long-as-names-may-be-in-kubernetes-----';
  const service = `${long.slice(0, 60)}x`;
  const namespace = `${long.slice(0, 60)}y`;
  const slice = (cluster: string, block: number) => ({
    cluster,
    ports: ['http:80'],
    endpoints: Array.from({ length: 300 }, (_, i) => ({
      ip: `10.${block}.${i >> 8}.${i & 255}`,
      hostname: `${long.slice(0, 50)}-${block}-${i}`,
    })),
  });
  const catalog = makeCatalog();
  const slices = [slice('east', 1), slice('west', 2)];
  addImport(catalog, `${namespace}/${service}`, { type: 'Headless', ports: ['http:80'], slices });
  syncAll(catalog);
  const asker = new Asker(catalog);

  test('SRV with long targets -> over TCP as many as fit, from all clusters alike, and explain says how many do not', async () => {
    const question = `_http._tcp.${service}.${namespace}.svc.clusterset.local SRV`;
    const reply = await asker.askPacket(question, { transport: 'tcp', edns: true });
    expect(reply.flag_tc).toBe(false);
    const targets = reply.answers!.map((record) => (record as { data: { target: string } }).data.target);
    expect(targets.length).toBeGreaterThan(200);
    const ofEast = targets.filter((target) => target.includes('-1-')).length;
    expect(Math.abs(ofEast - targets.length / 2)).toBeLessThan(targets.length / 20);
    const { leftOut } = catalog.namesOf(`i/${namespace}/${service}`);
    expect(leftOut).toContainEqual({
      what: `${600 - targets.length} of 600 SRV records of _http._tcp.${service}.${namespace}.svc.clusterset.local`,
      why: 'more than fit into one message',
    });
  });
});

describe('dns protocol', () => {
  const asker = makeAsker();
  const question = encodeQuestion(`${name} A`);
  const changed = (change: (bytes: Buffer) => void) => {
    const bytes = Buffer.from(question);
    change(bytes);
    return bytes;
  };
  const rcodeOf = (bytes: Buffer | undefined) => bytes && bytes[3]! & 15;

  test('shorter than a header -> silence', async () => {
    expect(await asker.send(question.subarray(0, 11))).toBeUndefined();
  });

  test('an answer instead of a query -> silence, or two servers would talk for ever', async () => {
    expect(await asker.send(changed((bytes) => (bytes[2]! |= 0x80)))).toBeUndefined();
  });

  test.each([
    ['no question', (b: Buffer) => b.writeUInt16BE(0, 4)],
    ['two questions', (b: Buffer) => b.writeUInt16BE(2, 4)],
    ['records in the answer section', (b: Buffer) => b.writeUInt16BE(1, 6)],
    ['a pointer in the question', (b: Buffer) => b.writeUInt16BE(0xc00c, 12)],
    ['a label longer than the packet', (b: Buffer) => (b[12] = 63)],
    ['more additional records than there are', (b: Buffer) => b.writeUInt16BE(3, 10)],
  ])('%s -> FORMERR', async (_what, change) => {
    expect(rcodeOf(await asker.send(changed(change)))).toBe(1);
  });

  test('a name over 255 bytes -> FORMERR', async () => {
    const labels = Buffer.concat([
      ...Array.from({ length: 5 }, () => Buffer.from(`\x3f${'a'.repeat(63)}`)),
      Buffer.alloc(1),
    ]);
    const packet = Buffer.concat([question.subarray(0, 12), labels, Buffer.from([0, 1, 0, 1])]);
    expect(rcodeOf(await asker.send(packet))).toBe(1);
  });

  test.each([
    ['IXFR', 251, 5, /^18 zones are not transferred from here/],
    ['AXFR', 252, 5, /^18 zones are not transferred from here/],
    ['type 0', 0, 1, /^0 type 0 cannot be asked for/],
    ['OPT', 41, 1, /^0 type 41 cannot be asked for/],
    ['TKEY', 249, 1, /^0 type 249/],
    ['TSIG', 250, 1, /^0 type 250/],
    ['MAILB', 253, 4, /^21 type 253 is obsolete/],
    ['MAILA', 254, 4, /^21 type 254 is obsolete/],
  ])(
    '%s in a question -> refused with the reason, whoever holds the name, and not passed on',
    async (_what, type, code, why) => {
      const forwarding = new Asker(makeCatalog(), { config: { forward: { nameservers: ['192.0.2.53'] } } });
      for (const [who, asked] of [
        [asker, name],
        [forwarding, 'www.example.org'],
      ] as const) {
        const query = encodeQuestion(`${asked} A`, { edns: true });
        query.writeUInt16BE(type, 12 + asked.length + 2);
        const reply = (await who.send(query, { transport: 'tcp' }))!;
        expect(rcodeOf(reply)).toBe(code);
        expect(extendedErrorOf(packet.decode(reply))).toMatch(why);
      }
    },
  );

  test.each([true, false])(
    'forwarding is %s -> so says RA in every answer of our own, but not to strangers',
    async (isForwarding) => {
      const catalog = makeCatalog();
      addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
      syncAll(catalog);
      const config = isForwarding ? { forward: { nameservers: ['192.0.2.53'] } } : {};
      const one = new Asker(catalog, { config });
      for (const question of [`${name} A`, `${name} AAAA`, 'nothing.shop.svc.clusterset.local A'])
        expect((await one.askPacket(question)).flag_ra).toBe(isForwarding);
      expect((await one.askPacket(`${name} A`, { address: '192.0.2.1' })).flag_ra).toBe(false);
    },
  );

  test('a zone whose server has addresses -> NS with them beside it, and at its name', async () => {
    const catalog = makeCatalog({ serverAddresses: ['10.96.0.10', 'fd00::10'] });
    const federation = new FederationTable({ table: catalog.table, federation: 'f', serverAddresses: ['10.96.0.10'] });
    federation.setSynced();
    syncAll(catalog);
    const one = new Asker(catalog, { config: { federationZones: [federation.zone] } });
    const reply = await one.askPacket('cluster.local NS');
    expect(reply.answers).toMatchObject([{ type: 'NS', data: 'ns.dns.cluster.local' }]);
    expect(reply.additionals).toMatchObject([
      { type: 'A', name: 'ns.dns.cluster.local', data: '10.96.0.10' },
      { type: 'AAAA', name: 'ns.dns.cluster.local', data: 'fd00::10' },
    ]);
    expect(await one.ask('ns.dns.clusterset.local AAAA')).toBe('fd00::10');
    expect(await one.ask('f.svc.federation A')).toBe('10.96.0.10');
    expect(federation.setZone({ serverAddresses: ['10.96.0.53', '10.96.0.54'] })).toBe(true);
    expect(await one.ask('f.svc.federation A')).toBe('10.96.0.53, 10.96.0.54');
    expect(await one.ask('f.svc.federation NS')).toBe('f.svc.federation');
    expect(federation.setZone({ serverAddresses: [] })).toBe(true);
    expect(await one.ask('f.svc.federation A')).toBe('10.96.0.10');
  });

  test('a notify, update or status -> NOTIMP', async () => {
    for (const opcode of [2, 4, 5]) {
      const reply = await asker.send(changed((bytes) => (bytes[2] = opcode << 3)));
      expect(rcodeOf(reply)).toBe(4);
      expect(reply!.readUInt16BE(0)).toBe(4711);
    }
  });

  test('id, RD and CD come back as sent; RA only with a forwarder', async () => {
    const reply = await asker.send(changed((bytes) => bytes.writeUInt16BE(0x0110, 2)));
    expect(reply!.readUInt16BE(0)).toBe(4711);
    expect(reply!.readUInt16BE(2) & 0x0190).toBe(0x0110);
  });

  test('no OPT in the query -> none in the answer (RFC 6891 section 6.1.1)', async () => {
    expect((await asker.askPacket(`${name} A`)).additionals).toEqual([]);
    expect((await asker.askPacket(`${name} A`, { edns: true })).additionals).toMatchObject([
      { type: 'OPT', udpPayloadSize: 1232 },
    ]);
  });

  test('two OPT records -> FORMERR', async () => {
    const one = encodeQuestion(`${name} A`, { edns: true });
    const two = Buffer.concat([one, one.subarray(question.length)]);
    two.writeUInt16BE(2, 10);
    expect(rcodeOf(await asker.send(two))).toBe(1);
  });

  test('an OPT whose options do not add up -> FORMERR', async () => {
    const packet = encodeQuestion(`${name} A`, { edns: { options: [{ code: 65001, data: Buffer.from('east') }] } });
    packet.writeUInt16BE(99, packet.length - 6);
    expect(rcodeOf(await asker.send(packet))).toBe(1);
  });

  test('an EDNS version of the future -> BADVERS', async () => {
    expect(await asker.ask(`${name} A`, { edns: { version: 1 } })).toBe('BADVERS');
  });

  test('NSID asked for -> the server says its name (RFC 5001)', async () => {
    const reply = await asker.askPacket(`${name} A`, { edns: { options: [{ code: 3, data: Buffer.alloc(0) }] } });
    const options = reply.additionals![0]!.options as { code: number; data: Buffer }[];
    expect(options.find(({ code }) => code === 3)?.data.toString()).toBe('test-server');
  });

  test.each([
    ['without EDNS: 60 addresses in 512 bytes', undefined, '29 addresses, TC'],
    ['EDNS with 512', { udpSize: 512 }, '28 addresses, TC'],
    ['EDNS with 100, which counts as 512', { udpSize: 100 }, '28 addresses, TC'],
    ['EDNS with 4096, of which we use 1232', { udpSize: 4096 }, '60 addresses'],
  ])('%s -> as many as fit', async (_what, edns, expected) => {
    const reply = await asker.askPacket('many.shop.svc.clusterset.local A', edns ? { edns } : {});
    expect(`${reply.answers?.length} addresses${reply.flag_tc ? ', TC' : ''}`).toBe(expected);
  });

  test('a set larger than 1232 bytes -> TC over UDP whatever the client offers, whole over TCP', async () => {
    const udp = await asker.askPacket('huge.shop.svc.clusterset.local A', { edns: { udpSize: 65_000 } });
    expect(udp.flag_tc).toBe(true);
    // Clients without TCP use what there is (RFC 2181 section 9).
    expect(udp.answers).toHaveLength(73);
    const tcp = await asker.askPacket('huge.shop.svc.clusterset.local A', { transport: 'tcp' });
    expect(tcp.flag_tc).toBe(false);
    // More than a message can hold are left out when the name is made, not cut off here.
    expect(tcp.answers).toHaveLength(4000);
  });

  test.each([
    ['addresses of the own cluster alone', 'own.shop.svc.clusterset.local A'],
    ['addresses of another cluster, in its turn', 'other.shop.svc.clusterset.local A'],
    ['SRV of all endpoints', '_http._tcp.all.shop.svc.clusterset.local SRV'],
    ['SRV of the own cluster alone', '_http._tcp.own.shop.svc.clusterset.local SRV'],
  ])('%s that do not fit -> some of them, each once, and TC; over TCP all', async (_what, question) => {
    const catalog = makeCatalog();
    const endpoints = Array.from({ length: 60 }, (_, i) => `10.1.0.${i + 1}`);
    const slice = (cluster: string) => ({ cluster, ports: ['http:8080'], endpoints });
    addImport(catalog, 'shop/own', { slices: [slice('west'), { ...slice('east'), endpoints: ['10.9.0.1'] }] });
    addImport(catalog, 'shop/other', { slices: [slice('east')] });
    addImport(catalog, 'shop/all', { type: 'Headless', slices: [slice('east')] });
    syncAll(catalog);
    const many = new Asker(catalog);
    const udp = await many.askPacket(question);
    const texts = (udp.answers ?? []).map((answer) => JSON.stringify((answer as { data: unknown }).data));
    expect([udp.flag_tc, texts.length > 5, new Set(texts).size]).toEqual([true, true, texts.length]);
    const tcp = await many.askPacket(question, { transport: 'tcp' });
    expect([tcp.flag_tc, tcp.answers?.length]).toEqual([false, 60]);
  });

  test('SRV glue that does not fit -> left out whole, without TC', async () => {
    const catalog = makeCatalog();
    const endpoints = Array.from({ length: 20 }, (_, i) => ({ ip: `10.1.0.${i}`, hostname: `h${i}` }));
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', ports: ['sql:5432'], endpoints }] });
    syncAll(catalog);
    const reply = await new Asker(catalog).askPacket('_sql._tcp.db.shop.svc.clusterset.local SRV', {
      edns: { udpSize: 1232 },
    });
    expect(reply.flag_tc).toBe(false);
    expect(reply.answers).toHaveLength(20);
    expect(reply.additionals!.length).toBeLessThan(21);
  });

  test('class CHAOS -> version.bind and id.server, the rest refused', async () => {
    expect(await asker.ask('version.bind TXT CH')).toBe('"portolan"');
    expect(await asker.ask('id.server TXT CH')).toBe('"test-server"');
    expect(await asker.ask('something.else TXT CH')).toBe('REFUSED');
  });

  test('a client outside the ACL -> REFUSED with an extended error', async () => {
    const reply = await asker.askPacket(`${name} A`, { address: '192.0.2.1', edns: true });
    expect((reply as unknown as { rcode: string }).rcode).toBe('REFUSED');
    expect(extendedErrorOf(reply)).toMatch(/^18 this address is not among the clients/);
    expect(await asker.ask(`${name} A`, { address: '::ffff:127.0.0.1' })).toBe('243.0.0.7');
  });
});

describe('dns before the first sync', () => {
  test('SERVFAIL with "not ready" for every name, then answers; never NXDOMAIN for a name that exists', async () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
    const asker = new Asker(catalog);
    for (const question of [`${name} A`, 'web.shop.svc.cluster.local A', '7.0.96.10.in-addr.arpa PTR']) {
      const reply = await asker.askPacket(question, { edns: true });
      expect((reply as unknown as { rcode: string }).rcode).toBe('SERVFAIL');
      expect(extendedErrorOf(reply)).toMatch(/^14 /);
    }
    catalog.setSynced('imports');
    expect(await asker.ask(`${name} A`)).toBe('243.0.0.7');
    expect(await asker.ask('web.shop.svc.cluster.local A')).toBe('SERVFAIL');
    catalog.setSynced('services');
    expect(await asker.ask('web.shop.svc.cluster.local A')).toBe('NXDOMAIN');
  });

  test('reverse names -> only addresses that can be ours wait, all others are forwarded at once', async () => {
    const catalog = makeCatalog();
    const asked: string[] = [];
    const exchange: Exchange = {
      ask: async ({ message }) => {
        const query = packet.decode(message);
        asked.push(query.questions![0]!.name);
        return packet.encode({ type: 'response', flags: 3, questions: query.questions });
      },
      close: () => {},
    };
    const asker = new Asker(catalog, { exchange, config: { forward: { nameservers: ['192.0.2.53'] } } });
    const foreign = ['8.8.8.8.in-addr.arpa', `${'0.'.repeat(24)}8.b.d.0.1.0.0.2.ip6.arpa`];
    const waiting = ['7.0.96.10.in-addr.arpa', `${'0.'.repeat(28)}0.0.d.f.ip6.arpa`, '96.10.in-addr.arpa'];
    for (const name of foreign) expect(await asker.ask(`${name} PTR`)).toBe('NXDOMAIN');
    for (const name of waiting) expect(await asker.ask(`${name} PTR`)).toBe('SERVFAIL');
    expect(asked).toEqual(foreign);
    syncAll(catalog);
    expect(await asker.ask(`${waiting[0]} PTR`)).toBe('NXDOMAIN');
  });

  test('the home is away -> answers go on, marked stale', async () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
    syncAll(catalog);
    catalog.setStale('imports', true);
    const asker = new Asker(catalog);
    const reply = await asker.askPacket(`${name} A`, { edns: true });
    expect(reply.answers).toHaveLength(1);
    expect(extendedErrorOf(reply)).toBe('3');
    expect(extendedErrorOf(await asker.askPacket(`x${name} A`, { edns: true }))).toBe('19');
    catalog.setStale('imports', false);
    expect(extendedErrorOf(await asker.askPacket(`${name} A`, { edns: true }))).toBeUndefined();
  });
});
