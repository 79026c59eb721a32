// ExternalName services whose names lie outside our zones: followed upstream, through stub zones, and left alone.

import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { Asker, addImport, addService, describeAnswer, extendedErrorOf, makeCatalog, syncAll } from './testing/ask.ts';
import { replyTo } from './testing/edge/test-net.ts';
import type { Exchange } from './upstream/exchange.ts';

/** Addresses, or an alias and the addresses behind it. */
type Records = Record<string, string | readonly string[]>;

/** An upstream that knows these names. */
function upstream(records: Records): Exchange & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    ask: async ({ message, server }) => {
      const query = packet.decode(Buffer.from(message));
      const [question] = query.questions!;
      asked.push(`${question!.name} at ${server.host}`);
      const found = records[question!.name];
      if (found === undefined) {
        const data = {
          mname: 'ns.example',
          rname: 'host.example',
          serial: 1,
          refresh: 1,
          retry: 1,
          expire: 1,
          minimum: 7,
        };
        const authorities = [{ type: 'SOA', name: 'example', ttl: 60, data }] as never;
        return packet.encode({ type: 'response', id: 0, flags: 3, questions: query.questions, authorities });
      }
      const name = question!.name;
      const [alias, ...behind] = typeof found === 'string' ? [found] : found;
      const isAlias = !/^[0-9.]+$/.test(alias!);
      const addresses = (isAlias ? behind : [alias, ...behind]).map((data) => ({
        ...{ type: 'A' as const, name: isAlias ? alias! : name, ttl: 60 },
        data: data!,
      }));
      const answers = [...(isAlias ? [{ type: 'CNAME' as const, name, ttl: 60, data: alias! }] : []), ...addresses];
      return packet.encode({ type: 'response', id: 0, questions: query.questions, answers: answers as never });
    },
    close: () => {},
  };
}

function setUp(records: Records, options: { isForwarding?: boolean } = {}) {
  const { isForwarding = true } = options;
  const exchange = upstream(records);
  const catalog = makeCatalog();
  addService(catalog, 'shop/partner', { externalName: 'api.partner.example' });
  addService(catalog, 'shop/fed', { externalName: 'web.shop.world.svc.federation' });
  addService(catalog, 'shop/set', { externalName: 'web.shop.svc.clusterset.local' });
  addService(catalog, 'shop/nobody', { externalName: 'no.shop.svc.clusterset.local' });
  addImport(catalog, 'shop/web', { ips: ['243.0.0.1'] });
  syncAll(catalog);
  const asker = new Asker(catalog, {
    exchange,
    stubZones: [{ zone: 'world.svc.federation', nameservers: ['192.0.2.99'], sendsSource: true }],
    config: isForwarding ? { forward: { nameservers: ['192.0.2.53'] } } : {},
  });
  return { asker, exchange };
}

describe('ExternalName outside our zones', () => {
  test('upstream knows its target -> the alias, then the addresses', async () => {
    const { asker } = setUp({ 'api.partner.example': '203.0.113.7' });
    const reply = await asker.askPacket('partner.shop.svc.cluster.local A');
    expect(reply.answers).toMatchObject([
      { type: 'CNAME', name: 'partner.shop.svc.cluster.local', data: 'api.partner.example', ttl: 5 },
      { type: 'A', name: 'api.partner.example', data: '203.0.113.7', ttl: 60 },
    ]);
  });

  test('its target has more addresses than the client takes -> the alias and as many as fit, with TC', async () => {
    const many = Array.from({ length: 60 }, (_, at) => `203.0.113.${at + 1}`);
    const { asker } = setUp({ 'api.partner.example': many });
    const reply = await asker.askPacket('partner.shop.svc.cluster.local A');
    expect(reply.flag_tc).toBe(true);
    expect(reply.answers?.[0]).toMatchObject({ type: 'CNAME', data: 'api.partner.example' });
    expect(reply.answers!.length).toBeGreaterThan(10);
    expect(reply.answers!.length).toBeLessThan(60);
    const whole = await asker.askPacket('partner.shop.svc.cluster.local A', { transport: 'tcp' });
    expect([whole.flag_tc, whole.answers?.length]).toEqual([false, 61]);
  });

  test('its target is an alias itself -> the whole chain', async () => {
    const { asker } = setUp({ 'api.partner.example': ['edge.cdn.example', '203.0.113.8'] });
    expect(await asker.ask('partner.shop.svc.cluster.local A')).toBe(
      'api.partner.example, edge.cdn.example, 203.0.113.8',
    );
  });

  test('its target lies in a stub zone -> asked there', async () => {
    const { asker, exchange } = setUp({ 'web.shop.world.svc.federation': '10.1.0.1' });
    expect(await asker.ask('fed.shop.svc.cluster.local A')).toBe('web.shop.world.svc.federation, 10.1.0.1');
    expect(exchange.asked).toEqual(['web.shop.world.svc.federation at 192.0.2.99']);
  });

  test('its target is ours and missing -> NXDOMAIN with the SOA of the zone where it is missing, nobody is asked', async () => {
    const { asker, exchange } = setUp({});
    const reply = await asker.askPacket('nobody.shop.svc.cluster.local A');
    expect(describeAnswer(reply)).toBe('NXDOMAIN no.shop.svc.clusterset.local');
    expect(reply.authorities).toMatchObject([
      { type: 'SOA', name: 'clusterset.local', data: { mname: 'ns.dns.clusterset.local', minimum: 5 } },
    ]);
    expect(exchange.asked).toEqual([]);
  });

  test('its target is ours without such a record -> the alias and the SOA of the zone it leads to', async () => {
    const { asker } = setUp({});
    const reply = await asker.askPacket('set.shop.svc.cluster.local AAAA');
    expect(describeAnswer(reply)).toBe('web.shop.svc.clusterset.local');
    expect(reply.authorities).toMatchObject([{ type: 'SOA', name: 'clusterset.local' }]);
  });

  test('upstream says NXDOMAIN -> the alias, NXDOMAIN and the SOA that came with it', async () => {
    const { asker } = setUp({});
    const reply = await asker.askPacket('partner.shop.svc.cluster.local A');
    expect(describeAnswer(reply)).toBe('NXDOMAIN api.partner.example');
    expect(reply.authorities).toMatchObject([
      { type: 'SOA', name: 'example', data: { mname: 'ns.example', minimum: 7 } },
    ]);
  });

  test('its target is ours -> answered from the catalog, nobody is asked', async () => {
    const { asker, exchange } = setUp({});
    expect(await asker.ask('set.shop.svc.cluster.local A')).toBe('web.shop.svc.clusterset.local, 243.0.0.1');
    expect(exchange.asked).toEqual([]);
  });

  test('upstream says there is no such name -> NXDOMAIN with the alias', async () => {
    const { asker } = setUp({});
    expect(await asker.ask('partner.shop.svc.cluster.local A')).toBe('NXDOMAIN api.partner.example');
  });

  test('upstream sends a record that cannot be read -> SERVFAIL with an extended error, asked and from the cache', async () => {
    const { asker, exchange } = setUp({});
    // An alias with two bytes behind its target.
    exchange.ask = async ({ message }) => replyTo(message, ['c00c000500010000003c0005016100ffff']);
    for (const round of ['asked', 'cached']) {
      const reply = await asker.askPacket('partner.shop.svc.cluster.local A', { edns: true });
      expect([round, describeAnswer(reply)]).toEqual([round, 'SERVFAIL api.partner.example']);
      expect(extendedErrorOf(reply)).toMatch(/^22 /);
    }
  });

  test('upstream is silent -> SERVFAIL with an extended error', async () => {
    const { asker, exchange } = setUp({});
    exchange.ask = () => Promise.reject(new Error('timed out'));
    const reply = await asker.askPacket('partner.shop.svc.cluster.local A', { edns: true });
    expect((reply as unknown as { rcode: string }).rcode).toBe('SERVFAIL');
    expect(extendedErrorOf(reply)).toMatch(/^22 /);
  });

  test('nothing is forwarded -> the alias alone', async () => {
    const { asker } = setUp({}, { isForwarding: false });
    expect(await asker.ask('partner.shop.svc.cluster.local A')).toBe('api.partner.example');
  });
});
