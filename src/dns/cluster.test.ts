// cluster.local and its reverse names, as Kubernetes' DNS specification 1.1.0 says.

import { describe, expect, test } from 'vitest';
import { PodNames } from '../catalog/names/pod-names.ts';
import { Asker, addService, makeCatalog, makeSlice, syncAll } from './testing/ask.ts';

function cluster() {
  const catalog = makeCatalog();
  addService(catalog, 'shop/web', {
    ips: ['10.96.0.7', 'fd00:96::7'],
    ports: ['http:80', 'https:443', 'quic:443/UDP'],
  });
  addService(catalog, 'shop/db', {
    ports: ['sql:5432'],
    slices: [
      {
        ports: ['sql:5432'],
        endpoints: [
          { ip: '10.1.0.2', hostname: 'db-0' },
          '10.1.0.3',
          { ip: '10.1.0.4', hostname: 'db-2', ready: false },
        ],
      },
      { name: 'db-v6', ports: ['sql:5432'], endpoints: [{ ip: 'fd00::2', hostname: 'db-0' }] },
    ],
  });
  addService(catalog, 'shop/cache', {
    ips: ['10.96.0.8'],
    ports: ['redis:6379'],
    slices: [
      {
        ports: ['redis:6379'],
        endpoints: [
          { ip: '10.1.0.5', hostname: 'cache-0' },
          { ip: '10.1.0.6', hostname: 'cache-1', ready: false },
          '10.1.0.7',
        ],
      },
    ],
  });
  catalog.upsertNamespace('empty');
  catalog.upsertNamespace('shop');
  addService(catalog, 'shop/none', { slices: [{ endpoints: [{ ip: '10.1.0.9', ready: false }] }] });
  addService(catalog, 'shop/partner', { externalName: 'api.partner.example' });
  addService(catalog, 'shop/alias', { externalName: 'web.shop.svc.cluster.local' });
  addService(catalog, 'shop/loop', { externalName: 'loop.shop.svc.cluster.local' });
  addService(catalog, 'shop/broken', { externalName: 'no..name' });
  syncAll(catalog);
  return { catalog, asker: new Asker(catalog) };
}

const sorted = (text: string) => text.split(', ').sort().join(', ');

describe('cluster.local', () => {
  const { asker, catalog } = cluster();
  const svc = 'svc.cluster.local';

  test.each([
    ['dns-version.cluster.local TXT [003-57]', '"1.1.0"'],
    [`web.shop.${svc} A`, '10.96.0.7'],
    [`web.shop.${svc} AAAA`, 'fd00:96::7'],
    [`_http._tcp.web.shop.${svc} SRV`, `80 web.shop.${svc}`],
    [`_quic._udp.web.shop.${svc} SRV`, `443 web.shop.${svc}`],
    [`_tcp.web.shop.${svc} A`, 'NODATA'],
    ['7.0.96.10.in-addr.arpa PTR', `web.shop.${svc}`],
    ['7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.0.d.f.ip6.arpa PTR', `web.shop.${svc}`],
    [`db.shop.${svc} A`, '10.1.0.2, 10.1.0.3'],
    [`db.shop.${svc} AAAA`, 'fd00::2'],
    [`db-0.db.shop.${svc} A`, '10.1.0.2'],
    [`db-0.db.shop.${svc} AAAA`, 'fd00::2'],
    [`10-1-0-3.db.shop.${svc} A`, '10.1.0.3'],
    [`db-2.db.shop.${svc} A`, 'NXDOMAIN'],
    [`_sql._tcp.db.shop.${svc} SRV`, `5432 10-1-0-3.db.shop.${svc}, 5432 db-0.db.shop.${svc}`],
    ['2.0.1.10.in-addr.arpa PTR', `db-0.db.shop.${svc}`],
    ['3.0.1.10.in-addr.arpa PTR', `10-1-0-3.db.shop.${svc}`],
    ['4.0.1.10.in-addr.arpa PTR', 'REFUSED'],
    [`cache.shop.${svc} A`, '10.96.0.8'],
    [`cache-0.cache.shop.${svc} A`, '10.1.0.5'],
    [`cache-1.cache.shop.${svc} A`, 'NXDOMAIN'],
    [`10-1-0-7.cache.shop.${svc} A`, 'NXDOMAIN'],
    [`_redis._tcp.cache.shop.${svc} SRV`, `6379 cache.shop.${svc}`],
    ['5.0.1.10.in-addr.arpa PTR', `cache-0.cache.shop.${svc}`],
    [`empty.${svc} A`, 'NODATA'],
    [`nowhere.${svc} A`, 'NXDOMAIN'],
    [`any.empty.${svc} A`, 'NXDOMAIN'],
    [`none.shop.${svc} A`, 'NXDOMAIN'],
    [`partner.shop.${svc} A`, 'api.partner.example'],
    [`partner.shop.${svc} CNAME`, 'api.partner.example'],
    [`alias.shop.${svc} A`, `10.96.0.7, web.shop.${svc}`],
    [`loop.shop.${svc} A`, 'SERVFAIL'],
    [`broken.shop.${svc} A`, 'NXDOMAIN'],
    [`missing.shop.${svc} A`, 'NXDOMAIN'],
    [`shop.${svc} A`, 'NODATA'],
    ['example.com A', 'REFUSED'],
    // A search list makes this of a clusterset name: it must not find anything.
    [`web.shop.svc.clusterset.local.shop.${svc} A`, 'NXDOMAIN'],
  ])('ask %s -> %s', async (question, expected) => {
    expect(sorted(await asker.ask(question))).toBe(expected);
  });

  test('a namespace goes -> its name too, unless a service is in it', async () => {
    for (const name of ['empty', 'shop']) catalog.removeNamespace(name);
    expect(await asker.ask(`empty.${svc} A`)).toBe('NXDOMAIN');
    expect(await asker.ask(`shop.${svc} A`)).toBe('NODATA');
  });

  test('endpoints of a Service with an address lose their hostname, or become ready -> its names follow', async () => {
    const endpoints = (hostname: string) => [{ ip: '10.1.0.5', hostname }];
    const put = (hostname: string) => {
      catalog.facts.upsertEndpointSlice(makeSlice('shop/cache', { endpoints: endpoints(hostname) }));
      catalog.flush();
    };
    put('other-0');
    expect(await asker.ask(`cache-0.cache.shop.${svc} A`)).toBe('NXDOMAIN');
    expect(await asker.ask('5.0.1.10.in-addr.arpa PTR')).toBe(`other-0.cache.shop.${svc}`);
    put('');
    expect(await asker.ask(`other-0.cache.shop.${svc} A`)).toBe('NXDOMAIN');
    expect(await asker.ask('5.0.1.10.in-addr.arpa PTR')).toBe('REFUSED');
  });

  test('one address behind two headless services -> two PTR records; one goes -> one stays', async () => {
    addService(catalog, 'shop/db2', { slices: [{ endpoints: [{ ip: '10.1.0.2', hostname: 'x' }] }] });
    catalog.flush();
    expect(sorted(await asker.ask('2.0.1.10.in-addr.arpa PTR'))).toBe(`db-0.db.shop.${svc}, x.db2.shop.${svc}`);
    catalog.facts.removeService('shop/db2');
    catalog.flush();
    expect(await asker.ask('2.0.1.10.in-addr.arpa PTR')).toBe(`db-0.db.shop.${svc}`);
  });

  test('an endpoint turns ready and unready -> its names come and go [003-62]', async () => {
    const slice = (ready: boolean) =>
      makeSlice('shop/none', { endpoints: [{ ip: '10.1.0.9', hostname: 'n-0', ready }] });
    catalog.facts.upsertEndpointSlice(slice(true));
    catalog.flush();
    expect(await asker.ask(`n-0.none.shop.${svc} A`)).toBe('10.1.0.9');
    catalog.facts.upsertEndpointSlice(slice(false));
    catalog.flush();
    expect(await asker.ask(`n-0.none.shop.${svc} A`)).toBe('NXDOMAIN');
    expect(await asker.ask(`none.shop.${svc} A`)).toBe('NXDOMAIN');
  });
});

describe('names of pods', () => {
  const pod = (key: string, ips: string[], phase = 'Running') => {
    const [namespace, name] = key.split('/') as [string, string];
    const podIPs = ips.map((ip) => ({ ip }));
    return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name }, status: { phase, podIP: ips[0], podIPs } };
  };

  function verified() {
    const catalog = makeCatalog();
    const pods = new PodNames(catalog.table, catalog.clusterZone);
    pods.upsert(pod('shop/a', ['10.244.0.7', 'fd00::7']));
    pods.upsert(pod('shop/b', ['10.244.0.7']));
    pods.upsert(pod('shop/done', ['10.244.0.8'], 'Succeeded'));
    pods.upsert({ ...pod('shop/new', []), status: {} });
    syncAll(catalog);
    return { pods, asker: new Asker(catalog) };
  }

  test.each([
    ['10-244-0-7.shop.pod.cluster.local A', '10.244.0.7'],
    ['fd00--7.shop.pod.cluster.local AAAA', 'fd00::7'],
    ['10-244-0-7.shop.pod.cluster.local AAAA', 'NODATA'],
    ['10-244-0-7.other.pod.cluster.local A', 'NXDOMAIN'],
    ['10-244-0-8.shop.pod.cluster.local A', 'NXDOMAIN'],
    ['shop.pod.cluster.local A', 'NODATA'],
    ['pod.cluster.local A', 'NODATA'],
  ])('verified: %s -> %s', async (question, expected) => {
    expect(await verified().asker.ask(question)).toBe(expected);
  });

  test('verified: the last pod with an address goes -> its name goes, and the namespace with it', async () => {
    const { pods, asker } = verified();
    pods.remove('shop/a');
    expect(await asker.ask('10-244-0-7.shop.pod.cluster.local A')).toBe('10.244.0.7');
    expect(await asker.ask('fd00--7.shop.pod.cluster.local AAAA')).toBe('NXDOMAIN');
    pods.upsert(pod('shop/b', ['10.244.0.9']));
    expect(await asker.ask('10-244-0-7.shop.pod.cluster.local A')).toBe('NXDOMAIN');
    pods.remove('shop/b');
    expect(await asker.ask('shop.pod.cluster.local A')).toBe('NXDOMAIN');
    expect([...pods.keys()]).toEqual([]);
  });

  test.each([
    ['10-244-0-7.any.pod.cluster.local A', '10.244.0.7'],
    ['fd00--7.any.pod.cluster.local AAAA', 'fd00::7'],
    ['10-244-0-7.any.pod.cluster.local AAAA', 'NODATA'],
    ['10-244-0-700.any.pod.cluster.local A', 'NXDOMAIN'],
    ['x.10-244-0-7.any.pod.cluster.local A', 'NXDOMAIN'],
    ['any.pod.cluster.local A', 'NODATA'],
    ['web.shop.svc.cluster.local A', '10.96.0.7'],
  ])('insecure: %s -> %s', async (question, expected) => {
    const { catalog } = cluster();
    expect(await new Asker(catalog, { config: { podNames: 'insecure' } }).ask(question)).toBe(expected);
  });

  test('disabled -> no such names', async () => {
    expect(await cluster().asker.ask('10-244-0-7.shop.pod.cluster.local A')).toBe('NXDOMAIN');
  });
});

test('cluster.local: services without a ready endpoint, ignored -> NXDOMAIN until one is ready', async () => {
  const catalog = makeCatalog({ ignoresEmptyServices: true });
  const slice = (ready: boolean) => ({ endpoints: [{ ip: '10.1.0.9', ready }] });
  addService(catalog, 'shop/web', { ips: ['10.96.0.7'], slices: [slice(false)] });
  addService(catalog, 'shop/partner', { externalName: 'api.partner.example' });
  syncAll(catalog);
  const asker = new Asker(catalog);
  expect(await asker.ask('web.shop.svc.cluster.local A')).toBe('NXDOMAIN');
  expect(await asker.ask('partner.shop.svc.cluster.local CNAME')).toBe('api.partner.example');
  catalog.facts.upsertEndpointSlice(makeSlice('shop/web', slice(true)));
  catalog.flush();
  expect(await asker.ask('web.shop.svc.cluster.local A')).toBe('10.96.0.7');
});
