import { expect, test } from 'vitest';
import type { EndpointSlice } from '../../../kube/objects/endpoint-slice.ts';
import { oneNetwork } from '../networks/networks.ts';
import { readRouting } from '../routing/routing.ts';
import { planCarriedSlices } from './carried-slices.ts';

/** `10.1.0.1@a` lies in zone a, `10.1.0.1!` is not ready. */
function slice(cluster: string, endpoints: string, ports = 'http'): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `db-${cluster}-${ports.replace(' ', '-')}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': 'db',
        'multicluster.kubernetes.io/source-cluster': cluster,
        'service.kubernetes.io/service-proxy-name': 'portolan',
      },
    },
    addressType: 'IPv4',
    ports: ports.split(' ').map((name) => ({ name, protocol: 'TCP', port: 8080 })),
    endpoints: endpoints.split(' ').map((text) => {
      const [, address, , zone, mark] = /^([0-9.]+)(@(\w+))?(!?)$/.exec(text)!;
      return { addresses: [address!], conditions: { ready: mark === '' }, ...(zone === undefined ? {} : { zone }) };
    }),
  };
}

function planned(
  imported: readonly EndpointSlice[],
  { routing = '', trafficDistribution = '', zone = 'a', hasOwnAlready = false } = {},
): string[] {
  const locality = { preference: 'Spread', clusters: new Map() } as const;
  const slices = planCarriedSlices({
    ...{ imported, behind: 'derived-1', hasOwnAlready, locality, networks: oneNetwork, trafficDistribution },
    self: { cluster: 'east', zone },
    routing: readRouting(routing),
  });
  return slices.map(({ metadata: { labels }, ports, endpoints }) => {
    expect(labels).toMatchObject({ 'kubernetes.io/service-name': 'derived-1', 'portolan.dev/carried-for': 'db' });
    expect(labels).not.toHaveProperty('service.kubernetes.io/service-proxy-name');
    expect(labels).not.toHaveProperty('multicluster.kubernetes.io/service-name');
    const texts = endpoints.map(({ addresses, hints }) => {
      const zones = hints?.forZones?.map(({ name }) => name).join('+');
      return `${addresses![0]}${zones === undefined ? '' : ` for ${zones}`}`;
    });
    return `${ports?.map(({ name }) => name).join('+')}: ${texts.join(', ')}`;
  });
}

const near = { trafficDistribution: 'PreferClose' };

test.each<[string, EndpointSlice[], Parameters<typeof planned>[1], string[]]>([
  [
    'an exclusion',
    [slice('east', '10.1.0.1'), slice('west', '10.2.0.1')],
    { routing: '{"x":["east"]}' },
    ['http: 10.2.0.1'],
  ],
  [
    'an order',
    [slice('east', '10.1.0.1'), slice('west', '10.2.0.1')],
    { routing: '{"g":[[["west"]]]}' },
    ['http: 10.2.0.1'],
  ],
  [
    'an order, the first is not ready',
    [slice('east', '10.1.0.1'), slice('west', '10.2.0.1!')],
    { routing: '{"g":[[["west"]]]}' },
    ['http: 10.1.0.1'],
  ],
  [
    'weights: all of them, as it has none',
    [slice('east', '10.1.0.1'), slice('west', '10.2.0.1')],
    { routing: '{"g":[[["east"],90],[["west"],10]]}' },
    ['http: 10.1.0.1', 'http: 10.2.0.1'],
  ],
  ['the nearest, in one zone', [slice('east', '10.1.0.1@a'), slice('west', '10.2.0.1')], near, ['http: 10.1.0.1']],
  ['the nearest, two zones', [slice('east', '10.1.0.1@a 10.1.0.2@b')], near, ['http: 10.1.0.1 for a, 10.1.0.2 for b']],
  ['the nearest, a zone with none that is ready', [slice('east', '10.1.0.1@a 10.1.0.2@b!')], near, ['http: 10.1.0.1']],
  [
    'a port that only the farther one has',
    [slice('east', '10.1.0.1'), slice('west', '10.2.0.1', 'http admin')],
    near,
    ['http: 10.1.0.1', 'admin: 10.2.0.1'],
  ],
  [
    'those of this cluster are there already',
    [slice('east', '10.1.0.1'), slice('west', '10.2.0.1')],
    { routing: '{"g":[[["east"],90],[["west"],10]]}', hasOwnAlready: true },
    ['http: 10.2.0.1'],
  ],
  [
    'own ones serve',
    [slice('east', '10.1.0.1'), slice('west', '10.2.0.1')],
    { routing: '{"g":[[["east"]]]}', hasOwnAlready: true },
    [],
  ],
])('carried slices: %s', (_what, imported, options, expected) => {
  expect(planned(imported, options)).toEqual(expected);
});

test('carried slices: more zones than hints may name -> no hints, and all that any zone uses', () => {
  const zones = Array.from({ length: 9 }, (_, index) => `z${index}`);
  const own = zones.map((zone, index) => `10.1.0.${index + 1}@${zone}${index === 0 ? '' : '!'}`).join(' ');
  expect(planned([slice('east', own)], { ...near, zone: '' })).toEqual(['http: 10.1.0.1']);
});
