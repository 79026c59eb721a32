// A federation's authority: seed 001's example and what was made precise since.

import { describe, expect, test } from 'vitest';
import { FederationTable, type FederationTableOptions } from '../catalog/federation/federation-table.ts';
import { NameTable } from '../catalog/names/name-table.ts';
import { formatShardKey, formatShardRecord, parseShardKey, parseShardRecord } from '../federation/rules/record.ts';
import { encodeSource, type SourceCluster } from './source/source-option.ts';
import { AuthorityAsker } from './testing/authority.ts';

const name = 'myservice.myns.myfederation.svc.federation';

/** The keys and values exactly as the seed prints them. */
const seedRecords: readonly [string, string][] = [
  ['/myfederation/myns/myservice/foo', '{\n    "externalIP": "104.32.64.128",\n    "clusterIP": "10.0.3.64",\n}'],
  ['/myfederation/myns/myservice/bar', '{\n    "externalIP": "104.32.64.130",\n    "clusterIP": "10.0.4.20",\n}'],
  ['/myfederation/myns/myservice/baz', '{\n    "externalIP": "108.120.45.12",\n    "clusterIP": "10.56.62.6",\n}'],
];

function authority(records: readonly (readonly [string, string])[], options: Partial<FederationTableOptions> = {}) {
  const table = new NameTable({ serial: 1 });
  const federation = new FederationTable({ table, ...options });
  for (const [key, value] of records) expect(federation.putText(key, value)).toBeUndefined();
  federation.setSynced();
  return { federation, table, asker: new AuthorityAsker(federation) };
}

const from = (cluster: string, more: Partial<SourceCluster> = {}) => encodeSource({ cluster, hops: 1, ...more });

describe('federation authority: equal addresses', () => {
  const shared = (records: readonly (readonly [string, string])[]) => authority(records).asker;

  test('two clusters behind one external address -> once, and first for the one it is not the own of', async () => {
    const place = (zone: string) => `"zone": "${zone}", "region": "eu"`;
    const asker = shared([
      ['/myfederation/myns/myservice/a', `{"externalIP": "192.0.2.1", "clusterIP": "10.0.0.1", ${place('1')}}`],
      ['/myfederation/myns/myservice/b', `{"externalIP": "192.0.2.1", "clusterIP": "10.0.0.2", ${place('2')}}`],
      ['/myfederation/myns/myservice/c', `{"externalIP": "192.0.2.3", "clusterIP": "10.0.0.3", ${place('3')}}`],
    ]);
    expect(await asker.ask(`${name} A`, { source: from('a') })).toBe('10.0.0.1, 192.0.2.1, 192.0.2.3');
    expect(await asker.ask(`${name} A`, { source: from('c') })).toBe('10.0.0.3, 192.0.2.1');
    expect(await asker.ask(`${name} A`, { source: from('x', { zone: '2', region: 'eu' }) })).toBe(
      '192.0.2.1, 192.0.2.3',
    );
  });

  test('three clusters behind one external address and a fourth far away -> once each, also the fourth', async () => {
    const asker = shared([
      ...['a', 'b', 'd'].map(
        (cluster) => [`/myfederation/myns/myservice/${cluster}`, '{"externalIP": "192.0.2.1", "zone": "1"}'] as const,
      ),
      ['/myfederation/myns/myservice/c', '{"externalIP": "192.0.2.3", "zone": "3"}'],
    ]);
    expect(await asker.ask(`${name} A`, { source: from('x', { zone: '1' }) })).toBe('192.0.2.1, 192.0.2.3');
    expect(await asker.ask(`${name} A`, { source: from('x', { zone: '3' }) })).toBe('192.0.2.3, 192.0.2.1');
  });

  test('more shards than fit -> all of the nearest, some of the others, and TC', async () => {
    const shard = (_: unknown, i: number) =>
      [`/myfederation/myns/myservice/c${i}`, `{"externalIP": "192.0.2.${i + 1}", "zone": "${i % 2}"}`] as const;
    const asker = shared(Array.from({ length: 100 }, shard));
    const { answers = [], flag_tc: isTruncated } = await asker.askPacket(`${name} A`, {
      source: from('x', { zone: '1' }),
    });
    const isNear = answers.map((answer) => Number((answer as { data: string }).data.split('.')[3]) % 2 === 0);
    expect([isTruncated, isNear.slice(0, 50).every(Boolean), isNear.slice(50).some(Boolean)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(answers.length).toBeLessThan(100);
    expect(answers.length).toBeGreaterThan(60);
  });

  test('one address in two spellings -> once', async () => {
    const asker = shared([
      [
        '/myfederation/myns/myservice/a',
        '{"externalIPs": ["2001:db8::1", "2001:DB8:0:0::1"], "clusterIP": "10.0.0.1"}',
      ],
    ]);
    expect(await asker.ask(`${name} AAAA`, { source: from('b') })).toBe('2001:db8::1');
  });
});

describe("federation authority: the seed's example", () => {
  const { asker } = authority(seedRecords);

  test.each([
    ['foo', '10.0.3.64, 104.32.64.130, 108.120.45.12'],
    ['bar', '10.0.4.20, 108.120.45.12, 104.32.64.128'],
    ['baz', '10.56.62.6, 104.32.64.130, 104.32.64.128'],
    ['elsewhere', '104.32.64.130, 108.120.45.12, 104.32.64.128'],
  ])(
    'asked from %s -> its cluster IP first, then the external addresses of the others: %s [001-04, 001-33, 001-39]',
    async (cluster, expected) => {
      expect(await asker.ask(`${name} A`, { source: from(cluster) })).toBe(expected);
    },
  );

  test('a bare cluster name in the option -> understood too', async () => {
    expect(await asker.ask(`${name} A`, { source: Buffer.from('foo') })).toMatch(/^10\.0\.3\.64, /);
  });

  test.each([
    [`bar.${name} A`, 'foo', '104.32.64.130'],
    [`bar.${name} A`, 'bar', '10.0.4.20'],
    [`qux.${name} A`, 'foo', 'NXDOMAIN'],
    [`${name} AAAA`, 'foo', 'NODATA'],
    ['other.myns.myfederation.svc.federation A', 'foo', 'NXDOMAIN'],
    ['myns.myfederation.svc.federation A', 'foo', 'NODATA'],
    ['myfederation.svc.federation A', 'foo', 'NODATA'],
    ['federation SOA', 'foo', 'SOA federation'],
    // Only in full: what a search list makes of it is not found.
    ['myservice.myns.svc.federation A [001-29, 001-40]', 'foo', 'NXDOMAIN'],
    [`${name}.myns.svc.federation A [001-41]`, 'foo', 'NXDOMAIN'],
  ])('ask %s from %s -> %s', async (question, cluster, expected) => {
    expect(await asker.ask(question, { source: from(cluster) })).toBe(expected);
  });
});

describe('federation authority', () => {
  const shard = (cluster: string, ip: string, more: Record<string, unknown> = {}) =>
    [
      `/fed/shop/web/${cluster}`,
      JSON.stringify({ externalIP: `104.0.0.${ip}`, clusterIP: `10.0.0.${ip}`, ...more }),
    ] as const;
  const question = 'web.shop.fed.svc.federation A';
  const placed = [
    shard('a1', '1', { zone: 'z1', region: 'eu' }),
    shard('a2', '2', { zone: 'z1', region: 'eu' }),
    shard('b1', '3', { zone: 'z2', region: 'eu' }),
    shard('c1', '4', { zone: 'z1', region: 'us' }),
  ];

  test('own cluster, same zone, same region, the rest -> in this order [001-01]', async () => {
    const { asker } = authority(placed);
    expect(await asker.ask(question, { source: from('a2') })).toBe('10.0.0.2, 104.0.0.1, 104.0.0.3, 104.0.0.4');
    expect(await asker.ask(question, { source: from('c1') })).toBe('10.0.0.4, 104.0.0.1, 104.0.0.2, 104.0.0.3');
  });

  test('a cluster without a shard -> its zone and region as it says them [001-03]', async () => {
    const { asker } = authority(placed);
    const source = from('new', { zone: 'z2', region: 'eu' });
    expect(await asker.ask(question, { source })).toBe('104.0.0.3, 104.0.0.1, 104.0.0.2, 104.0.0.4');
  });

  test('an unhealthy shard -> left out, and back when it is well', async () => {
    const { asker, federation } = authority([...placed, shard('a1', '1', { zone: 'z1', region: 'eu', ready: false })]);
    expect(await asker.ask(question, { source: from('a1') })).toBe('104.0.0.2, 104.0.0.3, 104.0.0.4');
    expect(await asker.ask(`a1.${question}`, { source: from('a1') })).toBe('NXDOMAIN');
    federation.putText(...(placed[0] as [string, string]));
    expect(await asker.ask(question, { source: from('a1') })).toBe('10.0.0.1, 104.0.0.2, 104.0.0.3, 104.0.0.4');
  });

  test('a cluster whose lease has run out -> gone from every answer, and back with its lease', async () => {
    const { asker, federation } = authority(placed);
    federation.setClusterAlive('a1', false);
    expect(await asker.ask(question, { source: from('a2') })).toBe('10.0.0.2, 104.0.0.3, 104.0.0.4');
    federation.setClusterAlive('a1', true);
    expect(await asker.ask(question, { source: from('a2') })).toBe('10.0.0.2, 104.0.0.1, 104.0.0.3, 104.0.0.4');
  });

  test('a shard without an external address -> only for its own cluster', async () => {
    const { asker } = authority([shard('a1', '1'), ['/fed/shop/web/a2', '{"clusterIP": "10.0.0.2"}']]);
    expect(await asker.ask(question, { source: from('a2') })).toBe('10.0.0.2, 104.0.0.1');
    expect(await asker.ask(question, { source: from('a1') })).toBe('10.0.0.1');
    expect(await asker.ask(`a2.${question}`, { source: from('a1') })).toBe('NODATA');
  });

  test('all shards unhealthy -> NODATA, for the service exists; removed -> NXDOMAIN', async () => {
    const { asker, federation } = authority([shard('a1', '1', { ready: false })]);
    expect(await asker.ask(question, { source: from('a1') })).toBe('NODATA');
    federation.removeText('/fed/shop/web/a1');
    expect(await asker.ask(question, { source: from('a1') })).toBe('NXDOMAIN');
    expect(await asker.ask('svc.federation A')).toBe('NXDOMAIN');
  });

  test.each([
    ['ordered', 'a2', '10.0.0.2, 104.0.0.1, 104.0.0.3, 104.0.0.4'],
    ['nearest-only', 'a2', '10.0.0.2'],
    ['local-only-if-healthy', 'a2', '10.0.0.2'],
    ['nearest-only', 'b2', '104.0.0.3'],
    ['local-only-if-healthy', 'b2', '104.0.0.3, 104.0.0.1, 104.0.0.2, 104.0.0.4'],
  ] as const)('policy %s, asked from %s -> %s [001-34]', async (policy, cluster, expected) => {
    const { asker, federation, table } = authority(placed);
    table.places.place({ id: 'b2', zone: 'z2', region: 'eu' });
    federation.setPolicy('fed', policy);
    expect(await asker.ask(question, { source: from(cluster) })).toBe(expected);
  });

  test('SRV -> one per shard and port, nearest first, pointing at the shard, with its address beside it', async () => {
    const ports = [{ name: 'http', port: 80 }];
    const { asker } = authority([shard('a1', '1', { ports }), shard('b1', '2', { ports })]);
    const srv = '_http._tcp.web.shop.fed.svc.federation SRV';
    const target = (cluster: string) => `80 ${cluster}.web.shop.fed.svc.federation`;
    expect(await asker.ask(srv, { source: from('b1') })).toBe(`${target('b1')}, ${target('a1')}`);
    const reply = await asker.askPacket(srv, { source: from('b1') });
    expect(reply.additionals!.filter(({ type }) => type === 'A').map(({ data }) => data)).toEqual([
      '10.0.0.2',
      '104.0.0.1',
    ]);
  });

  test('lists and IPv6 -> all of them', async () => {
    const { asker } = authority([
      [
        '/fed/shop/web/a1',
        '{"externalIPs": ["104.0.0.1", "104.0.0.2", "2001:db8::1"], "clusterIPs": ["10.0.0.1", "fd00::1"]}',
      ],
    ]);
    expect(await asker.ask(question, { source: from('b1') })).toBe('104.0.0.1, 104.0.0.2');
    expect(await asker.ask('web.shop.fed.svc.federation AAAA', { source: from('b1') })).toBe('2001:db8::1');
    expect(await asker.ask('web.shop.fed.svc.federation AAAA', { source: from('a1') })).toBe('fd00::1');
  });

  test('the option from a peer that may not send it -> dropped: no cluster IP for a liar [001-31]', async () => {
    const { asker } = authority(placed);
    expect(await asker.ask(question, { source: from('a2'), address: '127.0.0.2' })).toBe(
      '104.0.0.1, 104.0.0.2, 104.0.0.3, 104.0.0.4',
    );
  });

  test('the option over DoT from a listed certificate -> believed', async () => {
    const { asker } = authority(placed);
    const options = { source: from('a2'), address: '127.0.0.2', transport: 'tls' as const };
    expect(await asker.ask(question, { ...options, identity: 'resolver-a2' })).toMatch(/^10\.0\.0\.2, /);
    expect(await asker.ask(question, { ...options, identity: 'somebody' })).toMatch(/^104\./);
  });

  test('another suffix -> the same names under it', async () => {
    const { asker } = authority([shard('a1', '1')], { suffix: 'fed.example.org' });
    expect(await asker.ask('web.shop.fed.svc.fed.example.org A', { source: from('a1') })).toBe('10.0.0.1');
    expect(await asker.ask(question)).toBe('REFUSED');
  });

  test('suffix, TTL and option change while it runs -> the names lie there, the old ones nowhere', async () => {
    const { asker, federation, table } = authority([shard('a1', '1')]);
    const settings = (sourceOption = 65_001) => ({ federationZones: [federation.zone], sourceOption });
    const size = table.size;
    expect(federation.setZone({ suffix: 'federation' })).toBe(false);
    expect(federation.setZone({ suffix: 'fed.example.org', ttlSeconds: 30 })).toBe(true);
    asker.service.changeZones(settings());
    const moved = 'web.shop.fed.svc.fed.example.org A';
    expect(await asker.askPacket(moved, { source: from('a1') })).toMatchObject({
      answers: [{ data: '10.0.0.1', ttl: 30 }],
    });
    expect(await asker.ask('svc.fed.example.org A')).toBe('NODATA');
    expect(await asker.ask('fed.example.org SOA')).toBe('SOA fed.example.org');
    expect(await asker.ask(question)).toBe('REFUSED');
    expect(table.size).toBe(size);
    expect(table.get('web.shop.fed.svc.federation')).toBeUndefined();
    federation.setZone({ suffix: 'fed.example.org', ttlSeconds: 7 });
    asker.service.changeZones(settings(65_002));
    // The old code says nothing any more.
    expect(await asker.askPacket(moved, { source: from('a1') })).toMatchObject({
      answers: [{ data: '104.0.0.1', ttl: 7 }],
    });
  });

  test('before the records have been read -> SERVFAIL', async () => {
    const federation = new FederationTable({ table: new NameTable({ serial: 1 }) });
    expect(await new AuthorityAsker(federation).ask(question)).toBe('SERVFAIL');
  });

  test('a record that cannot be read -> its shard goes, the others stay, and the reason is told', async () => {
    const { asker, federation } = authority([shard('a1', '1'), shard('b1', '2')]);
    expect(federation.putText('/fed/shop/web/a1', 'nonsense')).toMatch(/want JSON/);
    expect(federation.putText('/fed/shop', '{}')).toMatch(/want \/<federation>/);
    expect(await asker.ask(question, { source: from('a1') })).toBe('104.0.0.2');
  });
});

test("federation record: written and read back -> the same; the plain form has only the seed's two fields [001-28]", () => {
  const plain = { clusterIPs: ['10.0.0.1'], externalIPs: ['104.0.0.1'], hostnames: [], ports: [], isReady: true };
  expect(formatShardRecord(plain)).toBe('{"externalIP":"104.0.0.1","clusterIP":"10.0.0.1"}');
  const full = {
    ...plain,
    hostnames: ['lb.example'],
    hostnameRules: { allowedRanges: ['203.0.113.0/24'], virtualRanges: ['243.0.0.0/8'] },
    zone: 'z',
    region: 'r',
    isReady: false,
    ports: [{ name: 'http', protocol: 'TCP' as const, port: 80 }],
  };
  expect(parseShardRecord(formatShardRecord(full))).toEqual(full);
  const key = { federation: 'f', namespace: 'n', service: 's', cluster: 'c' };
  expect(parseShardKey(formatShardKey(key))).toEqual(key);
});
