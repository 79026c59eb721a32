// Every row of the clusterset DNS table (schema 1.0.0), as text.

import { describe, expect, test } from 'vitest';
import { Asker, addImport, addService, makeCatalog, makeSlice, syncAll } from './testing/ask.ts';

function clusterset(options: { hasClusterNames?: boolean } = {}) {
  const catalog = makeCatalog({ cluster: { id: 'west' }, ...options });
  addImport(catalog, 'shop/checkout', {
    ips: ['243.0.0.7', 'fd00:243::7'],
    ports: ['http:80', 'dns:53/UDP', 'dns-tcp:53/TCP', ':9999'],
    slices: [
      { cluster: 'east', ports: ['http:8080'], endpoints: ['10.1.0.1'] },
      { cluster: 'west', ports: ['http:8080'], endpoints: ['10.2.0.1'] },
    ],
  });
  addImport(catalog, 'shop/db', {
    type: 'Headless',
    ports: ['sql:5432'],
    slices: [
      {
        cluster: 'east',
        ports: ['sql:5432', ':7000'],
        endpoints: [
          { ip: '10.1.0.2', hostname: 'db-0' },
          { ip: '10.1.0.3', hostname: 'db-1', ready: false },
        ],
      },
      { cluster: 'east', name: 'db-east-v6', ports: ['sql:5432'], endpoints: [{ ip: 'fd00::2', hostname: 'db-0' }] },
      { cluster: 'south.eu', ports: ['sql:5433'], endpoints: ['10.3.0.2', { ip: '10.3.0.3', hostname: 'db-0' }] },
    ],
  });
  addImport(catalog, 'shop/idle', {
    type: 'Headless',
    slices: [{ cluster: 'east', endpoints: [{ ip: '10.1.0.9', ready: false }] }],
  });
  addImport(catalog, 'empty/idle', { type: 'Headless' });
  syncAll(catalog);
  return { catalog, asker: new Asker(catalog) };
}

const sorted = (text: string) => text.split(', ').sort().join(', ');

describe('clusterset.local', () => {
  const { asker } = clusterset();
  const svc = 'svc.clusterset.local';

  test.each([
    // the zone itself
    ['dns-version.clusterset.local TXT [003-57]', '"1.0.0"'],
    ['clusterset.local SOA', 'SOA clusterset.local'],
    ['clusterset.local NS', 'ns.dns.clusterset.local'],
    ['clusterset.local A', 'NODATA'],
    [`${svc} A`, 'NODATA'],
    [`shop.${svc} A`, 'NODATA'],
    [`nowhere.${svc} A`, 'NXDOMAIN'],
    [`empty.${svc} A`, 'NXDOMAIN'],
    // ClusterSetIP
    [`checkout.shop.${svc} A [003-19, 003-56]`, '243.0.0.7'],
    [`checkout.shop.${svc} AAAA`, 'fd00:243::7'],
    [`CheckOut.Shop.SVC.clusterSET.local A`, '243.0.0.7'],
    [`checkout.shop.${svc} MX`, 'NODATA'],
    [`missing.shop.${svc} A`, 'NXDOMAIN'],
    [`checkout.other.${svc} A`, 'NXDOMAIN'],
    [`_http._tcp.checkout.shop.${svc} SRV [002-15, 003-57]`, `80 checkout.shop.${svc}`],
    [`_dns._udp.checkout.shop.${svc} SRV`, `53 checkout.shop.${svc}`],
    [`_http._tcp.checkout.shop.${svc} A`, 'NODATA'],
    [`_tcp.checkout.shop.${svc} SRV`, 'NODATA'],
    [`_http._udp.checkout.shop.${svc} SRV`, 'NXDOMAIN'],
    [`_missing._tcp.checkout.shop.${svc} SRV`, 'NXDOMAIN'],
    [`checkout.shop.${svc} SRV`, `53 checkout.shop.${svc}, 80 checkout.shop.${svc}`],
    [`east.checkout.shop.${svc} A`, 'NXDOMAIN'],
    [`10-1-0-1.east.checkout.shop.${svc} A`, 'NXDOMAIN'],
    // Headless
    [`db.shop.${svc} A [003-59]`, '10.1.0.2, 10.3.0.2, 10.3.0.3'],
    [`db.shop.${svc} AAAA`, 'fd00::2'],
    [`db-0.east.db.shop.${svc} A [003-60]`, '10.1.0.2'],
    [`db-0.east.db.shop.${svc} AAAA`, 'fd00::2'],
    [`db-1.east.db.shop.${svc} A [003-62]`, 'NXDOMAIN'],
    [`10-3-0-2.south.eu.db.shop.${svc} A`, '10.3.0.2'],
    [`db-0.south.eu.db.shop.${svc} A [003-61]`, '10.3.0.3'],
    [
      `_sql._tcp.db.shop.${svc} SRV`,
      `5432 db-0.east.db.shop.${svc}, 5433 10-3-0-2.south.eu.db.shop.${svc}, 5433 db-0.south.eu.db.shop.${svc}`,
    ],
    [
      `db.shop.${svc} SRV`,
      `5432 db-0.east.db.shop.${svc}, 5433 10-3-0-2.south.eu.db.shop.${svc}, 5433 db-0.south.eu.db.shop.${svc}`,
    ],
    // RFC 8020: names exist below it, so this one does; it has no records, as the specification wants.
    [`east.db.shop.${svc} A`, 'NODATA'],
    [`north.db.shop.${svc} A`, 'NXDOMAIN'],
    [`idle.shop.${svc} A`, 'NXDOMAIN'],
    // RFC 8482
    [`checkout.shop.${svc} ANY`, 'HINFO RFC8482'],
    [`missing.shop.${svc} ANY`, 'NXDOMAIN'],
  ])('ask %s -> %s', async (question, expected) => {
    expect(sorted(await asker.ask(question))).toBe(sorted(expected));
  });

  test('negative answers carry the SOA with the smaller of TTL and minimum (RFC 2308)', async () => {
    for (const question of [`missing.shop.${svc} A`, `checkout.shop.${svc} MX`]) {
      const reply = await asker.askPacket(question);
      expect(reply.answers).toEqual([]);
      const soa = reply.authorities?.[0] as { type: string; name: string; ttl: number; data: { minimum: number } };
      expect(soa).toMatchObject({ type: 'SOA', name: 'clusterset.local', ttl: 5, data: { minimum: 5 } });
      expect(reply.flag_aa).toBe(true);
    }
  });

  test('SRV answers bring the addresses of their targets, each once (RFC 2782)', async () => {
    const reply = await asker.askPacket(`checkout.shop.${svc} SRV`);
    const glue = (reply.additionals ?? []).map((record) => `${record.name} ${(record as { data: string }).data}`);
    expect(glue).toEqual([`checkout.shop.${svc} 243.0.0.7`, `checkout.shop.${svc} fd00:243::7`]);
  });

  test('the question comes back in the case it was asked in (0x20)', async () => {
    const reply = await asker.askPacket(`cHeCkOuT.shop.${svc} A`);
    expect(reply.questions?.[0]?.name).toBe(`cHeCkOuT.shop.${svc}`);
  });

  test('default TTL is 5 seconds', async () => {
    const reply = await asker.askPacket(`checkout.shop.${svc} A`);
    expect(reply.answers?.[0]).toMatchObject({ ttl: 5 });
  });
});

describe('clusterset.local with names of clusters', () => {
  const { asker, catalog } = clusterset({ hasClusterNames: true });
  const name = 'checkout.shop.svc.clusterset.local';

  test.each([
    [`east.${name} A`, '10.1.0.1'],
    [`west.${name} A`, '10.2.0.1'],
    [`north.${name} A`, 'NXDOMAIN'],
    // That cluster's own port, not the merged one.
    [`_http._tcp.east.${name} SRV [002-14]`, `8080 east.${name}`],
    [`${name} A`, '243.0.0.7'],
    ['south.eu.db.shop.svc.clusterset.local A', '10.3.0.2, 10.3.0.3'],
  ])('ask %s -> %s', async (question, expected) => {
    expect(sorted(await asker.ask(question))).toBe(expected);
  });

  test('switched off while it runs -> the names are gone and the rest stays', async () => {
    catalog.setClusterNames(false);
    expect(await asker.ask(`east.${name} A`)).toBe('NXDOMAIN');
    expect(await asker.ask(`${name} A`)).toBe('243.0.0.7');
    catalog.setClusterNames(true);
    expect(await asker.ask(`east.${name} A`)).toBe('10.1.0.1');
  });
});

describe('clusterset.local without a clusterset IP', () => {
  const name = 'checkout.shop.svc.clusterset.local';
  const slice = (cluster: string, ip: string, ready = true) => ({ cluster, endpoints: [{ ip, ready }] });

  function without(slices: ReturnType<typeof slice>[]) {
    const catalog = makeCatalog({ cluster: { id: 'west' } });
    addImport(catalog, 'shop/checkout', { ports: ['http:80'], slices });
    syncAll(catalog);
    return { catalog, asker: new Asker(catalog) };
  }

  test('the local cluster is healthy -> only its address [002-13]', async () => {
    const { asker } = without([slice('east', '10.1.0.1'), slice('south', '10.3.0.1'), slice('west', '10.2.0.1')]);
    for (let i = 0; i < 4; i++) expect(await asker.ask(`${name} A`)).toBe('10.2.0.1');
  });

  test('the local cluster is unhealthy -> the others in turn; healthy again -> back [002-05, 002-13]', async () => {
    const { asker, catalog } = without([
      slice('east', '10.1.0.1'),
      slice('south', '10.3.0.1'),
      slice('west', '10.2.0.1', false),
    ]);
    const answers = [await asker.ask(`${name} A`), await asker.ask(`${name} A`), await asker.ask(`${name} A`)];
    expect(new Set(answers)).toEqual(new Set(['10.1.0.1', '10.3.0.1']));
    expect(answers[0]).not.toBe(answers[1]);
    expect(answers[0]).toBe(answers[2]);
    catalog.facts.upsertEndpointSlice(makeSlice('shop/checkout', slice('west', '10.2.0.1')));
    catalog.flush();
    expect(await asker.ask(`${name} A`)).toBe('10.2.0.1');
  });

  test('a client that asks for A and AAAA each time, as most do -> the others in turn all the same', async () => {
    const { asker } = without([slice('east', '10.1.0.1'), slice('south', '10.3.0.1')]);
    const answers: string[] = [];
    for (let i = 0; i < 4; i++) {
      answers.push(await asker.ask(`${name} A`));
      expect(await asker.ask(`${name} AAAA`)).toBe('NODATA');
    }
    expect(new Set(answers)).toEqual(new Set(['10.1.0.1', '10.3.0.1']));
  });

  test('no cluster asked for, every cluster serves the ports of the import -> SRV has those, and leads to the service [002-15]', async () => {
    const catalog = makeCatalog({ cluster: { id: 'west' } });
    const ports = ['http:80', 'admin:90'];
    const slices = ['east', 'south'].map((cluster, at) => ({ cluster, ports, endpoints: [`10.${at + 1}.0.1`] }));
    addImport(catalog, 'shop/checkout', { ports, slices });
    syncAll(catalog);
    const asker = new Asker(catalog);
    expect(await asker.ask(`_http._tcp.${name} SRV`)).toBe(`80 ${name}`);
    expect((await asker.ask(`${name} SRV`)).split(', ').sort()).toEqual([`80 ${name}`, `90 ${name}`]);
  });

  test('ports differ by cluster -> SRV has the endpoints of those that serve the asked port, with their own ports', async () => {
    const catalog = makeCatalog({ cluster: { id: 'west' } });
    const slices = [
      { cluster: 'east', ports: ['http:8080', 'admin:9000'], endpoints: ['10.1.0.1'] },
      { cluster: 'south', ports: ['http:3000'], endpoints: ['10.3.0.1'] },
    ];
    addImport(catalog, 'shop/checkout', { ports: ['http:80', 'admin:90'], slices });
    syncAll(catalog);
    const asker = new Asker(catalog);
    for (let i = 0; i < 2; i++) {
      expect(await asker.ask(`_admin._tcp.${name} SRV`)).toBe(`9000 10-1-0-1.east.${name}`);
    }
    const turns = [await asker.ask(`_http._tcp.${name} SRV`), await asker.ask(`_http._tcp.${name} SRV`)];
    expect(turns.sort()).toEqual([`3000 10-3-0-1.south.${name}`, `8080 10-1-0-1.east.${name}`]);
    expect(await asker.ask(`10-3-0-1.south.${name} A`)).toBe('10.3.0.1');
  });

  test('nobody is healthy -> NODATA, for the import exists [002-33]', async () => {
    const { asker } = without([slice('east', '10.1.0.1', false)]);
    expect(await asker.ask(`${name} A`)).toBe('NODATA');
    expect(await asker.ask(`_http._tcp.${name} SRV`)).toBe('NODATA');
    expect(await asker.ask(`_https._tcp.${name} SRV`)).toBe('NXDOMAIN');
  });
});

describe('clusterset.local follows its facts', () => {
  const name = 'db.shop.svc.clusterset.local';

  test('slice before import -> nothing, then both; import gone before slice -> nothing [003-41]', async () => {
    const catalog = makeCatalog();
    catalog.facts.upsertEndpointSlice(makeSlice('shop/db', { cluster: 'east', endpoints: ['10.1.0.1'] }));
    syncAll(catalog);
    const asker = new Asker(catalog);
    expect(await asker.ask(`${name} A`)).toBe('NXDOMAIN');
    addImport(catalog, 'shop/db', { type: 'Headless' });
    catalog.flush();
    expect(await asker.ask(`${name} A`)).toBe('10.1.0.1');
    catalog.facts.removeServiceImport('shop/db');
    catalog.flush();
    expect(await asker.ask(`${name} A`)).toBe('NXDOMAIN');
    expect(await asker.ask('shop.svc.clusterset.local A')).toBe('NXDOMAIN');
    catalog.facts.removeEndpointSlice('shop/db-east');
    catalog.flush();
    addImport(catalog, 'shop/db', { type: 'Headless' });
    catalog.flush();
    expect(await asker.ask(`${name} A`)).toBe('NXDOMAIN');
  });

  test('an address in two slices -> folded into one record', async () => {
    const catalog = makeCatalog();
    const slices = ['a', 'b'].map((suffix) => ({ cluster: 'east', name: `db-${suffix}`, endpoints: ['10.1.0.1'] }));
    addImport(catalog, 'shop/db', { type: 'Headless', slices });
    syncAll(catalog);
    expect(await new Asker(catalog).ask(`${name} A`)).toBe('10.1.0.1');
  });

  test('two addresses under one hostname -> one record each [003-61]', async () => {
    const catalog = makeCatalog();
    const endpoints = [
      { ip: '10.1.0.1', hostname: 'db-0' },
      { ip: '10.1.0.2', hostname: 'db-0' },
    ];
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', endpoints }] });
    syncAll(catalog);
    expect(await new Asker(catalog).ask(`db-0.east.${name} A`)).toBe('10.1.0.1, 10.1.0.2');
  });

  test('headless answers rotate -> every endpoint comes first in turn [002-16]', async () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', {
      type: 'Headless',
      slices: [{ cluster: 'east', endpoints: ['10.1.0.1', '10.1.0.2', '10.1.0.3'] }],
    });
    syncAll(catalog);
    const asker = new Asker(catalog);
    const firsts = new Set<string>();
    for (let i = 0; i < 3; i++) firsts.add((await asker.ask(`${name} A`)).split(', ')[0]!);
    expect(firsts.size).toBe(3);
  });

  test('a slice moves to another service -> gone from the first', async () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', {
      type: 'Headless',
      slices: [{ cluster: 'east', name: 's1', endpoints: ['10.1.0.1'] }],
    });
    addImport(catalog, 'shop/cache', { type: 'Headless' });
    syncAll(catalog);
    const asker = new Asker(catalog);
    catalog.facts.upsertEndpointSlice(
      makeSlice('shop/cache', { cluster: 'east', name: 's1', endpoints: ['10.1.0.1'] }),
    );
    catalog.flush();
    expect(await asker.ask(`${name} A`)).toBe('NXDOMAIN');
    expect(await asker.ask('cache.shop.svc.clusterset.local A')).toBe('10.1.0.1');
  });

  test('a merged view of the broker, in a home that is both -> no name of its own', async () => {
    const catalog = makeCatalog();
    addImport(catalog, 'prod/db.shop', { ports: ['sql:5432'] });
    syncAll(catalog);
    expect(await new Asker(catalog).ask('db.shop.prod.svc.clusterset.local A')).toBe('NXDOMAIN');
  });

  test('a Service of the same name -> cluster.local answers as before [001-07, 003-06, 003-64, 003-78]', async () => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { ips: ['243.0.0.1'] });
    addService(catalog, 'shop/db', { ips: ['10.96.0.1'] });
    syncAll(catalog);
    const asker = new Asker(catalog);
    expect(await asker.ask('db.shop.svc.cluster.local A')).toBe('10.96.0.1');
    expect(await asker.ask(`${name} A`)).toBe('243.0.0.1');
  });

  test('a name too long for DNS -> that one is left out, the rest is served [003-63]', async () => {
    const catalog = makeCatalog();
    const cluster = Array.from({ length: 4 }, () => 'c'.repeat(55)).join('.');
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster, endpoints: ['10.1.0.1'] }] });
    syncAll(catalog);
    expect(await new Asker(catalog).ask(`${name} A`)).toBe('10.1.0.1');
    expect(catalog.namesOf('i/shop/db').leftOut[0]?.why).toMatch(/no valid domain name/);
  });
});

test('a customised zone -> all its names answer, and those of clusterset.local are not ours [003-65]', async () => {
  const catalog = makeCatalog({ clustersetDomain: 'mesh.example' });
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'], ports: ['http:80'] });
  const endpoints = [{ ip: '10.1.0.2', hostname: 'db-0' }];
  addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', ports: ['sql:5432'], endpoints }] });
  syncAll(catalog);
  const asker = new Asker(catalog);
  const svc = 'svc.mesh.example';
  expect(await asker.ask('dns-version.mesh.example TXT')).toBe('"1.0.0"');
  expect(await asker.ask(`checkout.shop.${svc} A`)).toBe('243.0.0.7');
  expect(await asker.ask(`_http._tcp.checkout.shop.${svc} SRV`)).toBe(`80 checkout.shop.${svc}`);
  expect(await asker.ask(`db-0.east.db.shop.${svc} A`)).toBe('10.1.0.2');
  expect(await asker.ask(`_sql._tcp.db.shop.${svc} SRV`)).toBe(`5432 db-0.east.db.shop.${svc}`);
  expect(await asker.ask(`none.shop.${svc} A`)).toBe('NXDOMAIN');
  expect(await asker.ask('checkout.shop.svc.clusterset.local A')).toBe('REFUSED');
});

describe('names of IPv6 endpoints', () => {
  const name = 'db.shop.svc.clusterset.local';
  test.each([
    ['fd00:240::1:13', 'fd00-240--1-13', 'fd00-240-0-0-0-0-1-13'],
    ['fd00:240::', 'fd00-240--0', 'fd00-240-0-0-0-0-0-0'],
    ['fd00:1:2:3:4:5:6:7', 'fd00-1-2-3-4-5-6-7', 'fd00-1-2-3-4-5-6-7'],
  ])('%s -> %s, and with all groups; SRV leads to the first, in both zones', async (ip, usual, groups) => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', {
      type: 'Headless',
      slices: [{ cluster: 'east', ports: ['sql:5432'], endpoints: [ip] }],
    });
    addService(catalog, 'shop/db', { slices: [{ ports: ['sql:5432'], endpoints: [ip] }] });
    syncAll(catalog);
    const asker = new Asker(catalog);
    for (const zone of [`east.${name}`, 'db.shop.svc.cluster.local']) {
      expect(await asker.ask(`${usual}.${zone} AAAA`)).toBe(ip);
      expect(await asker.ask(`${groups}.${zone} AAAA`)).toBe(ip);
    }
    expect(await asker.ask(`_sql._tcp.${name} SRV`)).toBe(`5432 ${usual}.east.${name}`);
    expect(await asker.ask('_sql._tcp.db.shop.svc.cluster.local SRV')).toBe(`5432 ${usual}.db.shop.svc.cluster.local`);
  });
});
