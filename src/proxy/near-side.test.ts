import { describe, expect, test } from 'vitest';
import { VirtualTime } from '../../sim/virtual-time.ts';
import type { AddressClaim } from '../addresses/address-claim.ts';
import { parseRange } from '../base/net/ip.ts';
import type { ServiceImport } from '../clusterset/kinds/service-import.ts';
import type { ClusterReach, SetNetworks } from '../clusterset/rules/networks/networks.ts';
import { remoteEndpoint } from '../clusterset/rules/networks/remote-endpoint.ts';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import { NearSide, type NearSideView } from './near-side.ts';
import { Ruleset } from './nft/ruleset.ts';
import { differenceScript, refillScript } from './nft/script.ts';
import { nodeAddressesOf } from './node-addresses.ts';
import { ProxyState } from './state.ts';
import { KernelModel } from './testing/kernel-model.ts';
import { emptyViewInput, viewOf } from './view.ts';

const reach = (listenerPort: number): ClusterReach => ({
  network: 'aws',
  gateways: [{ address: '203.0.113.1', port: 15443 }],
  trustRoots: ['pem'],
  listenerPort,
});
const networks: SetNetworks = {
  own: 'default',
  clusters: new Map([
    ['east', reach(15_201)],
    ['south', reach(15_202)],
  ]),
};
const ranges = ['243.0.0.0/12', 'fd70:6f72:74f3::/64'].map((range) => parseRange(range)!);
const nodeAddress = '10.77.0.5';

const importOf = (name: string, spec: object = {}) =>
  ({
    metadata: { name, namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: ['243.0.0.1'], ports: [{ name: 'http', port: 80 }], ...spec },
  }) as unknown as ServiceImport;

const sliceOf = (service: string, cluster: string, more: Partial<EndpointSlice>) =>
  ({
    metadata: {
      name: `${service}-${cluster}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': service,
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    addressType: 'IPv4',
    ports: [
      { name: 'http', protocol: 'TCP', port: 8080 },
      { name: 'dns', protocol: 'UDP', port: 53 },
    ],
    ...more,
  }) as unknown as EndpointSlice;

const remote = (count: number, unready = 0): Partial<EndpointSlice> => ({
  addressType: 'FQDN',
  endpoints: [
    ...Array.from({ length: count }, () => remoteEndpoint('IPv4', { isUsable: true })),
    ...Array.from({ length: unready }, () => remoteEndpoint('IPv4', { isUsable: false })),
  ],
});

const open = (more: Partial<NearSideView> = {}): NearSideView => ({
  addresses: { IPv4: nodeAddress },
  problems: new Map([
    ['east', undefined],
    ['south', undefined],
  ]),
  ...more,
});

function stateWith({
  nearSide = open(),
  isUserspace = false,
}: {
  nearSide?: NearSideView;
  isUserspace?: boolean;
} = {}) {
  const state = new ProxyState(viewOf({ ...emptyViewInput, ranges, cluster: 'west', networks, isUserspace }));
  state.setNearSide(nearSide);
  state.facts.upsertServiceImport(importOf('a'));
  state.facts.upsertEndpointSlice(sliceOf('a', 'west', { endpoints: [{ addresses: ['10.1.0.1'] }] }));
  state.facts.upsertEndpointSlice(sliceOf('a', 'east', remote(3, 2)));
  return state;
}
const backends = (state: ProxyState, key = 'shop/a') =>
  state.choiceOf(key).ports.map((port) => port.backends.map(({ address, port: to }) => `${address}:${to}`).sort());

describe('backends behind gateways', () => {
  test('proxy: a cluster behind a gateway with three ready endpoints -> the port of the node’s Envoy, three shares of four', () => {
    const state = stateWith();
    expect(backends(state)).toEqual([
      ['10.1.0.1:8080', `${nodeAddress}:15201`, `${nodeAddress}:15201`, `${nodeAddress}:15201`],
    ]);
    const kernel = new KernelModel();
    const ruleset = new Ruleset({ isHairpin: () => false });
    kernel.apply(refillScript(ruleset, { ranges }, undefined));
    const change = () =>
      kernel.apply(differenceScript(ruleset.change(state.takeDirty().map((key) => [key, state.choiceOf(key).ports]))));
    const shares = () => {
      const way = kernel.way({ ip: '243.0.0.1', protocol: 'tcp', port: 80 });
      return way.kind === 'backends' ? Object.fromEntries(way.shares) : way.kind;
    };
    change();
    expect(shares()).toEqual({ '10.1.0.1 . 8080': 0.25, [`${nodeAddress} . 15201`]: 0.75 });
    state.facts.upsertEndpointSlice(sliceOf('a', 'east', remote(1)));
    change();
    expect(shares()).toEqual({ '10.1.0.1 . 8080': 0.5, [`${nodeAddress} . 15201`]: 0.5 });
    state.facts.upsertServiceImport(importOf('a', { sessionAffinity: 'ClientIP' }));
    state.facts.upsertEndpointSlice(sliceOf('a', 'east', remote(3)));
    change();
    expect(shares()).toEqual({ '10.1.0.1 . 8080': 0.25, [`${nodeAddress} . 15201`]: 0.75 });
    state.setNearSide(
      open({
        problems: new Map([
          ['east', 'no Envoy of this node answers'],
          ['south', undefined],
        ]),
      }),
    );
    change();
    expect(shares()).toEqual({ '10.1.0.1 . 8080': 1 });
  });

  const refusals: [why: string, given: Parameters<typeof stateWith>[0]][] = [
    [
      'no Envoy of this node answers',
      { nearSide: open({ problems: new Map([['east', 'no Envoy of this node answers']]) }) },
    ],
    ['the Envoy of this node has not been asked about it yet', { nearSide: open({ problems: new Map() }) }],
    ['this node has no IPv4 address for its Envoy', { nearSide: open({ addresses: {} }) }],
    ['userspace mode carries nothing between networks', { isUserspace: true }],
  ];
  for (const [why, given] of refusals) {
    test(`proxy: ${why} -> direct endpoints alone, and a problem that says so`, () => {
      const state = stateWith(given);
      expect(backends(state)).toEqual([['10.1.0.1:8080']]);
      expect(state.choiceOf('shop/a').problems).toEqual([`3 endpoints of cluster east are not reached: ${why}`]);
    });
  }

  describe('a headless service', () => {
    const vip = '243.0.0.9';
    const virtual = (endpoint: object = {}): Partial<EndpointSlice> => ({
      metadata: {
        ...{ name: 'db-east', namespace: 'shop' },
        labels: {
          'multicluster.kubernetes.io/service-name': 'db',
          'multicluster.kubernetes.io/source-cluster': 'east',
          'portolan.dev/virtual-addresses': 'true',
        },
      },
      endpoints: [{ addresses: [vip], hostname: 'db-0', conditions: { ready: true }, ...endpoint }],
    });
    const headless = (endpoint: object = {}) => {
      const state = stateWith();
      state.addresses.setListed();
      state.facts.upsertServiceImport(importOf('db', { type: 'Headless', ips: [] }));
      state.facts.upsertEndpointSlice(sliceOf('db', 'west', { endpoints: [{ addresses: ['10.1.0.1'] }] }));
      state.facts.upsertEndpointSlice(sliceOf('db', 'east', virtual(endpoint)));
      return state;
    };
    const ways = (state: ProxyState) =>
      state
        .choiceOf('shop/db')
        .ports.map(({ ip, protocol, port, backends }) => [
          `${ip} ${protocol} ${port}`,
          backends.map(({ address, port: to }) => `${address}:${to}`).join(),
        ]);

    test('proxy: a virtual address of an endpoint -> the port for questions by name; direct endpoints need no rule', () => {
      expect(ways(headless())).toEqual([[`${vip} TCP 8080`, `${nodeAddress}:16001`]]);
      expect(ways(headless({ conditions: { ready: false } }))).toEqual([[`${vip} TCP 8080`, '']]);
    });

    test('proxy: the way to its gateway is lost -> refused, and a problem that says so', () => {
      const state = headless();
      for (const key of state.takeDirty()) state.choiceOf(key);
      state.setNearSide(open({ problems: new Map([['east', 'none of its gateways answers']]) }));
      expect(state.takeDirty()).toContain('shop/db');
      expect(ways(state)).toEqual([[`${vip} TCP 8080`, '']]);
      expect(state.choiceOf('shop/db').problems).toEqual([
        'endpoints of cluster east are not reached: none of its gateways answers',
      ]);
    });

    test('proxy: a virtual address that belongs to another import -> no rule for it', () => {
      const state = headless();
      state.facts.upsertServiceImport(importOf('a', { ips: [vip] }));
      state.addresses.upsertClaim({
        metadata: { name: vip },
        spec: { address: vip, owner: { kind: 'ServiceImport', namespace: 'shop', name: 'a' } },
      } as AddressClaim);
      for (const key of state.takeDirty()) state.choiceOf(key);
      expect(ways(state)).toEqual([]);
      expect(state.choiceOf('shop/db').problems.join()).toContain('belongs to ServiceImport shop/a');
    });
  });

  test('proxy: a UDP port of a service in another network -> not sent there, and a problem that says so', () => {
    const state = stateWith();
    state.facts.upsertServiceImport(importOf('a', { ports: [{ name: 'dns', protocol: 'UDP', port: 53 }] }));
    expect(backends(state)).toEqual([['10.1.0.1:53']]);
    expect(state.choiceOf('shop/a').problems.join()).toContain('UDP is not carried between networks, unless a');
  });

  test('proxy: a UDP port that is carried -> to its own port of the node’s Envoy, as long as a gateway answers', () => {
    const state = stateWith();
    const wish = { 'portolan.dev/routing': '{"u":[["east",53,15333]]}' };
    const spec = { ports: [{ name: 'dns', protocol: 'UDP', port: 53 }] };
    const object = importOf('a', spec);
    state.facts.upsertServiceImport({ ...object, metadata: { ...object.metadata, annotations: wish } });
    expect(backends(state)).toEqual([['10.1.0.1:53', '10.77.0.5:15333', '10.77.0.5:15333', '10.77.0.5:15333']]);
    state.setNearSide(open({ problems: new Map([['east', 'none of its gateways answers']]) }));
    expect(backends(state)).toEqual([['10.1.0.1:53']]);
  });

  test('proxy: the way to one cluster changes -> services with endpoints there are worked out again, no others', () => {
    const state = stateWith();
    state.facts.upsertServiceImport(importOf('b', { ips: ['243.0.0.2'] }));
    state.facts.upsertEndpointSlice(sliceOf('b', 'south', remote(1)));
    state.facts.upsertServiceImport(importOf('c', { ips: ['243.0.0.3'] }));
    for (const key of state.takeDirty()) state.choiceOf(key);
    state.setNearSide(
      open({
        problems: new Map([
          ['east', 'none of its gateways answers'],
          ['south', undefined],
        ]),
      }),
    );
    expect(state.takeDirty()).toEqual(['shop/a']);
    state.choiceOf('shop/a');
    state.setNearSide(open({ addresses: { IPv4: '10.77.0.6' } }));
    expect(state.takeDirty().sort()).toEqual(['shop/a', 'shop/b']);
  });
});

test('node addresses: loopback, link-local and others -> of each family the first that Pods can be forwarded to', () => {
  const own = ['127.0.0.1', '169.254.1.1', '::1', 'fe80::1', '10.0.0.7', '10.0.0.8', '2001:db9::7'];
  expect(nodeAddressesOf(own)).toEqual({ IPv4: '10.0.0.7', IPv6: '2001:db9::7' });
  expect(nodeAddressesOf(['192.0.2.1', ...own]).IPv4).not.toBe('127.0.0.1');
});

describe('the Envoy of a node', () => {
  async function watched(answer: (path: string) => number | 'refused' | 'silent') {
    const time = new VirtualTime();
    const views: NearSideView[] = [];
    let asked = 0;
    const network = {
      http: () => ({
        send: ({ path, signal }: { path: string; signal?: AbortSignal }) => {
          asked += 1;
          const status = answer(path);
          if (status === 'refused') return Promise.reject(new Error('refused'));
          if (status === 'silent')
            return new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
          return Promise.resolve({ status, headers: {}, body: new Uint8Array() });
        },
        close: () => {},
      }),
    };
    const nearSide = new NearSide({
      world: { timers: { after: (delayMs, run) => time.schedule(delayMs, run) }, network },
      health: 'http://127.0.0.1:1',
      networks: () => networks,
      addresses: () => ({ IPv4: nodeAddress }),
      onChange: (view) => views.push(view),
    });
    nearSide.start();
    return { time, nearSide, views, asked: () => asked };
  }

  test('near side: a gateway of each cluster answers -> told once, and nothing more while nothing changes', async () => {
    const { time, nearSide, views, asked } = await watched(() => 200);
    await time.advance(10_000);
    expect(views.map(({ problems }) => [...problems])).toEqual([
      [
        ['east', undefined],
        ['south', undefined],
      ],
    ]);
    expect(nearSide.unreached()).toEqual([]);
    expect(asked()).toBeLessThanOrEqual(2 * 35);
    await time.settle(nearSide.stop());
  });

  const failures: ['refused' | 'silent' | number, string][] = [
    ['refused', 'no Envoy of this node answers'],
    ['silent', 'no Envoy of this node answers'],
    [503, 'none of its gateways answers'],
    [404, 'the Envoy of this node has no way to it yet'],
  ];
  for (const [failure, problem] of failures) {
    test(`near side: the answer for east becomes ${failure} -> left within 3 s, south stays; good again -> used again within 1 s`, async () => {
      let isGood = true;
      const { time, nearSide, views } = await watched((path) => (isGood || path !== '/gateway/east' ? 200 : failure));
      await time.advance(2000);
      isGood = false;
      await time.advance(3000);
      expect([...views.at(-1)!.problems]).toEqual([
        ['east', problem],
        ['south', undefined],
      ]);
      expect(nearSide.unreached()).toEqual(['east']);
      isGood = true;
      await time.advance(2000);
      expect(nearSide.unreached()).toEqual([]);
      await time.settle(nearSide.stop());
    });
  }

  test('near side: the Envoy says that no gateway of a cluster answers -> left by the next question', async () => {
    let isGood = true;
    const { time, nearSide } = await watched(() => (isGood ? 200 : 503));
    await time.advance(2000);
    isGood = false;
    await time.advance(400);
    expect(nearSide.unreached()).toEqual(['east', 'south']);
    await time.settle(nearSide.stop());
  });

  test('near side: one question without an answer -> nothing changes', async () => {
    let bad = 0;
    const { time, nearSide, views } = await watched(() => (bad > 0 && bad-- > 0 ? 'refused' : 200));
    await time.advance(2000);
    bad = 1;
    await time.advance(3000);
    expect(views).toHaveLength(1);
    await time.settle(nearSide.stop());
  });
});
