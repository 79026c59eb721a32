import { describe, expect, test } from 'vitest';
import { createMetrics } from '../base/metrics.ts';
import { FederationTable } from '../catalog/federation-table.ts';
import { parseShardRecord } from '../model/federation-record.ts';
import { formatExplanation } from './explain.ts';
import { explain } from './explainer.ts';
import { observeChanges, registerDnsMetrics } from './metrics.ts';
import { Asker, addImport, makeCatalog, makeSlice, syncAll } from './testing/ask.ts';
import { defaultSourceOption } from './wire.ts';

const clock = { wallMs: () => 0, monotonicMs: () => 6000 };

function setUp() {
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
    config: { federationZones: [federation.zone], peers: { ranges: ['127.0.0.1/32'], identities: [] } },
  });
  const options = {
    service: asker.service,
    clock,
    catalog,
    federations: [federation],
    sourceOption: defaultSourceOption,
  };
  return {
    asker,
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
    expect(lines).toContain('    ServiceImport shop/db, revision 7, 5.0 s old');
    expect(lines).toContain('    EndpointSlice shop/db-east, cluster east, revision 7, 5.0 s old');
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
    expect(text).toContain('shard /fed/shop/web/west, cluster west, revision 77, 5.0 s old');
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

  test('a type there is no such -> an error that names those there are', async () => {
    await expect(why('db.shop.svc.clusterset.local', 'SPF')).rejects.toThrow(/type SPF is not one of/);
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
    catalog.upsertEndpointSlice(makeSlice('shop/db', { cluster: 'west', endpoints: ['10.2.0.2'] }));
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
        type: 1,
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
