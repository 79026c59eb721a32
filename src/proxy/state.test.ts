import { describe, expect, test } from 'vitest';
import { claimFor } from '../addresses/claim.ts';
import { parseRange } from '../base/net/ip.ts';
import type { ServiceImport } from '../clusterset/kinds/service-import.ts';
import { unknownLocality } from '../clusterset/rules/locality.ts';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import { ProxyState } from './state.ts';
import { emptyViewInput, type ViewInput, viewOf } from './view.ts';

const ranges = ['243.0.0.0/12', 'fd70:6f72:74f3::/64'].map((range) => parseRange(range)!);

const importOf = (name: string, spec: object) =>
  ({
    metadata: { name, namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: ['243.0.0.1'], ports: [{ name: 'http', port: 80 }], ...spec },
  }) as unknown as ServiceImport;

const sliceOf = (cluster: string, addresses: readonly unknown[], more: object = {}) =>
  ({
    metadata: {
      name: `a-${cluster}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': 'a',
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ...more,
  }) as unknown as EndpointSlice;

function stateWith(input: Partial<ViewInput> = {}): ProxyState {
  return new ProxyState(viewOf({ ...emptyViewInput, ranges, cluster: 'east', ...input }));
}

const backends = (state: ProxyState, key = 'shop/a') =>
  state.choiceOf(key).ports.map(({ backends: all }) => all.map(({ address, port }) => `${address}:${port}`));

describe('bad input', () => {
  test.each([
    [
      'a foreign address',
      { ips: ['8.8.8.8'] },
      '8.8.8.8 is outside the ranges that this proxy serves: give --range, or correct addressRanges.clusterSet',
    ],
    ['no address', { ips: ['x; flush ruleset'] }, '"x; flush ruleset" is no IP address'],
    ['an address that is no text', { ips: [null] }, 'null is no IP address'],
    ['a port that is none', { ports: [{ port: 99_999 }] }, 'port {"port":99999}: invalid'],
    ['a protocol that is none', { ports: [{ port: 80, protocol: 'tcp } ; flush' }] }, ': invalid'],
  ])('import with %s -> left out, and a problem that says so', (_what, spec, problem) => {
    const state = stateWith();
    state.facts.upsertServiceImport(importOf('a', spec));
    const choice = state.choiceOf('shop/a');
    expect(choice.problems.join()).toContain(problem);
    expect(choice.ports).toEqual([]);
  });

  test.each([
    ['loopback', '127.0.0.1', 'loopback'],
    ['multicast', '224.0.0.1', 'multicast'],
    ['itself a clusterset address', '243.0.0.9', 'itself a clusterset address'],
    ['a cluster IP of this cluster', '10.96.0.7', 'a packet is translated only once'],
  ])('endpoint that is %s -> left out, and a problem', (_what, address, problem) => {
    const state = stateWith({ serviceRanges: [parseRange('10.96.0.0/16')!] });
    state.facts.upsertServiceImport(importOf('a', {}));
    state.facts.upsertEndpointSlice(sliceOf('east', [address, '10.1.0.1']));
    expect(backends(state)).toEqual([['10.1.0.1:8080']]);
    expect(state.choiceOf('shop/a').problems.join()).toContain(problem);
  });

  test('slice of null lists, no addresses and the other family -> nothing of it, and no fault', () => {
    const state = stateWith();
    state.facts.upsertServiceImport(importOf('a', { ports: null, ips: null }));
    state.facts.upsertServiceImport(importOf('a', {}));
    state.facts.upsertEndpointSlice(sliceOf('east', [], { endpoints: null, ports: null }));
    state.facts.upsertEndpointSlice(sliceOf('west', ['fd00::1', 'nonsense', undefined]));
    expect(backends(state)).toEqual([[]]);
  });

  test('a cluster IP of another cluster -> used: there it is translated', () => {
    const state = stateWith({ serviceRanges: [parseRange('10.96.0.0/16')!] });
    state.facts.upsertServiceImport(importOf('a', {}));
    state.facts.upsertEndpointSlice(sliceOf('west', ['10.96.0.7']));
    expect(backends(state)).toEqual([['10.96.0.7:8080']]);
  });
});

describe('whose address', () => {
  const claimOf = (name: string, address = '243.0.0.1') =>
    claimFor({ kind: 'ServiceImport', namespace: 'shop', name }, address);
  const problemsOf = (state: ProxyState, key: string) => state.choiceOf(key).problems.join();
  const isServed = (state: ProxyState, key: string) => state.choiceOf(key).ports.length > 0;

  test.each(['before', 'after'])(
    'an import names the address of another, and its claim comes %s both -> served for the import that the claim names',
    (when) => {
      const state = stateWith();
      if (when === 'before') state.addresses.upsertClaim(claimOf('victim'));
      state.facts.upsertServiceImport(importOf('a-thief', {}));
      state.facts.upsertServiceImport(importOf('victim', {}));
      if (when === 'after') state.addresses.upsertClaim(claimOf('victim'));
      expect(state.takeDirty().sort()).toEqual(['shop/a-thief', 'shop/victim']);
      expect([isServed(state, 'shop/a-thief'), isServed(state, 'shop/victim')]).toEqual([false, true]);
      expect(problemsOf(state, 'shop/a-thief')).toBe(
        '243.0.0.1 belongs to ServiceImport shop/victim, as its AddressClaim says',
      );
      state.facts.removeServiceImport('shop/victim');
      expect(isServed(state, 'shop/a-thief')).toBe(false);
    },
  );

  test('the claim names another owner than an import -> served for no import', () => {
    const state = stateWith();
    state.facts.upsertServiceImport(importOf('a', {}));
    state.addresses.upsertClaim(claimFor({ kind: 'PeerService', namespace: '', name: 'a' }, '243.0.0.1'));
    expect([isServed(state, 'shop/a'), problemsOf(state, 'shop/a')]).toEqual([
      false,
      '243.0.0.1 belongs to PeerService a, as its AddressClaim says',
    ]);
  });

  test('no claim, and no agent allocates from the range -> served while one import names it, and for none of two', () => {
    const state = stateWith();
    state.addresses.setListed();
    state.facts.upsertServiceImport(importOf('a', {}));
    expect(isServed(state, 'shop/a')).toBe(true);
    state.takeDirty();
    state.facts.upsertServiceImport(importOf('b', {}));
    expect(state.takeDirty().sort()).toEqual(['shop/a', 'shop/b']);
    expect([isServed(state, 'shop/a'), isServed(state, 'shop/b')]).toEqual([false, false]);
    expect(problemsOf(state, 'shop/a')).toContain('243.0.0.1 is in ServiceImport shop/b too');
    state.facts.removeServiceImport('shop/b');
    expect(state.takeDirty().sort()).toEqual(['shop/a', 'shop/b']);
    expect(isServed(state, 'shop/a')).toBe(true);
  });

  test('no claim, and an agent allocates from the range -> not served, once all claims were listed', () => {
    const state = stateWith();
    state.facts.upsertServiceImport(importOf('a', {}));
    state.addresses.setRanges(ranges);
    expect(isServed(state, 'shop/a')).toBe(true);
    state.takeDirty();
    state.addresses.setListed();
    expect(state.takeDirty()).toEqual(['shop/a']);
    expect([isServed(state, 'shop/a'), problemsOf(state, 'shop/a')]).toEqual([
      false,
      '243.0.0.1 is in a range of the clusterset, and no AddressClaim gives it to this import',
    ]);
    state.addresses.upsertClaim(claimOf('a'));
    expect(isServed(state, 'shop/a')).toBe(true);
    state.addresses.removeClaim('243.0.0.1');
    expect([state.takeDirty(), isServed(state, 'shop/a')]).toEqual([['shop/a'], false]);
  });

  test('a claim without an owner -> served for none', () => {
    const state = stateWith();
    state.facts.upsertServiceImport(importOf('a', {}));
    state.addresses.upsertClaim({ metadata: { name: '243.0.0.1' }, spec: null } as never);
    expect(isServed(state, 'shop/a')).toBe(false);
  });

  test('ten thousand imports name one address -> the cost of one more does not grow', () => {
    const state = stateWith();
    for (let index = 0; index < 10_000; index += 1) state.facts.upsertServiceImport(importOf(`thief-${index}`, {}));
    state.takeDirty();
    state.facts.upsertServiceImport(importOf('thief-last', {}));
    expect(state.takeDirty()).toEqual(['shop/thief-last']);
    expect(problemsOf(state, 'shop/thief-last')).toContain(
      'ServiceImport shop/thief-0, shop/thief-1, shop/thief-2 and 9997 more',
    );
  });
});

test('choice: two clusters with different target ports under one name -> each with its own', () => {
  const state = stateWith();
  state.facts.upsertServiceImport(importOf('a', {}));
  state.facts.upsertEndpointSlice(sliceOf('east', ['10.1.0.1']));
  state.facts.upsertEndpointSlice(
    sliceOf('west', ['10.2.0.1'], { ports: [{ name: 'http', protocol: 'TCP', port: 9090 }] }),
  );
  expect(backends(state)).toEqual([['10.1.0.1:8080', '10.2.0.1:9090']]);
});

test('choice: a port that one cluster exposes -> only there', () => {
  const state = stateWith();
  state.facts.upsertServiceImport(
    importOf('a', {
      ports: [
        { name: 'http', port: 80 },
        { name: 'admin', port: 81 },
      ],
    }),
  );
  state.facts.upsertEndpointSlice(sliceOf('east', ['10.1.0.1']));
  const ports = [8080, 8081].map((port, i) => ({ name: ['http', 'admin'][i], protocol: 'TCP', port }));
  state.facts.upsertEndpointSlice(sliceOf('west', ['10.2.0.1'], { ports }));
  expect(backends(state)).toEqual([['10.1.0.1:8080', '10.2.0.1:8080'], ['10.2.0.1:8081']]);
});

test('choice: NearestFirst -> the own cluster while it has a ready endpoint, then the region', () => {
  const clusters = new Map([
    ['east', { region: 'north' }],
    ['west', { region: 'north' }],
    ['south', { region: 'south' }],
  ]);
  const state = stateWith({ locality: { preference: 'NearestFirst', clusters } });
  state.facts.upsertServiceImport(importOf('a', {}));
  for (const [cluster, host] of [
    ['east', 1],
    ['west', 2],
    ['south', 3],
  ] as const)
    state.facts.upsertEndpointSlice(sliceOf(cluster, [`10.${host}.0.1`]));
  expect(backends(state)).toEqual([['10.1.0.1:8080']]);
  state.facts.upsertEndpointSlice(sliceOf('east', []));
  expect(backends(state)).toEqual([['10.2.0.1:8080']]);
  state.setView(viewOf({ ...emptyViewInput, ranges, cluster: 'east', locality: unknownLocality }));
  expect(backends(state)).toEqual([['10.3.0.1:8080', '10.2.0.1:8080']]);
});

test.each([
  ['the pod range is known', { nodeRanges: [parseRange('10.1.1.0/24')!] }, ['10.1.1.1:8080'], ''],
  [
    'the Node object says it',
    { node: { metadata: { name: 'n' }, spec: { podCIDRs: ['10.1.1.0/24'] } } },
    ['10.1.1.1:8080'],
    '',
  ],
  ['nobody knows it', {}, ['10.1.0.1:8080', '10.1.1.1:8080'], 'give --node-range'],
])(
  'internalTrafficPolicy Local: %s -> endpoints of this node, else of its cluster',
  (_what, input, expected, problem) => {
    const state = stateWith(input as Partial<ViewInput>);
    state.facts.upsertServiceImport(importOf('a', { internalTrafficPolicy: 'Local' }));
    state.facts.upsertEndpointSlice(sliceOf('east', ['10.1.0.1', '10.1.1.1']));
    state.facts.upsertEndpointSlice(sliceOf('west', ['10.2.0.1']));
    expect(backends(state)).toEqual([expected]);
    expect(state.choiceOf('shop/a').problems.join()).toContain(problem);
  },
);
