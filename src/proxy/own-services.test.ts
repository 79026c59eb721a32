// Rules for the cluster IPs of a cluster's own Services, and for imports whose address a derived Service lends.

import { describe, expect, test } from 'vitest';
import { parseRange } from '../base/net/ip.ts';
import { unknownLocality } from '../clusterset/rules/locality.ts';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import type { Service } from '../kube/objects/service.ts';
import { ProxyState } from './state.ts';
import { emptyViewInput, type ViewInput, viewOf } from './view.ts';

const range = (text: string) => parseRange(text)!;
const carrying = {
  ...emptyViewInput,
  cluster: 'east',
  ranges: [range('243.0.0.0/12')],
  serviceRanges: [range('10.96.0.0/16'), range('fd00:96::/112')],
  carriesServices: true,
};

function stateWith(input: Partial<ViewInput> = {}): ProxyState {
  return new ProxyState(viewOf({ ...carrying, ...input }));
}

const service = (name: string, clusterIPs: readonly string[], more: object = {}, labels: object = {}) =>
  ({
    metadata: { name, namespace: 'shop', labels },
    spec: { clusterIP: clusterIPs[0], clusterIPs, ports: [{ name: 'http', port: 80 }], ...more },
  }) as unknown as Service;

const slice = (of: string, endpoints: readonly object[], labels: object = {}) =>
  ({
    metadata: { name: `${of}-1`, namespace: 'shop', labels: { 'kubernetes.io/service-name': of, ...labels } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints,
  }) as unknown as EndpointSlice;

const at = (address: string, more: object = {}) => ({ addresses: [address], ...more });
const rules = (state: ProxyState, key: string) =>
  state
    .choiceOf(key)
    .ports.map(({ ip, port, backends }) => `${ip}:${port} > ${backends.map((to) => `${to.address}:${to.port}`)}`);

describe('own services', () => {
  test('own services: a Service and its slice -> its cluster IPs lead to its ready endpoints; gone -> to nothing', () => {
    const state = stateWith();
    state.own.upsert(service('web', ['10.96.0.5', 'fd00:96::5']));
    state.facts.upsertEndpointSlice(slice('web', [at('10.1.0.1'), at('10.1.0.2', { conditions: { ready: false } })]));
    expect(state.takeDirty()).toEqual(['service:shop/web']);
    expect(rules(state, 'service:shop/web')).toEqual(['10.96.0.5:80 > 10.1.0.1:8080', 'fd00:96::5:80 > ']);
    state.facts.removeEndpointSlice('shop/web-1');
    expect(state.takeDirty()).toEqual(['service:shop/web']);
    expect(rules(state, 'service:shop/web')[0]).toBe('10.96.0.5:80 > ');
    state.own.remove('shop/web');
    expect([state.takeDirty(), rules(state, 'service:shop/web')]).toEqual([['service:shop/web'], []]);
  });

  test.each([
    ['headless', service('a', ['None'])],
    ['an alias', service('a', [], { type: 'ExternalName', externalName: 'elsewhere.example' })],
    ["another proxy's", service('a', ['10.96.0.5'], {}, { 'service.kubernetes.io/service-proxy-name': 'other' })],
    ['without a list of ports', service('a', ['10.96.0.5'], { ports: null })],
  ])('own services: %s -> no rules', (_what, object) => {
    const state = stateWith();
    state.own.upsert(object);
    expect(state.choiceOf('service:shop/a')).toEqual({ ports: [], problems: [] });
  });

  test('own services: an address outside the ranges, or of the clusterset, or of two Services -> left out, and a problem', () => {
    const state = stateWith();
    state.own.upsert(service('a', ['192.0.2.1', '243.0.0.1']));
    expect(state.choiceOf('service:shop/a')).toEqual({
      ports: [],
      problems: ['192.0.2.1', '243.0.0.1'].map(
        (ip) => `${ip} is outside the ranges of this cluster's Services: give all of them by --service-range`,
      ),
    });
    state.own.upsert(service('b', ['10.96.0.9']));
    state.own.upsert(service('c', ['10.96.0.9']));
    expect(rules(state, 'service:shop/b')).toEqual([]);
    expect(state.choiceOf('service:shop/b').problems.join()).toContain('shop/c');
  });

  test('own services: affinity, the own node and the own zone -> as the Service says; the set prefers near ones -> not asked', () => {
    const state = stateWith({
      zone: 'z1',
      nodeRanges: [range('10.1.0.0/24')],
      locality: { ...unknownLocality, preference: 'NearestFirst' },
    });
    const endpoints = [at('10.1.0.1', { zone: 'z2' }), at('10.2.0.1', { zone: 'z1' })];
    state.own.upsert(service('a', ['10.96.0.5'], { sessionAffinity: 'ClientIP' }));
    state.facts.upsertEndpointSlice(slice('a', endpoints));
    expect(state.choiceOf('service:shop/a').ports[0]?.affinitySeconds).toBe(10_800);
    expect(rules(state, 'service:shop/a')).toEqual(['10.96.0.5:80 > 10.1.0.1:8080,10.2.0.1:8080']);
    state.own.upsert(service('a', ['10.96.0.5'], { internalTrafficPolicy: 'Local' }));
    expect(rules(state, 'service:shop/a')).toEqual(['10.96.0.5:80 > 10.1.0.1:8080']);
    state.own.upsert(service('a', ['10.96.0.5'], { trafficDistribution: 'PreferSameZone' }));
    expect(rules(state, 'service:shop/a')).toEqual(['10.96.0.5:80 > 10.2.0.1:8080']);
  });

  test('own services: the place of the node changes -> all are worked out again', () => {
    const state = stateWith();
    state.own.upsert(service('a', ['10.96.0.5']));
    state.takeDirty();
    state.setView(viewOf({ ...carrying, zone: 'z1' }));
    expect(state.takeDirty()).toEqual(['service:shop/a']);
  });
});

describe('derived services', () => {
  const label = { 'portolan.dev/derived-for': 'a' };
  const imported = {
    'multicluster.kubernetes.io/service-name': 'a',
    'multicluster.kubernetes.io/source-cluster': 'west',
  };
  const importAt = (ip: string) => ({
    metadata: { name: 'a', namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: [ip], ports: [{ name: 'http', port: 80 }] },
  });

  test('derived services: the address of the import is lent by its Service -> its rules are of the import, and the Service has none', () => {
    const state = stateWith();
    state.addresses.setListed();
    state.facts.upsertServiceImport(importAt('10.96.0.7'));
    state.facts.upsertEndpointSlice(slice('derived-1', [at('10.2.0.1')], imported));
    expect(rules(state, 'shop/a')).toEqual([]);
    state.takeDirty();
    state.own.upsert(service('derived-1', ['10.96.0.7'], {}, label));
    expect(state.takeDirty().sort()).toEqual(['service:shop/derived-1', 'shop/a']);
    expect(rules(state, 'shop/a')).toEqual(['10.96.0.7:80 > 10.2.0.1:8080']);
    expect(rules(state, 'service:shop/derived-1')).toEqual([]);
    state.own.remove('shop/derived-1');
    expect(state.takeDirty()).toContain('shop/a');
    expect(rules(state, 'shop/a')).toEqual([]);
  });

  test('derived services: an import names the cluster IP of a Service that is not derived for it -> not served', () => {
    const state = stateWith();
    state.addresses.setListed();
    state.own.upsert(service('web', ['10.96.0.7']));
    state.own.upsert(service('derived-2', ['10.96.0.8'], {}, { 'portolan.dev/derived-for': 'b' }));
    for (const ip of ['10.96.0.7', '10.96.0.8']) {
      state.facts.upsertServiceImport(importAt(ip));
      expect(rules(state, 'shop/a')).toEqual([]);
    }
  });

  test('derived services: Services are not carried -> the import is not served at such an address', () => {
    const state = stateWith({ carriesServices: false });
    state.addresses.setListed();
    state.own.upsert(service('derived-1', ['10.96.0.7'], {}, label));
    state.facts.upsertServiceImport(importAt('10.96.0.7'));
    expect(rules(state, 'shop/a')).toEqual([]);
  });
});
