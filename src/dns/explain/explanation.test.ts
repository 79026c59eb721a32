import { describe, expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../base/dns/message.ts';
import { createMetrics } from '../../base/metrics.ts';
import { FederationTable } from '../../catalog/federation/federation-table.ts';
import { parseShardRecord } from '../../federation/rules/record.ts';
import type { ChainConfig } from '../chain/chain.ts';
import { defaultSourceOption } from '../message/wire.ts';
import { observeChanges, registerDnsMetrics } from '../metrics/metrics.ts';
import { Asker, addImport, addService, makeCatalog, makeSlice, syncAll } from '../testing/ask.ts';
import type { Exchange } from '../upstream/exchange.ts';
import { explain } from './explainer.ts';
import { formatExplanation } from './explanation.ts';

const clock = { wallMs: () => 0, monotonicMs: () => 6000 };

/** The answer of upstream servers. */
const elsewhere: Exchange = {
  ask: async ({ message }) => {
    const query = decodeMessage(message);
    const answers = [
      { name: query.questions[0]!.name, type: 1, class: 1, ttl: 60, rdata: Buffer.from([203, 0, 113, 7]) },
    ];
    return encodeMessage({ ...query, flags: 0x8180, answers, additionals: [] });
  },
  close: () => {},
};

function setUp(config: Partial<ChainConfig> = {}) {
  const catalog = makeCatalog();
  const federation = new FederationTable({ table: catalog.table });
  const west = { federation: 'fed', namespace: 'shop', service: 'web', cluster: 'west' };
  const record = parseShardRecord('{"externalIP": "104.0.0.1", "clusterIP": "10.0.0.1"}')!;
  federation.upsertShard(west, record, { revision: '77', seenMs: 1000 });
  federation.putText('/fed/shop/web/east', '{"externalIP": "104.0.0.2", "clusterIP": "10.0.0.2", "ready": false}');
  federation.setSynced();
  addImport(catalog, 'shop/db', {
    type: 'Headless',
    slices: [
      { cluster: 'east', endpoints: ['10.1.0.1', { ip: '10.1.0.2', ready: false }] },
      { cluster: 'west', endpoints: ['10.2.0.1'] },
    ],
  });
  syncAll(catalog);
  const asker = new Asker(catalog, {
    config: { federationZones: [federation.zone], trusted: { ranges: ['127.0.0.1/32'], identities: [] }, ...config },
    exchange: elsewhere,
  });
  const options = {
    service: asker.service,
    clock,
    catalog,
    federations: [federation],
    sourceOption: defaultSourceOption,
    forwardTo: config.forward?.nameservers ?? [],
  };
  return {
    asker,
    federation,
    catalog,
    why: async (name: string, type = 'A', from?: string) =>
      formatExplanation(await explain(options, { name, type, from })),
  };
}

describe('explain', () => {
  const { why } = setUp();

  test('a headless import -> import, slice, cluster, revision and age behind each record, and what was left out', async () => {
    const lines = (await why('db.shop.svc.clusterset.local')).split('\n');
    expect(lines[0]).toBe('db.shop.svc.clusterset.local A from west: NOERROR by clusterset');
    expect(lines).toContain('  A 10.1.0.1  ttl 5');
    expect(lines).toContain('    ServiceImport shop/db, revision 7, 5s old');
    expect(lines).toContain('    EndpointSlice shop/db-east, cluster east, revision 7, 5s old');
    expect(lines).toContain('  left out: endpoint 10-1-0-2 in slice db-east of cluster east: not ready');
  });

  test('a name that does not exist -> says which object is missing', async () => {
    expect(await why('missing.shop.svc.clusterset.local')).toBe(
      'missing.shop.svc.clusterset.local A from west: NXDOMAIN by clusterset\n  no records\n' +
        '  left out: missing.shop.svc.clusterset.local: there is no ServiceImport shop/missing\n',
    );
  });

  test('the address of a whole import -> the slices of every cluster that stands behind it', async () => {
    const { why, catalog } = setUp();
    addImport(catalog, 'shop/web', {
      ips: ['243.0.0.1'],
      ports: ['http:80'],
      slices: [
        { cluster: 'east', endpoints: ['10.1.0.1'] },
        { cluster: 'west', endpoints: [{ ip: '10.2.0.1', ready: false }] },
      ],
    });
    catalog.flush();
    for (const type of ['A', 'SRV']) {
      const text = await why('web.shop.svc.clusterset.local', type);
      expect(text).toContain('EndpointSlice shop/web-east, cluster east');
      expect(text).not.toContain('EndpointSlice shop/web-west');
    }
  });

  test('a name of an SRV record -> the slice its endpoint is in', async () => {
    const { why, catalog } = setUp();
    addImport(catalog, 'shop/cart', {
      type: 'Headless',
      ports: ['http:80'],
      slices: [
        { cluster: 'east', ports: ['http:80'], endpoints: ['10.1.0.9'] },
        { cluster: 'west', ports: ['http:80'], endpoints: ['10.2.0.9'] },
      ],
    });
    catalog.flush();
    const lines = (await why('_http._tcp.cart.shop.svc.clusterset.local', 'SRV')).split('\n');
    const at = lines.findIndex((line) => line.includes('10-1-0-9.east.cart'));
    expect(lines.slice(at + 1, at + 3)).toEqual([
      expect.stringContaining('ServiceImport shop/cart'),
      expect.stringContaining('EndpointSlice shop/cart-east, cluster east'),
    ]);
  });

  test('a cluster asked for that a cluster zone knows nothing of -> said to be seen from here', async () => {
    const { why } = setUp();
    expect(await why('db.shop.svc.clusterset.local', 'A', 'south')).toContain('A from west');
  });

  test('a federated name -> the shards, from the cluster that is asked for', async () => {
    const text = await why('web.shop.fed.svc.federation', 'A', 'west');
    expect(text).toContain('A 10.0.0.1');
    expect(text).toContain('shard /fed/shop/web/west, cluster west, revision 77, 5s old');
    expect(text).toContain('left out: shard in cluster east: not healthy');
    expect(await why('web.shop.fed.svc.federation', 'A', 'south')).toContain('A 104.0.0.1');
  });

  test('a federated name that no cluster exports -> said so', async () => {
    expect(await why('none.shop.fed.svc.federation', 'A', 'west')).toBe(
      'none.shop.fed.svc.federation A from west: NXDOMAIN by authority\n  no records\n' +
        '  left out: shop/none: no cluster of federation fed exports it\n',
    );
  });

  test('a name nobody holds -> REFUSED, with the reason', async () => {
    expect(await why('example.com')).toContain('REFUSED by refuse\n  extended error 18');
  });

  test('something that is no type -> an error that says what is', async () => {
    await expect(why('db.shop.svc.clusterset.local', 'ADDRESS')).rejects.toThrow(
      /type ADDRESS is not a record type; want A, SRV or another, or TYPE65/,
    );
    await expect(why('db.shop.svc.clusterset.local', 'TYPE65536')).rejects.toThrow(/is not a record type/);
  });

  test.each([
    ['MX', 'MX'],
    ['https', 'HTTPS'],
    ['CAA', 'CAA'],
    ['TYPE257', 'CAA'],
    ['type1234', 'TYPE1234'],
  ])('type %s -> asked for, and why there is none', async (type, shown) => {
    const text = await why('db.shop.svc.clusterset.local', type);
    expect(text).toContain(`db.shop.svc.clusterset.local ${shown} from west: NOERROR by clusterset`);
    expect(text).toContain(
      `left out: db.shop.svc.clusterset.local: ServiceImport shop/db has no record of type ${shown}`,
    );
  });

  test('SOA and SRV -> all their fields in words', async () => {
    const { why, catalog } = setUp();
    addImport(catalog, 'shop/web', { ips: ['243.0.0.1'], ports: ['http:80'] });
    catalog.flush();
    expect(await why('clusterset.local', 'SOA')).toMatch(
      / {2}SOA ns\.dns\.clusterset\.local hostmaster\.clusterset\.local \d+ 7200 1800 86400 5 {2}ttl 5/,
    );
    expect(await why('_http._tcp.web.shop.svc.clusterset.local', 'SRV')).toContain(
      '  SRV 0 1 80 web.shop.svc.clusterset.local  ttl 5',
    );
  });

  test('an ExternalName -> the alias from its Service, what is behind it from where that comes from', async () => {
    const { why, catalog } = setUp({ forward: { nameservers: ['192.0.2.53'] } });
    addService(catalog, 'shop/inner', { externalName: 'db.shop.svc.clusterset.local' });
    addService(catalog, 'shop/outer', { externalName: 'api.partner.example' });
    catalog.flush();
    const inner = (await why('inner.shop.svc.cluster.local')).split('\n');
    expect(inner.slice(1, 5)).toEqual([
      '  CNAME db.shop.svc.clusterset.local  ttl 5',
      expect.stringContaining('Service shop/inner'),
      expect.stringMatching(/^ {2}db\.shop\.svc\.clusterset\.local A 10\.\d\.0\.1 {2}ttl 5/),
      expect.stringContaining('ServiceImport shop/db'),
    ]);
    const outer = (await why('outer.shop.svc.cluster.local')).split('\n');
    expect(outer.slice(1, 5)).toEqual([
      '  CNAME api.partner.example  ttl 5',
      expect.stringContaining('Service shop/outer'),
      '  api.partner.example A 203.0.113.7  ttl 60',
      '    upstream 192.0.2.53',
    ]);
  });

  test('a headless service without a ready endpoint -> said so', async () => {
    const { why, catalog } = setUp();
    addService(catalog, 'shop/empty', {});
    catalog.flush();
    expect(await why('empty.shop.svc.cluster.local')).toContain(
      'left out: empty.shop.svc.cluster.local: Service shop/empty has no address of its own and no ready endpoint in 0 EndpointSlices',
    );
  });

  test('the name of a cluster while these are switched off -> said so, and how to switch them on', async () => {
    const { why, catalog } = setUp();
    expect(await why('east.db.shop.svc.clusterset.local')).toMatch(
      /ServiceImport shop\/db is in cluster east, but names of clusters are switched off; --cluster-names/,
    );
    catalog.setClusterNames(true);
    expect(await why('east.db.shop.svc.clusterset.local')).toContain('A 10.1.0.1');
    expect(await why('north.db.shop.svc.clusterset.local')).toContain(
      'ServiceImport shop/db has no such host, port or',
    );
  });

  test('shards -> how near each is to who asks, and which the policy leaves out', async () => {
    const { why, federation } = setUp();
    const put = (cluster: string, n: number, zone: string, region: string) =>
      federation.putText(
        `/fed/shop/near/${cluster}`,
        `{"externalIP": "104.0.1.${n}", "clusterIP": "10.0.1.${n}", "zone": "${zone}", "region": "${region}"}`,
      );
    put('a', 1, 'a1', 'eu');
    put('b', 2, 'a1', 'eu');
    put('c', 3, 'a2', 'eu');
    put('d', 4, 'x1', 'us');
    const records = (text: string) => text.split('\n').filter((line) => line.startsWith('  A '));
    expect(records(await why('near.shop.fed.svc.federation', 'A', 'a'))).toEqual([
      '  A 10.0.1.1  ttl 5  own cluster',
      '  A 104.0.1.2  ttl 5  same zone',
      '  A 104.0.1.3  ttl 5  same region',
      '  A 104.0.1.4  ttl 5  elsewhere',
    ]);
    federation.setPolicy('fed', 'nearest-only');
    const nearest = await why('near.shop.fed.svc.federation', 'A', 'a');
    expect(records(nearest)).toEqual(['  A 10.0.1.1  ttl 5  own cluster']);
    expect(nearest).toContain('left out: shard in cluster d: elsewhere, and policy nearest-only stops at own cluster');
  });
});

describe('what the server tells of itself', () => {
  test('metrics -> queries by zone and rcode, time per answer by zone, time from change to answer', async () => {
    const { asker, catalog } = setUp();
    const metrics = createMetrics();
    registerDnsMetrics({ metrics, counters: () => [asker.counters], zones: () => catalog.zones });
    observeChanges({ metrics, catalog, clock });
    await asker.ask('db.shop.svc.clusterset.local A');
    await asker.ask('missing.shop.svc.clusterset.local A');
    await asker.ask('example.com A');
    catalog.facts.upsertEndpointSlice(makeSlice('shop/db', { cluster: 'west', endpoints: ['10.2.0.2'] }));
    catalog.flush();
    const text = await metrics.text();
    expect(text).toContain('portolan_dns_queries_total{zone="clusterset.local",rcode="NOERROR"} 1');
    expect(text).toContain('portolan_dns_queries_total{zone="clusterset.local",rcode="NXDOMAIN"} 1');
    expect(text).toContain('portolan_dns_queries_total{zone="other",rcode="REFUSED"} 1');
    expect(text).toContain('portolan_dns_query_seconds_count{zone="clusterset.local"} 2');
    expect(text).toContain('portolan_dns_query_seconds_count{zone="other"} 1');
    expect(text).toContain('portolan_dns_query_seconds_bucket{zone="clusterset.local",le="+Inf"} 2');
    expect(text).not.toContain('portolan_dns_query_seconds_count{zone="cluster.local"}');
    expect(text).toContain('portolan_dns_change_to_answer_seconds_count 1');
  });

  test('query log -> a line per query while it is on', async () => {
    const { asker, catalog } = setUp();
    await asker.ask('db.shop.svc.clusterset.local A');
    expect(asker.lines).toEqual([]);
    catalog.table.setQueryLog(true);
    await asker.ask('db.shop.svc.clusterset.local A');
    expect(asker.lines).toMatchObject([
      {
        client: '127.0.0.1:5353',
        name: 'db.shop.svc.clusterset.local',
        type: 'A',
        rcode: 'NOERROR',
        answers: 2,
        handler: 'clusterset',
      },
    ]);
    catalog.table.setQueryLog(false);
    await asker.ask('db.shop.svc.clusterset.local A');
    expect(asker.lines).toHaveLength(1);
  });
});
