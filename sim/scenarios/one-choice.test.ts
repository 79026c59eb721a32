// The three planes asked about the same service: a name without an address, the kernel's rules and xDS lead to the same
// endpoints, wherever they are and whatever the set or the service prefers.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRange } from '../../src/base/net/ip.ts';
import { Catalog } from '../../src/catalog/catalog.ts';
import { FactIndex } from '../../src/catalog/facts/fact-index.ts';
import type { ServiceImport } from '../../src/clusterset/kinds/service-import.ts';
import type { SetLocality } from '../../src/clusterset/rules/locality.ts';
import type { ClusterReach, SetNetworks } from '../../src/clusterset/rules/networks/networks.ts';
import { remoteEndpoint } from '../../src/clusterset/rules/networks/remote-endpoint.ts';
import { formatRouting, type Routing, routingAnnotation } from '../../src/clusterset/rules/routing/routing.ts';
import { Asker } from '../../src/dns/testing/ask.ts';
import type { EndpointSlice } from '../../src/kube/objects/endpoint-slice.ts';
import { planPort } from '../../src/proxy/nft/port-plan.ts';
import { ProxyState } from '../../src/proxy/state.ts';
import { emptyViewInput, viewOf } from '../../src/proxy/view.ts';
import { clustersetEndpoints } from '../../src/xds/clusterset/generate.ts';
import { clustersetServiceOf } from '../../src/xds/clusterset/service.ts';

interface Case {
  readonly self: number;
  readonly preference: SetLocality['preference'];
  readonly trafficDistribution: string | undefined;
  readonly routing: Routing | undefined;
  readonly clusters: readonly {
    readonly zone: string;
    readonly region: string;
    /** Its network: the client's own, or another with or without a gateway. */
    readonly way: 'direct' | 'gateway' | 'none';
    readonly endpoints: readonly { readonly zone: string; readonly isReady: boolean }[];
  }[];
}

const ids = ['east', 'west', 'south'];
const routings: fc.Arbitrary<Routing> = fc.record(
  {
    groups: fc.array(
      fc.record(
        { clusters: fc.subarray(ids), weight: fc.integer({ min: 5, max: 33 }) },
        { requiredKeys: ['clusters'] },
      ),
      { maxLength: 3 },
    ),
    excluded: fc.subarray(ids, { maxLength: 1 }),
    minReady: fc.oneof(fc.constant({ count: 2 }), fc.constant({ percent: 75 })),
    lowered: fc.dictionary(fc.constantFrom(...ids), fc.integer({ min: 10, max: 99 }), { maxKeys: 1 }),
  },
  { requiredKeys: ['groups', 'excluded', 'lowered'] },
);

const place = fc.constantFrom('', 'a', 'b');
const casesWith = (
  ways: readonly Case['clusters'][number]['way'][],
  routing: fc.Arbitrary<Routing | undefined>,
): fc.Arbitrary<Case> =>
  fc.record({
    self: fc.nat(2),
    preference: fc.constantFrom('Spread', 'NearestFirst'),
    trafficDistribution: fc.constantFrom(undefined, 'PreferClose', 'PreferTheMoon'),
    routing,
    clusters: fc.array(
      fc.record({
        zone: place,
        region: place,
        way: fc.constantFrom(...ways),
        endpoints: fc.array(fc.record({ zone: place, isReady: fc.boolean() }), { maxLength: 4 }),
      }),
      { minLength: 3, maxLength: 3 },
    ),
  });

const idOf = (index: number) => ids[index]!;
const addressOf = (cluster: number, endpoint: number) => `10.${cluster + 1}.0.${endpoint + 1}`;

function importOf({ trafficDistribution, routing }: Case, type: 'Headless' | 'ClusterSetIP'): ServiceImport {
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: {
      name: 'db',
      namespace: 'shop',
      ...(routing ? { annotations: { [routingAnnotation]: formatRouting(routing) } } : {}),
    },
    spec: {
      type,
      ips: type === 'Headless' ? [] : ['243.0.0.7'],
      ports: [{ name: 'sql', protocol: 'TCP', port: 5432 }],
      ...(trafficDistribution === undefined ? {} : { trafficDistribution }),
    },
  } as ServiceImport;
}

/** The clusters of another network have the addresses of the client's own. */
function networksOf({ self, clusters }: Case): SetNetworks {
  const gateways = [{ address: '203.0.113.1', port: 15443 }];
  const reach = { network: 'other', trustRoots: ['pem'] };
  const others = clusters.flatMap(({ way }, index): [string, ClusterReach][] => {
    if (way === 'direct' || index === self) return [];
    if (way === 'none') return [[idOf(index), { ...reach, gateways: [], problem: 'no gateway published' }]];
    return [[idOf(index), { ...reach, gateways, listenerPort: 15_101 + index }]];
  });
  return { own: 'default', clusters: new Map(others) };
}

function slicesOf(given: Case): EndpointSlice[] {
  const elsewhere = networksOf(given).clusters;
  return given.clusters.map(({ endpoints }, cluster) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `db-${idOf(cluster)}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': 'db',
        'multicluster.kubernetes.io/source-cluster': idOf(cluster),
      },
    },
    addressType: elsewhere.has(idOf(cluster)) ? 'FQDN' : 'IPv4',
    ports: [{ name: 'sql', protocol: 'TCP', port: 5432 }],
    endpoints: endpoints.map(({ zone, isReady }, endpoint) =>
      elsewhere.has(idOf(cluster))
        ? remoteEndpoint('IPv4', { zone: zone || undefined, isUsable: isReady })
        : {
            addresses: [addressOf(cluster, endpoint)],
            conditions: { ready: isReady },
            ...(zone === '' ? {} : { zone }),
          },
    ),
  }));
}

function localityOf({ preference, clusters }: Case): SetLocality {
  return { preference, clusters: new Map(clusters.map(({ zone, region }, index) => [idOf(index), { zone, region }])) };
}

const nodeAddress = '172.16.0.9';
const clock = { wallMs: () => 0, monotonicMs: () => 0 };

function factsOf(given: Case, type: 'Headless' | 'ClusterSetIP'): FactIndex {
  const facts = new FactIndex({ clock, holdsTraffic: true });
  facts.upsertServiceImport(importOf(given, type));
  for (const slice of slicesOf(given)) facts.upsertEndpointSlice(slice);
  return facts;
}

/** The share of new connections that each address gets. */
type Shares = ReadonlyMap<string, number>;

const questions = 256;

/** A client uses the first address that it is answered. */
async function byName(given: Case): Promise<Shares> {
  const catalog = new Catalog({ clock, cluster: { id: idOf(given.self) }, facts: factsOf(given, 'Headless') });
  catalog.setLocality(localityOf(given));
  catalog.setNetworks(networksOf(given));
  catalog.setSynced('imports');
  const asker = new Asker(catalog);
  const shares = new Map<string, number>();
  for (let asked = 0; asked < questions; asked += 1) {
    const answer = await asker.ask('db.shop.svc.clusterset.local A');
    if (!answer.startsWith('10.')) return shares;
    const all = answer.split(', ');
    for (const address of all) if (!shares.has(address)) shares.set(address, 0);
    shares.set(all[0]!, shares.get(all[0]!)! + 1 / questions);
  }
  return shares;
}

function byKernel(given: Case): Shares {
  const view = viewOf({
    ...emptyViewInput,
    cluster: idOf(given.self),
    locality: localityOf(given),
    networks: networksOf(given),
    ranges: [parseRange('243.0.0.0/8')!],
  });
  const state = new ProxyState(view, factsOf(given, 'ClusterSetIP'));
  const problems = new Map([...networksOf(given).clusters.keys()].map((id) => [id, undefined]));
  state.setNearSide({ addresses: { IPv4: nodeAddress }, problems });
  const { ports } = state.choiceOf('shop/db');
  const names = new Map(
    ports[0]!.backends.map(({ address, port, via }) => [`${address} . ${port}`, via ? `via ${via}` : address]),
  );
  const shares = new Map<string, number>();
  for (const { perMille, slots } of planPort(ports[0]!, undefined).lots)
    for (const slot of slots) {
      const name = names.get(slot)!;
      shares.set(name, (shares.get(name) ?? 0) + perMille / 1000 / slots.length);
    }
  return shares;
}

function byEnvoy(given: Case): Shares {
  const { zone, region } = given.clusters[given.self]!;
  const facts = factsOf(given, 'ClusterSetIP');
  const service = clustersetServiceOf('shop/db', facts.ownerOf('i/shop/db'), facts.slicesOf('i/shop/db'));
  const choice = {
    from: { cluster: idOf(given.self), zone, region },
    locality: localityOf(given),
    networks: networksOf(given),
  };
  const [assignment] = clustersetEndpoints(service, 'clusterset.local', choice);
  const { endpoints } = assignment!.body as unknown as {
    endpoints: {
      priority: number;
      load_balancing_weight: number;
      lb_endpoints: { endpoint: { address: { socket_address: { address: string } } } }[];
    }[];
  };
  const first = endpoints.filter(({ priority }) => priority === 0);
  const sum = first.reduce((all, group) => all + group.load_balancing_weight, 0);
  return new Map(
    first.flatMap((group) =>
      group.lb_endpoints.map(
        ({ endpoint }) =>
          [
            endpoint.address.socket_address.address,
            group.load_balancing_weight / sum / group.lb_endpoints.length,
          ] as const,
      ),
    ),
  );
}

function expectSame(found: Shares, wanted: Shares): void {
  expect([...found.keys()].sort()).toEqual([...wanted.keys()].sort());
  for (const [address, share] of wanted) expect(Math.abs(found.get(address)! - share), address).toBeLessThan(0.02);
}

test('one choice: random places, preferences, policies and readiness -> a name, the kernel and Envoy lead to the same endpoints, within 2 points of the same shares', async () => {
  let [chosen, uneven] = [0, 0];
  await fc.assert(
    fc.asyncProperty(casesWith(['direct'], fc.option(routings, { nil: undefined })), async (given) => {
      const kernel = byKernel(given);
      expectSame(await byName(given), kernel);
      expectSame(byEnvoy(given), kernel);
      chosen += kernel.size;
      if (new Set([...kernel.values()].map((share) => share.toFixed(3))).size > 1) uneven += 1;
    }),
    { numRuns: 500 },
  );
  expect(chosen).toBeGreaterThan(0);
  expect(uneven).toBeGreaterThan(20);
});

test('one choice: clusters in other networks -> a name and Envoy lead to direct endpoints, the kernel also through gateways, nobody to their addresses', async () => {
  let [through, left] = [0, 0];
  await fc.assert(
    fc.asyncProperty(casesWith(['direct', 'gateway', 'none'], fc.constant(undefined)), async (given) => {
      const shares = [byKernel(given), await byName(given), byEnvoy(given)];
      const [kernel, name, envoy] = shares.map((each) => [...each.keys()].sort()) as [string[], string[], string[]];
      expect(envoy).toEqual(name);
      const direct = kernel.filter((to) => !to.startsWith('via '));
      if (direct.length > 0) expect(direct).toEqual(name);
      const elsewhere = [...networksOf(given).clusters.keys()].map((id) => ids.indexOf(id));
      for (const address of [...name, ...direct])
        for (const cluster of elsewhere) expect(address.startsWith(`10.${cluster + 1}.`)).toBe(false);
      for (const to of kernel.filter((each) => each.startsWith('via '))) {
        const index = ids.indexOf(to.slice(4));
        expect(given.clusters[index]!.way).toBe('gateway');
        through += 1;
      }
      if (kernel.length === 0)
        for (const [index, { way, endpoints }] of given.clusters.entries())
          if (way !== 'none' || index === given.self) expect(endpoints.filter(({ isReady }) => isReady)).toEqual([]);
          else left += endpoints.length;
    }),
    { numRuns: 500 },
  );
  expect(through).toBeGreaterThan(20);
  expect(left).toBeGreaterThan(0);
});
