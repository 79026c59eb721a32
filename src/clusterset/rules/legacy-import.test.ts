import { describe, expect, test } from 'vitest';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { Service, ServiceSpec } from '../../kube/objects/service.ts';
import type { ServiceImport } from '../kinds/service-import.ts';
import { legacyOrigin, legacyShardSpec, legacySliceOrigin, legacySlices, planLegacyImport } from './legacy-import.ts';

const own = 'lighthouse.submariner.io';
const labels = {
  [`${own}/sourceName`]: 'checkout',
  [`${own}/sourceNamespace`]: 'shop',
  [`${own}/sourceCluster`]: 'east',
};
const record = (spec: Partial<ServiceImport['spec']>, metadata: object = { labels }): ServiceImport =>
  ({ metadata: { name: 'checkout-shop-east', namespace: 'broker', ...metadata }, spec }) as ServiceImport;
const origin = { cluster: 'east', service: { name: 'checkout', namespace: 'shop' } };
const without = (label: string) => Object.fromEntries(Object.entries(labels).filter(([name]) => !name.endsWith(label)));

describe('legacy import: where it comes from', () => {
  test('legacy origin: its labels -> cluster and service; without the cluster label, the first of its status', () => {
    expect(legacyOrigin(record({}))).toEqual(origin);
    const unlabelled = record({}, { labels: without('sourceCluster') });
    expect(legacyOrigin({ ...unlabelled, status: { clusters: [{ cluster: 'west' }] } } as ServiceImport)).toEqual({
      ...origin,
      cluster: 'west',
    });
    expect(legacyOrigin(unlabelled)).toBeUndefined();
  });

  test('legacy origin: a record of another form -> none', () => {
    for (const label of ['sourceName', 'sourceNamespace'])
      expect(legacyOrigin(record({}, { labels: without(label) })), label).toBeUndefined();
    expect(legacyOrigin(record({}, { labels: undefined }))).toBeUndefined();
  });

  test('legacy slice origin: labels of early and of later agents -> the same', () => {
    const of = (given: Record<string, string> | undefined) =>
      legacySliceOrigin({ metadata: { name: 'x', labels: given } } as EndpointSlice);
    expect(of(labels)).toEqual(origin);
    const standard: Record<string, string> = {
      ...without('sourceCluster'),
      'multicluster.kubernetes.io/source-cluster': 'east',
      'multicluster.kubernetes.io/service-name': 'checkout-shop-east',
    };
    expect(of(standard)).toEqual(origin);
    const { [`${own}/sourceName`]: _name, ...unnamed } = standard;
    expect(of({ ...unnamed, 'multicluster.kubernetes.io/service-name': 'checkout' })).toEqual(origin);
    expect([of(unnamed)?.service.name, of(without('sourceNamespace')), of(without('sourceCluster'))]).toEqual([
      'checkout-shop-east',
      undefined,
      undefined,
    ]);
    expect([of(without('sourceName')), of(undefined)]).toEqual([undefined, undefined]);
  });
});

describe('legacy import: read as a shard', () => {
  test('legacy shard: address and ports inside -> the cluster IPs and ports of a shard, as old as the record', () => {
    const creationTimestamp = '2020-01-01T00:00:00Z';
    const ports = [{ name: 'http', protocol: 'TCP' as const, port: 80 }];
    const spec = { type: 'ClusterSetIP' as const, ips: ['10.96.0.1'], ports, sessionAffinity: 'ClientIP' as const };
    expect(legacyShardSpec(record(spec, { labels, creationTimestamp }))).toEqual({
      type: 'ClusterSetIP',
      exportedAt: creationTimestamp,
      ports,
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: undefined,
      ipFamilies: ['IPv4'],
      clusterIPs: ['10.96.0.1'],
    });
  });

  test('legacy shard: headless, of IPv6, or nearly empty -> no cluster IPs, that family, the defaults', () => {
    expect(legacyShardSpec(record({ type: 'Headless', ips: ['10.96.0.1'] })).clusterIPs).toEqual([]);
    expect(legacyShardSpec(record({ type: 'ClusterSetIP', ips: ['fd00::1'] })).ipFamilies).toEqual(['IPv6']);
    expect(legacyShardSpec(record({ type: 'ClusterSetIP' }))).toMatchObject({
      ports: [],
      clusterIPs: [],
      sessionAffinity: 'None',
      ipFamilies: ['IPv4'],
      exportedAt: '',
    });
  });

  const beside = (ready: boolean | undefined, name = 'pods') =>
    ({ metadata: { name }, endpoints: [{ addresses: ['10.1.0.1'], conditions: { ready } }] }) as EndpointSlice;

  test('legacy slices: a headless service -> the slices beside it', () => {
    const pods = [beside(true)];
    expect(legacySlices(record({ type: 'Headless', ips: ['10.96.0.1'] }), pods)).toEqual(pods);
  });

  test('legacy slices: a service with addresses -> one slice for each, ready as long as one pod may be', () => {
    const spec = { type: 'ClusterSetIP' as const, ips: ['10.96.0.1', 'fd00::1'], ports: [{ port: 80 } as never] };
    const slices = legacySlices(record(spec), []);
    expect(slices).toMatchObject([
      { metadata: { name: 'checkout-shop-east.10.96.0.1', namespace: 'broker' }, addressType: 'IPv4' },
      { metadata: { name: 'checkout-shop-east.fd00--1' }, addressType: 'IPv6' },
    ]);
    expect(slices[0]?.ports).toEqual([{ name: '', protocol: 'TCP', port: 80 }]);
    expect(slices[0]?.endpoints).toEqual([
      { addresses: ['10.96.0.1'], conditions: { ready: true, serving: true, terminating: false } },
    ]);
    const countWith = (...others: EndpointSlice[]) => legacySlices(record(spec), others)[0]?.endpoints?.length;
    expect([countWith(beside(true), beside(false)), countWith(beside(false)), countWith({} as never)]).toEqual([
      1, 0, 0,
    ]);
  });

  test('legacy slices: ports with names and protocols -> kept; without addresses -> none', () => {
    const ports = [{ name: 'dns', protocol: 'UDP' as const, port: 53 }];
    const slices = legacySlices(record({ type: 'ClusterSetIP', ips: ['10.96.0.1'], ports }), []);
    expect(slices[0]?.ports).toEqual(ports);
    expect(legacySlices(record({ type: 'ClusterSetIP' }), [])).toEqual([]);
    expect(legacySlices(record({ type: 'ClusterSetIP', ips: ['10.96.0.1'] }), [])[0]?.ports).toEqual([]);
  });
});

describe('legacy import: written for older agents', () => {
  const plan = (spec?: ServiceSpec) =>
    planLegacyImport({ metadata: { name: 'checkout', namespace: 'shop' }, spec } as Service, 'east', 'broker');

  test('legacy plan: a service -> read back as what it is', () => {
    const clusterIPs = ['10.96.0.1'];
    const ports = [
      { name: 'http', port: 80, appProtocol: 'h2c' },
      { name: '', port: 53, protocol: 'UDP' as const },
    ];
    const planned = plan({ clusterIPs, ports, sessionAffinity: 'ClientIP' });
    expect(planned.metadata).toMatchObject({ name: 'checkout-shop-east', namespace: 'broker' });
    expect(legacyOrigin(planned)).toEqual(origin);
    expect(JSON.parse(JSON.stringify(planned.spec))).toEqual({
      type: 'ClusterSetIP',
      ips: clusterIPs,
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, appProtocol: 'h2c' },
        { protocol: 'UDP', port: 53 },
      ],
      sessionAffinity: 'ClientIP',
    });
  });

  test('legacy plan: headless, and a service without a spec -> no addresses', () => {
    const headless = plan({ clusterIP: 'None', clusterIPs: ['None'] });
    expect([headless.spec.type, 'ips' in headless.spec]).toEqual(['Headless', false]);
    expect(plan().spec).toEqual({ type: 'ClusterSetIP', ports: [], ips: [], sessionAffinity: 'None' });
    expect('name' in (plan({ ports: [{ port: 1 }] }).spec.ports?.[0] ?? {})).toBe(false);
  });
});
