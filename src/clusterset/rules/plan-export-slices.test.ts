import { describe, expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import { readTranslations } from './address-translation.ts';
import { createSlicePlanner, planSlices } from './plan-export-slices.ts';

const rules = { virtualRanges: [parseRange('243.0.0.0/12')!], allowedRanges: [] };
const dns = { cluster: 'east', zone: 'clusterset.local' };
const service = (spec: Service['spec'] = {}): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'checkout', namespace: 'shop' },
  spec: { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::1'], ports: [{ name: 'http', port: 80 }], ...spec },
});
const slice = (
  name: string,
  endpoints: EndpointSlice['endpoints'],
  more: Partial<EndpointSlice> = {},
): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, namespace: 'shop' },
  addressType: 'IPv4',
  endpoints,
  ports: [{ name: 'http', port: 8080 }],
  ...more,
});
const ready = (address: string) => ({ addresses: [address], conditions: { ready: true } });

describe('plan slices', () => {
  test('plan slices: each source slice -> one published slice of its own name, never re-packed [003-46]', () => {
    const sources = [slice('a', [ready('10.1.0.1')]), slice('b', [ready('10.1.0.2')])];
    const { slices, readyCount } = planSlices({ service: service(), sources, mode: 'Pods', rules, dns });
    expect(slices.map(({ name }) => name)).toEqual(['a.shop.pods', 'b.shop.pods']);
    expect(readyCount).toBe(2);
  });

  test('plan slices: an endpoint without addresses, a service without addresses and ports -> nothing of it travels', () => {
    const sources = [slice('a', [{ conditions: { ready: true } }, ready('10.1.0.1')])];
    const bare = service({ clusterIPs: undefined, clusterIP: undefined, ports: undefined });
    const planned = planSlices({ service: bare, sources, mode: 'Pods', rules, dns });
    expect(planned.slices[0]?.endpoints.flatMap(({ addresses }) => addresses)).toEqual(['10.1.0.1']);
    expect(planSlices({ service: bare, sources, mode: 'ClusterIP', rules, dns }).slices).toEqual([]);
  });

  test('plan slices: readiness left open -> ready; zone and hostname kept, node and pod not', () => {
    const endpoint = {
      addresses: ['10.1.0.1'],
      zone: 'z1',
      hostname: 'web-0',
      nodeName: 'n',
      targetRef: { name: 'p' },
    };
    const { slices } = planSlices({ service: service(), sources: [slice('a', [endpoint])], mode: 'Pods', rules, dns });
    expect(slices[0]?.endpoints).toEqual([
      {
        addresses: ['10.1.0.1'],
        conditions: { ready: true, serving: true, terminating: false },
        zone: 'z1',
        hostname: 'web-0',
      },
    ]);
  });

  test('plan slices: a hundred pods as a cluster knows them -> a third of it travels', () => {
    const endpoints = Array.from({ length: 100 }, (_, index) => ({
      addresses: [`10.123.45.${index}`],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `ip-10-123-45-${index}.eu-central-1.compute.internal`,
      targetRef: {
        kind: 'Pod',
        namespace: 'shop',
        name: `checkout-7d9c6b5f4d-x${index}`,
        uid: '6f1c1a9e-2f51-4f6e-9a59-3a0b1cd5e6f7',
      },
    }));
    const source = slice('a', endpoints);
    expect(JSON.stringify(source).length).toBeGreaterThan(27_000);
    const { slices } = planSlices({ service: service(), sources: [source], mode: 'Pods', rules, dns });
    expect(JSON.stringify(slices[0]).length).toBeLessThan(9_600);
  });

  test('plan slices: host names instead of addresses -> left out and said', () => {
    const source = slice('a', [{ addresses: ['example.org'] }], { addressType: 'FQDN' });
    const { slices, notes } = planSlices({ service: service(), sources: [source], mode: 'Pods', rules, dns });
    expect(slices).toEqual([]);
    expect(notes[0]).toContain('host names, not addresses');
  });

  test('plan slices: refused addresses -> left out and said, at most five times', () => {
    const bad = Array.from({ length: 9 }, (_, index) => ready(`127.0.0.${index + 1}`));
    const sources = [slice('a', [...bad, ready('10.1.0.1')])];
    const { slices, refused, readyCount } = planSlices({ service: service(), sources, mode: 'Pods', rules, dns });
    expect(slices[0]?.endpoints).toHaveLength(1);
    expect(readyCount).toBe(1);
    expect(refused).toHaveLength(5);
  });

  test('plan slices: ClusterIP -> one slice per family with the service ports; none listed while no pod is ready', () => {
    const up = planSlices({
      service: service(),
      sources: [slice('a', [ready('10.1.0.1')])],
      mode: 'ClusterIP',
      rules,
      dns,
    });
    expect(
      up.slices.map(({ name, addressType, endpoints, ports }) => [
        name,
        addressType,
        endpoints[0]?.addresses,
        ports[0]?.port,
      ]),
    ).toEqual([
      ['checkout.shop.ipv4', 'IPv4', ['10.96.0.1'], 80],
      ['checkout.shop.ipv6', 'IPv6', ['fd00::1'], 80],
    ]);
    expect(up).toMatchObject({ readyCount: 1, refused: [], notes: [] });
    const sources = [slice('a', [{ addresses: ['10.1.0.1'], conditions: { ready: false } }])];
    const down = planSlices({ service: service(), sources, mode: 'ClusterIP', rules, dns });
    expect(down.slices.map(({ endpoints }) => endpoints)).toEqual([[], []]);
    expect(down.readyCount).toBe(0);
  });

  test('plan slices: ClusterIP that others may not use, or none -> nothing can be reached, and why', () => {
    const plan = (spec: Service['spec']) =>
      planSlices({
        service: service({ clusterIP: undefined, clusterIPs: undefined, ...spec }),
        sources: [slice('a', [ready('10.1.0.1')]), slice('b', [ready('example.org')], { addressType: 'FQDN' })],
        mode: 'ClusterIP',
        rules,
        dns,
      });
    expect(plan({ clusterIPs: ['243.0.0.9'] })).toMatchObject({
      slices: [],
      readyCount: 0,
      refused: [expect.stringMatching(/^cluster IP refused: /)],
    });
    expect(plan({})).toMatchObject({ slices: [], readyCount: 0, refused: [] });
    expect(plan({ clusterIP: '10.96.0.1' })).toMatchObject({ slices: [{ addressType: 'IPv4' }], readyCount: 1 });
  });

  test('plan slices: headless, by its own address -> its pods; names too long for DNS are counted', () => {
    const endpoint = { ...ready('10.1.0.1'), hostname: `h${'o'.repeat(62)}` };
    const plan = (zone: string, spec: Service['spec'] = { clusterIP: 'None', clusterIPs: ['None'] }) =>
      planSlices({
        service: service(spec),
        sources: [slice('a', [endpoint, ready('10.1.0.2')])],
        mode: 'ClusterIP',
        rules,
        dns: { cluster: 'east', zone },
      });
    expect(plan('clusterset.local')).toMatchObject({ slices: [{ name: 'a.shop.pods' }], readyCount: 2, notes: [] });
    const longZone = Array.from({ length: 3 }, () => 'z'.repeat(60)).join('.');
    expect(plan(longZone).notes).toEqual([
      expect.stringMatching(/^1 endpoints have no DNS name of their own: ho+ would be longer than 253 characters$/),
    ]);
    expect(plan(longZone, {}).notes).toEqual([]);
  });

  test('plan slices: one reason for many endpoints, readiness half said -> said once, serving as ready', () => {
    const twice = [ready('127.0.0.1'), ready('127.0.0.1')];
    const half = { addresses: ['10.1.0.1'], conditions: { ready: false, terminating: true } };
    const sources = [slice('a', [...twice, half], { ports: undefined })];
    const plan = planSlices({ service: service(), sources, mode: 'Pods', rules, dns });
    expect(plan.refused).toHaveLength(1);
    expect(plan.readyCount).toBe(0);
    expect(plan.slices[0]).toMatchObject({
      endpoints: [{ conditions: { ready: false, serving: false, terminating: true } }],
      ports: [],
    });
  });

  test('plan slices: ports -> name and protocol filled in, the application protocol kept', () => {
    const ports = [{ port: 53 }, { name: 'grpc', protocol: 'UDP' as const, port: 9, appProtocol: 'h2c' }];
    const { slices } = planSlices({
      service: service(),
      sources: [slice('a', [], { ports })],
      mode: 'Pods',
      rules,
      dns,
    });
    expect(slices[0]?.ports).toEqual([{ name: '', protocol: 'TCP', port: 53 }, ports[1]]);
  });

  test('plan slices: planned again with nothing changed -> the very same objects', () => {
    const planner = createSlicePlanner();
    const sources = [slice('a', [ready('10.1.0.1')])];
    const plan = () => planSlices({ service: service(), sources, mode: 'Pods', rules, dns }, planner);
    expect(plan().slices[0]).toBe(plan().slices[0]);
    const other = planSlices({ service: service(), sources, mode: 'Pods', rules: { ...rules }, dns }, planner);
    expect(other.slices[0]).not.toBe(plan().slices[0]);
  });

  test('plan slices: translated ranges -> addresses as others reach them, in both modes; what has none is left out and said [002-31]', () => {
    const { translations } = readTranslations([
      { from: '10.1.0.0/16', to: '100.64.0.0/24' },
      { from: '10.96.0.0/16', to: '100.96.0.0/16' },
      { from: 'fd00::/64', to: 'fd99::/64' },
    ]);
    // The published address must lie in the ranges that the cluster joined with.
    const allowedRanges = ['100.64.0.0/10', 'fd99::/64'].map((text) => parseRange(text)!);
    const sources = [slice('a', [ready('10.1.0.7'), ready('10.1.9.9'), ready('10.3.0.1')])];
    const request = { service: service(), sources, dns, rules: { ...rules, allowedRanges, translations } };
    const pods = planSlices({ ...request, mode: 'Pods' });
    expect(pods.slices.map(({ endpoints }) => endpoints.flatMap(({ addresses }) => addresses))).toEqual([
      ['100.64.0.7'],
    ]);
    expect(pods.refused).toEqual([
      'endpoint 10.1.9.9 refused: the range that its own is translated to has no such address',
      'endpoint 10.3.0.1 refused: it is outside the address ranges of the cluster',
    ]);
    const own = planSlices({ ...request, mode: 'ClusterIP' });
    expect(own.slices.map(({ endpoints }) => endpoints[0]?.addresses)).toEqual([['100.96.0.1'], ['fd99::1']]);
  });
});
