import { expect, test } from 'vitest';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { Service, ServicePort } from '../../kube/objects/service.ts';
import type { Peer } from '../kinds/peer.ts';
import type { PeerExport, PeerExportSpec } from '../kinds/peer-export.ts';
import { planRoutes, type RouteFacts } from './peer-route.ts';

const mesh = { trustDomain: 'east.example', domain: 'east.example', ingress: [{ address: '192.0.2.1', port: 15443 }] };

function peer(name: string, spec: Partial<Peer['spec']> = {}): Peer {
  const metadata = { name, namespace: 'portolan-system' };
  return {
    ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata },
    spec: { trust: { domain: `${name}.example`, bundle: 'PEM' }, ...spec },
  };
}

function service(name: string, ports: ServicePort[] = [{ name: 'http', port: 80, appProtocol: 'http' }]): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' }, spec: { ports } };
}

function peerExport(name: string, createdAt: string, spec: Partial<PeerExportSpec>): PeerExport {
  const metadata = { name, namespace: 'shop', creationTimestamp: createdAt };
  const full = { peers: ['west'], ...spec };
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'PeerExport', metadata, spec: full };
}

function slice(of: string, changes: Partial<EndpointSlice> = {}): EndpointSlice {
  return {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { name: `${of}-1`, namespace: 'shop', labels: { 'kubernetes.io/service-name': of } },
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [
      { addresses: ['10.1.0.2'] },
      { addresses: ['10.1.0.1'] },
      { addresses: ['10.1.0.3'], conditions: { ready: false } },
    ],
    ...changes,
  };
}

const plan = (facts: Partial<RouteFacts>) =>
  planRoutes({
    exports: [],
    services: [service('db')],
    imports: [],
    slices: [],
    peers: [peer('west')],
    mesh,
    ...facts,
  });
const one = peerExport('one', '2026-01-01T00:00:00Z', { services: ['db'] });

test('routes: a service is exported -> its SNI leads to its ready endpoints, for clients of that peer [000-06, 000-40]', () => {
  expect(plan({ exports: [one], slices: [slice('db'), slice('other')] })).toEqual({
    routes: [
      {
        sni: 'db.shop.east.example',
        service: 'shop/db',
        exportedBy: 'shop/one',
        san: 'spiffe://east.example/ns/shop/sa/default',
        protocols: ['http'],
        port: 80,
        backends: [
          { address: '10.1.0.1', port: 8080 },
          { address: '10.1.0.2', port: 8080 },
        ],
        clients: [{ peer: 'west', trustDomain: 'west.example' }],
      },
    ],
    leftOut: [],
  });
});

const imported = (of: string, cluster: string, endpoints: EndpointSlice['endpoints'], portName = 'http') =>
  slice(of, {
    metadata: {
      name: `${of}-${cluster}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': of,
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    ports: [{ name: portName, port: 8080, protocol: 'TCP' }],
    endpoints,
  });

test('routes: a service of two clusters -> the endpoints of both, and on when one of them has none [000-01]', () => {
  const own = slice('db', { endpoints: [{ addresses: ['10.1.0.1'] }] });
  const mine = imported('db', 'east', [{ addresses: ['10.1.0.1'] }]);
  const theirs = imported('db', 'west', [{ addresses: ['10.2.0.1'] }]);
  const backends = (slices: EndpointSlice[], services = [service('db')]) =>
    plan({ exports: [one], services, imports: [service('db')], slices }).routes.map((route) =>
      route.backends.map(({ address }) => address),
    );
  expect(backends([own, mine, theirs])).toEqual([['10.1.0.1', '10.2.0.1']]);
  expect(backends([slice('db', { endpoints: [] }), imported('db', 'east', []), theirs])).toEqual([['10.2.0.1']]);
  expect(backends([theirs], [])).toEqual([['10.2.0.1']]);
});

test('routes: the clusterset knows the port by another name -> found by its number; another number -> not this port', () => {
  const theirs = imported('db', 'west', [{ addresses: ['10.2.0.1'] }], 'web');
  const backends = (port: number) =>
    plan({ exports: [one], imports: [service('db', [{ name: 'web', port }])], slices: [theirs] }).routes[0]!.backends;
  expect(backends(80)).toEqual([{ address: '10.2.0.1', port: 8080 }]);
  expect(backends(81)).toEqual([]);
});

test('routes: exports that name other ports of a service -> a route for each; one SNI for two ports -> the older keeps it', () => {
  const ports = [
    { name: 'http', port: 80 },
    { name: 'admin', port: 90 },
    { name: 'dns', port: 53, protocol: 'UDP' as const },
  ];
  const admin = (spec: Partial<PeerExportSpec>) =>
    peerExport('admin', '2026-01-02T00:00:00Z', { services: ['db'], fqdn: 'admin.{service}.east.example', ...spec });
  const facts = (spec: Partial<PeerExportSpec>) =>
    plan({ exports: [one, admin(spec)], services: [service('db', ports)] });
  const lines = (spec: Partial<PeerExportSpec>) => facts(spec).routes.map(({ sni, port }) => `${sni} ${port}`);
  expect(lines({ port: 'admin' })).toEqual(['admin.db.east.example 90', 'db.shop.east.example 80']);
  expect(lines({ port: '90' })).toEqual(lines({ port: 'admin' }));
  for (const port of ['dns', '53', 'none']) {
    expect(lines({ port })).toEqual(['db.shop.east.example 80']);
    expect(facts({ port }).leftOut[0]?.why).toBe(`it has no port ${port} that goes over TCP`);
  }
  const clash = facts({ port: 'admin', fqdn: '{service}.{namespace}.east.example' });
  expect([clash.routes.length, clash.leftOut[0]?.why]).toEqual([1, expect.stringContaining('which is older')]);
});

test('routes: slices whose lists are missing -> a route without the backends that they do not have', () => {
  const bare = { ...slice('db'), endpoints: undefined } as unknown as EndpointSlice;
  const noPorts = { ...slice('db'), ports: undefined } as unknown as EndpointSlice;
  const noAddresses = { ...slice('db'), endpoints: [{ conditions: { ready: true } }] } as EndpointSlice;
  const { routes } = plan({ exports: [one], slices: [bare, noPorts, noAddresses, slice('db')] });
  expect(routes[0]?.backends.map(({ address }) => address)).toEqual(['10.1.0.1', '10.1.0.2']);
});

test('routes: two exports share one service under one SNI -> one route, clients of both', () => {
  const two = peerExport('two', '2026-01-02T00:00:00Z', { services: ['db'], peers: ['north', 'west'] });
  const { routes } = plan({ exports: [two, one], peers: [peer('west'), peer('north')] });
  expect(routes).toHaveLength(1);
  expect(routes[0]?.clients.map((client) => client.peer)).toEqual(['west', 'north']);
});

test('routes: two services want one SNI -> the older export keeps it, the other is told why [000-40]', () => {
  const serviceId = 'Same.east.example';
  const first = peerExport('first', '2026-01-01T00:00:00Z', { services: ['db'], serviceId });
  const second = peerExport('second', '2026-01-02T00:00:00Z', { services: ['web'], serviceId, peers: ['north'] });
  const { routes, leftOut } = plan({
    exports: [second, first],
    services: [service('db'), service('web')],
    peers: [peer('west'), peer('north')],
  });
  expect(routes.map(({ sni, service }) => [sni, service])).toEqual([['same.east.example', 'shop/db']]);
  expect(leftOut).toEqual([
    {
      what: 'Service shop/web of PeerExport shop/second',
      why: 'SNI same.east.example leads to Service shop/db by PeerExport shop/first, which is older',
    },
  ]);
});

test('routes: several ports -> the first over TCP; none over TCP -> left out', () => {
  const ports: ServicePort[] = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'http', port: 80 },
    { name: 'admin', port: 81 },
  ];
  const { routes } = plan({ exports: [one], services: [service('db', ports)], slices: [slice('db')] });
  expect(routes[0]).toMatchObject({ port: 80, backends: [{ port: 8080 }, { port: 8080 }] });
  const without = plan({ exports: [one], services: [service('db', ports.slice(0, 1))] });
  expect(without).toMatchObject({ routes: [], leftOut: [{ why: 'it has no port that goes over TCP' }] });
});

test('routes: no such peer, a suspended one, a service that cannot be offered -> no route, and why', () => {
  const unknown = peerExport('unknown', '', { services: ['db'], peers: ['nobody'] });
  expect(plan({ exports: [unknown] })).toEqual({
    routes: [],
    leftOut: [{ what: 'peer nobody of PeerExport shop/unknown', why: 'there is no such Peer' }],
  });
  expect(plan({ exports: [one], peers: [peer('west', { suspended: true })] })).toEqual({ routes: [], leftOut: [] });
  const bad = peerExport('bad', '', { services: ['db'], san: 'nonsense' });
  expect(plan({ exports: [bad] }).leftOut[0]?.why).toContain('san: Invalid value');
});
