import { describe, expect, test } from 'vitest';
import { parseRange } from '../base/net/ip.ts';
import type { ServiceImport } from '../clusterset/kinds/service-import.ts';
import { unknownLocality } from '../clusterset/rules/locality.ts';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import { ProxyState } from './state.ts';
import { emptyViewInput, type ViewInput, viewOf } from './view.ts';

const ranges = ['243.0.0.0/12', 'fd70:6f72:74f3::/64'].map((range) => parseRange(range)!);

const importOf = (name: string, spec: object, createdAt = '2026-01-01T00:00:00Z') =>
  ({
    metadata: { name, namespace: 'shop', creationTimestamp: createdAt },
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
    ['a port that is none', { ports: [{ port: 99_999 }] }, 'port {"port":99999} is none'],
    ['a protocol that is none', { ports: [{ port: 80, protocol: 'tcp } ; flush' }] }, 'is none'],
  ])('import with %s -> left out, and a problem that says so', (_what, spec, problem) => {
    const state = stateWith();
    state.upsertImport(importOf('a', spec));
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
    state.upsertImport(importOf('a', {}));
    state.upsertSlice(sliceOf('east', [address, '10.1.0.1']));
    expect(backends(state)).toEqual([['10.1.0.1:8080']]);
    expect(state.choiceOf('shop/a').problems.join()).toContain(problem);
  });

  test('slice of null lists, no addresses and the other family -> nothing of it, and no fault', () => {
    const state = stateWith();
    state.upsertImport(importOf('a', { ports: null, ips: null }));
    state.upsertImport(importOf('a', {}));
    state.upsertSlice(sliceOf('east', [], { endpoints: null, ports: null }));
    state.upsertSlice(sliceOf('west', ['fd00::1', 'nonsense', undefined]));
    expect(backends(state)).toEqual([[]]);
  });

  test('a cluster IP of another cluster -> used: there it is translated', () => {
    const state = stateWith({ serviceRanges: [parseRange('10.96.0.0/16')!] });
    state.upsertImport(importOf('a', {}));
    state.upsertSlice(sliceOf('west', ['10.96.0.7']));
    expect(backends(state)).toEqual([['10.96.0.7:8080']]);
  });

  test('two imports with one address -> the older one has it; when it goes, the other', () => {
    const state = stateWith();
    state.upsertImport(importOf('a', {}, '2026-01-02T00:00:00Z'));
    state.upsertImport(importOf('b', {}, '2026-01-01T00:00:00Z'));
    expect(state.takeDirty().sort()).toEqual(['shop/a', 'shop/b']);
    expect(state.choiceOf('shop/a')).toEqual({ ports: [], problems: ['243.0.0.1 belongs to the older import shop/b'] });
    state.removeImport('shop/b');
    expect(state.takeDirty().sort()).toEqual(['shop/a', 'shop/b']);
    expect(state.choiceOf('shop/a').ports).toHaveLength(1);
  });
});

test('choice: two clusters with different target ports under one name -> each with its own', () => {
  const state = stateWith();
  state.upsertImport(importOf('a', {}));
  state.upsertSlice(sliceOf('east', ['10.1.0.1']));
  state.upsertSlice(sliceOf('west', ['10.2.0.1'], { ports: [{ name: 'http', protocol: 'TCP', port: 9090 }] }));
  expect(backends(state)).toEqual([['10.1.0.1:8080', '10.2.0.1:9090']]);
});

test('choice: a port that one cluster exposes -> only there', () => {
  const state = stateWith();
  state.upsertImport(
    importOf('a', {
      ports: [
        { name: 'http', port: 80 },
        { name: 'admin', port: 81 },
      ],
    }),
  );
  state.upsertSlice(sliceOf('east', ['10.1.0.1']));
  const ports = [8080, 8081].map((port, i) => ({ name: ['http', 'admin'][i], protocol: 'TCP', port }));
  state.upsertSlice(sliceOf('west', ['10.2.0.1'], { ports }));
  expect(backends(state)).toEqual([['10.1.0.1:8080', '10.2.0.1:8080'], ['10.2.0.1:8081']]);
});

test('choice: NearestFirst -> the own cluster while it has a ready endpoint, then the region', () => {
  const clusters = new Map([
    ['east', { region: 'north' }],
    ['west', { region: 'north' }],
    ['south', { region: 'south' }],
  ]);
  const state = stateWith({ locality: { preference: 'NearestFirst', clusters } });
  state.upsertImport(importOf('a', {}));
  for (const [cluster, host] of [
    ['east', 1],
    ['west', 2],
    ['south', 3],
  ] as const)
    state.upsertSlice(sliceOf(cluster, [`10.${host}.0.1`]));
  expect(backends(state)).toEqual([['10.1.0.1:8080']]);
  state.upsertSlice(sliceOf('east', []));
  expect(backends(state)).toEqual([['10.2.0.1:8080']]);
  state.setView(viewOf({ ...emptyViewInput, ranges, cluster: 'east', locality: unknownLocality }));
  expect(backends(state)).toEqual([['10.2.0.1:8080', '10.3.0.1:8080']]);
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
    state.upsertImport(importOf('a', { internalTrafficPolicy: 'Local' }));
    state.upsertSlice(sliceOf('east', ['10.1.0.1', '10.1.1.1']));
    state.upsertSlice(sliceOf('west', ['10.2.0.1']));
    expect(backends(state)).toEqual([expected]);
    expect(state.choiceOf('shop/a').problems.join()).toContain(problem);
  },
);
