// The offer to each peer, from Services and PeerExports, change by change.

import { beforeEach, expect, test } from 'vitest';
import type { Service } from '../../kube/objects/service.ts';
import type { PeerExport, PeerExportSpec } from '../kinds/peer-export.ts';
import { OwnerCatalog } from './owner-catalog.ts';

let catalog: OwnerCatalog;
/** `peer id` of each published change. */
let told: string[];
let generation = 0;

beforeEach(() => {
  told = [];
  catalog = new OwnerCatalog({
    mesh: { trustDomain: 'us.example', domain: 'mesh.us.example', ingress: [{ address: '192.0.2.1', port: 15443 }] },
    onChanged: (peer, id) => told.push(`${peer} ${id}`),
  });
});

const onePort = { ports: [{ port: 80 }] } as Service['spec'];

function putService(name: string, changes: Partial<Service['metadata']> = {}, spec = onePort): void {
  const metadata = { name, namespace: 'shop', ...changes };
  catalog.setService('shop', name, { apiVersion: 'v1', kind: 'Service', metadata, spec } as Service);
}

function putExport(name: string, spec: Partial<PeerExportSpec>): void {
  generation += 1;
  const metadata = { name, namespace: 'shop', uid: name, generation, creationTimestamp: `2026-01-0${generation}` };
  catalog.setExport('shop', name, { metadata, spec: { peers: ['acme'], ...spec } } as unknown as PeerExport);
}

const offered = (peer = 'acme') => Array.from(catalog.offeredTo(peer), ({ id }) => id).sort();

test('export: by name -> those services and no others, to those peers and no others', () => {
  for (const name of ['a', 'b', 'c']) putService(name);
  putExport('some', { services: ['a', 'b'], peers: ['acme', 'other'] });
  expect(offered()).toEqual(['a.shop.mesh.us.example', 'b.shop.mesh.us.example']);
  expect(offered('other')).toEqual(offered());
  expect(offered('third')).toEqual([]);
});

test('export: names, paths and selectors that fit services of another namespace -> none of those is offered', () => {
  const putSecret = (tier: string) => {
    const metadata = { name: 'secret', namespace: 'bank', labels: { tier } };
    catalog.setService('bank', 'secret', { apiVersion: 'v1', kind: 'Service', metadata, spec: onePort } as Service);
  };
  putSecret('silver');
  putService('own', { labels: { tier: 'gold' } });
  putExport('all', { services: ['secret', 'bank/secret', '../bank/secret', '*'], serviceSelector: {} });
  putExport('gold', { serviceSelector: { matchLabels: { tier: 'gold' } } });
  // Each of the two is looked at when it changes.
  putSecret('gold');
  expect(offered()).toEqual(['own.shop.mesh.us.example']);
});

test('export: a service of other clusters, by its import -> offered; a Service here describes it, and goes -> it stays', () => {
  const imported = (labels: Record<string, string>, name = 'db') =>
    ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'shop', labels },
      spec: onePort,
    }) as Service;
  putExport('some', { services: ['db'], exportedLabels: ['tier'] });
  catalog.setImport('shop', 'db', imported({ tier: 'set' }));
  const tiers = () => Array.from(catalog.offeredTo('acme'), ({ labels }) => labels['tier']);
  expect([offered(), tiers()]).toEqual([['db.shop.mesh.us.example'], ['set']]);
  putService('db', { labels: { tier: 'own' } });
  expect(tiers()).toEqual(['own']);
  catalog.setService('shop', 'db', undefined);
  expect(tiers()).toEqual(['set']);
  catalog.setImport('shop', 'db', undefined);
  expect(offered()).toEqual([]);
  catalog.setImport('shop', 'late', imported({}, 'late'));
  putExport('all', { serviceSelector: {} });
  expect(offered()).toEqual(['late.shop.mesh.us.example']);
});

test('export: a port by name -> its protocol; a port that the service has not -> not offered, with the reason', () => {
  const ports = [
    { name: 'http', port: 80, appProtocol: 'http' },
    { name: 'sql', port: 5432, appProtocol: 'mysql' },
  ];
  putService('db', {}, { ports } as Service['spec']);
  putExport('some', { services: ['db'], port: 'sql' });
  expect(Array.from(catalog.offeredTo('acme'), ({ protocols }) => protocols)).toEqual([['mysql']]);
  putExport('some', { services: ['db'], port: 'none' });
  expect(offered()).toEqual([]);
  expect(Array.from(catalog.sharesOf('shop/some'), ({ wrong }) => wrong)).toEqual([
    'it has no port none that goes over TCP',
  ]);
});

test('export: by selector -> follows the labels of services that come, change and go', () => {
  putExport('gold', { serviceSelector: { matchLabels: { tier: 'gold' } } });
  putService('a', { labels: { tier: 'gold' } });
  putService('b', { labels: { tier: 'silver' } });
  expect(offered()).toEqual(['a.shop.mesh.us.example']);
  putService('a', { labels: { tier: 'silver' } });
  putService('b', { labels: { tier: 'gold' } });
  expect(offered()).toEqual(['b.shop.mesh.us.example']);
  catalog.setService('shop', 'b', undefined);
  expect(offered()).toEqual([]);
  expect(told).toEqual([
    'acme a.shop.mesh.us.example',
    'acme a.shop.mesh.us.example',
    'acme b.shop.mesh.us.example',
    'acme b.shop.mesh.us.example',
  ]);
});

test('export: FQDN, ServiceID, SAN, ingress and protocols of its own -> offered so', () => {
  putService('db', {}, { ports: [{ port: 80, appProtocol: 'http' }] } as Service['spec']);
  putExport('all', {
    services: ['db'],
    fqdn: '{service}.shared.us.example',
    serviceId: 'outbound_.80_._.{service}.{namespace}',
    san: 'spiffe://{trustDomain}/workload/{service}',
    ingress: [{ address: 'ingress.us.example', port: 443 }],
    protocols: ['mongo'],
  });
  expect([...catalog.offeredTo('acme')]).toEqual([
    {
      ...{ name: 'db', description: '', tags: [], labels: {} },
      fqdn: 'db.shared.us.example',
      id: 'outbound_.80_._.db.shop',
      san: 'spiffe://us.example/workload/db',
      protocols: ['mongo'],
      endpoints: [{ address: 'ingress.us.example', port: 443 }],
    },
  ]);
});

test('export: nothing said -> SAN from the identity template, protocols from the ports, the rest from annotations and labels', () => {
  const annotations = { 'portolan.dev/description': 'the database', 'portolan.dev/tags': 'sql, fast,sql' };
  const ports = [
    { port: 80, appProtocol: 'http' },
    { port: 81, appProtocol: 'http' },
    { port: 53, protocol: 'UDP' },
  ];
  putService('db', { annotations, labels: { tier: 'gold', secret: 'yes' } }, { ports } as Service['spec']);
  putExport('all', { services: ['db'], serviceAccount: 'db', exportedLabels: ['tier'], labels: { from: 'us' } });
  expect([...catalog.offeredTo('acme')]).toEqual([
    {
      ...{ name: 'db', description: 'the database', tags: ['sql', 'fast'], labels: { from: 'us', tier: 'gold' } },
      ...{ fqdn: 'db.shop.mesh.us.example', id: 'db.shop.mesh.us.example' },
      san: 'spiffe://us.example/ns/shop/sa/db',
      protocols: ['http', 'udp'],
      endpoints: [{ address: '192.0.2.1', port: 15443 }],
    },
  ]);
});

test('export: one service of a thousand changes -> one id is told, the others are the same objects', () => {
  for (let n = 0; n < 1000; n += 1) putService(`s${n}`);
  putExport('all', { serviceSelector: {} });
  const before = new Map(Array.from(catalog.offeredTo('acme'), (service) => [service.id, service]));
  told.length = 0;
  putService('s7', { annotations: { 'portolan.dev/description': 'new' } });
  putService('s8');
  expect(told).toEqual(['acme s7.shop.mesh.us.example']);
  const changed = [...catalog.offeredTo('acme')].filter((service) => before.get(service.id) !== service);
  expect(changed.map(({ name }) => name)).toEqual(['s7']);
});

test('export: a peer is taken off its list -> withdrawn from that one alone', () => {
  putService('a');
  putExport('all', { services: ['a'], peers: ['acme', 'other'] });
  told.length = 0;
  putExport('all', { services: ['a'], peers: ['other'] });
  expect(offered()).toEqual([]);
  expect(offered('other')).toEqual(['a.shop.mesh.us.example']);
  expect(told).toContain('acme a.shop.mesh.us.example');
});
