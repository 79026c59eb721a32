import { describe, expect, test } from 'vitest';
import { FactIndex } from '../../catalog/facts/fact-index.ts';
import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import type { SetLocality } from '../../clusterset/rules/locality.ts';
import { oneNetwork } from '../../clusterset/rules/networks/networks.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { at } from '../testing/resources.ts';
import { makeEntry } from '../view/entry.ts';
import { clustersetEndpoints, clustersetListeners, clustersetResources } from './generate.ts';
import { clustersetServiceOf } from './service.ts';

const serviceImport = {
  apiVersion: 'multicluster.x-k8s.io/v1beta1',
  kind: 'ServiceImport',
  metadata: { name: 'checkout', namespace: 'shop' },
  spec: {
    type: 'ClusterSetIP' as const,
    ips: ['241.0.0.7', 'nonsense'],
    ports: [
      { name: 'http', port: 80, protocol: 'TCP' as const },
      { name: 'grpc', port: 8080, protocol: 'TCP' as const },
      { name: 'dns', port: 53, protocol: 'UDP' as const },
    ],
  },
};

function slice(cluster: string, name: string, endpoints: [address: string, zone?: string][]): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': 'checkout',
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    addressType: 'IPv4',
    ports: [
      { name: 'http', port: 8000, protocol: 'TCP' },
      { name: 'grpc', port: 9000, protocol: 'TCP' },
    ],
    endpoints: endpoints.map(([address, zone]) => ({ addresses: [address], ...(zone && { zone }) })),
  };
}

const slices = [
  slice('east', 'e1', [
    ['10.1.0.1', 'eu-1a'],
    ['10.1.0.2', 'eu-1b'],
  ]),
  slice('west', 'w1', [['10.2.0.1']]),
  slice('far', 'f1', [['10.3.0.1'], ['10.3.0.2']]),
];

const locality = (preference: SetLocality['preference']): SetLocality => ({
  preference,
  clusters: new Map([
    ['east', { region: 'eu', zone: 'eu-1a' }],
    ['west', { region: 'eu', zone: 'eu-2' }],
    ['far', { region: 'us', zone: 'us-1' }],
  ]),
});

/** As the fact views has it. */
function serviceOf(given: readonly EndpointSlice[]) {
  const facts = new FactIndex({ clock: { monotonicMs: () => 0 }, holdsTraffic: true });
  facts.upsertServiceImport(serviceImport as ServiceImport);
  for (const each of given) facts.upsertEndpointSlice(each);
  return clustersetServiceOf('shop/checkout', facts.ownerOf('i/shop/checkout'), facts.slicesOf('i/shop/checkout'));
}

const service = serviceOf(slices);
const from = { cluster: 'east', region: 'eu', zone: 'eu-1a' };

/** `priority cluster/zone weight: addresses`, one line for each group. */
function groups(preference: SetLocality['preference'], reader = from, given = service): string[] {
  const [first] = clustersetEndpoints(given, 'clusterset.local', {
    from: reader,
    locality: locality(preference),
    networks: oneNetwork,
  });
  const address = 'lb_endpoints.*.endpoint.address.socket_address.address';
  return (first!.body['endpoints'] as unknown[]).map((group) => {
    const place = `${at(group, 'locality.sub_zone')}/${at(group, 'locality.zone')}`;
    const addresses = (at(group, address) as string[]).join(' ');
    return `${at(group, 'priority')} ${place} ${at(group, 'load_balancing_weight')}: ${addresses}`;
  });
}

describe('clusterset: endpoints by locality', () => {
  test('nearest first -> own zone, own cluster, own region, anywhere; numbers without a gap', () => {
    expect(groups('NearestFirst')).toEqual([
      '0 east/eu-1a 1: 10.1.0.1',
      '1 east/eu-1b 1: 10.1.0.2',
      '2 west/eu-2 1: 10.2.0.1',
      '3 far/us-1 2: 10.3.0.1 10.3.0.2',
    ]);
    expect(groups('NearestFirst', { cluster: 'other', region: 'us', zone: 'us-9' })).toEqual([
      '0 far/us-1 2: 10.3.0.1 10.3.0.2',
      '1 east+west/ 3: 10.1.0.1 10.1.0.2 10.2.0.1',
    ]);
  });

  test('spread -> one group of endpoints that are alike: one that does not answer leaves its part to all others', () => {
    expect(groups('Spread')).toEqual(['0 east+far+west/ 5: 10.1.0.1 10.1.0.2 10.2.0.1 10.3.0.1 10.3.0.2']);
  });

  test('a service that prefers close traffic -> nearest first whatever the set says', () => {
    const close = { ...service, trafficDistribution: 'PreferClose' };
    expect(groups('Spread', from, close)).toEqual(groups('NearestFirst'));
  });

  test('no endpoints, or null lists from outside -> an empty assignment', () => {
    const broken = { ...slices[0]!, ports: null, endpoints: null } as unknown as EndpointSlice;
    expect(groups('Spread', from, serviceOf([broken]))).toEqual([]);
  });
});

test('clusterset: what a gRPC client resolves -> the port that speaks gRPC, and each port by number', () => {
  const resources = clustersetResources(service, 'clusterset.local');
  const lines = resources.map(({ type, name, isByNameOnly }) => `${type} ${name}${isByNameOnly ? ' (by name)' : ''}`);
  expect(lines).toEqual([
    'cluster checkout.shop.svc.clusterset.local:80',
    'route checkout.shop.svc.clusterset.local:80 (by name)',
    'listener checkout.shop.svc.clusterset.local:80 (by name)',
    'cluster checkout.shop.svc.clusterset.local:8080',
    'route checkout.shop.svc.clusterset.local:8080 (by name)',
    'listener checkout.shop.svc.clusterset.local:8080 (by name)',
    'listener checkout.shop.svc.clusterset.local (by name)',
  ]);
});

test('clusterset: slices and endpoints in another order -> the same bytes', () => {
  const turned = slices.map((each) => ({ ...each, endpoints: [...each.endpoints].reverse() })).reverse();
  const versions = (given: readonly EndpointSlice[]) => {
    const made = serviceOf(given);
    const choice = { from, locality: locality('NearestFirst'), networks: oneNetwork };
    const all = [
      ...clustersetResources(made, 'clusterset.local'),
      ...clustersetEndpoints(made, 'clusterset.local', choice),
      ...clustersetListeners(made, 'clusterset.local'),
    ];
    return all.map((resource) => makeEntry(resource).version);
  };
  expect(versions(turned)).toEqual(versions(slices));
});
