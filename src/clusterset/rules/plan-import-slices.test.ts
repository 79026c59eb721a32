import { describe, expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { readTranslations } from './address-translation.ts';
import {
  createImportedSlicePlanner,
  type ImportedSliceRequest,
  importedSliceName,
  isOurSlice,
  planImportedSlice,
} from './plan-import-slices.ts';

const service = { name: 'checkout', namespace: 'shop' };
const owner = { apiVersion: 'v1', kind: 'ServiceImport', name: 'checkout', uid: 'u' };
const rules = { virtualRanges: [parseRange('243.0.0.0/12')!], allowedRanges: [] };
const published = (more: Partial<EndpointSlice> = {}): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'a.shop.pods', namespace: 'prod-m-east', labels: { anything: 'else' } },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.1.0.1'] }],
  ports: [{ name: 'web', port: 8080 }],
  ...more,
});
const request = (more: Partial<ImportedSliceRequest> = {}): ImportedSliceRequest => ({
  service,
  cluster: 'east',
  published: published(),
  portNames: new Map([['web', 'http']]),
  isTrusted: true,
  rules,
  owner,
  ...more,
});
const conditionsOf = (more: Partial<ImportedSliceRequest>) =>
  planImportedSlice(request(more)).endpoints?.[0]?.conditions;

describe('plan imported slice of another network', () => {
  const text = (more: Partial<ImportedSliceRequest> = {}) =>
    JSON.stringify(planImportedSlice(request({ isOtherNetwork: true, ...more })));

  test('plan imported slice: a cluster of another network -> counted, with ports and zones, and no address', () => {
    const endpoints = [
      { addresses: ['10.1.0.1'], zone: 'eu-1', hostname: 'db-0', nodeName: 'n1' },
      { addresses: ['10.1.0.2'], conditions: { ready: false } },
      { addresses: null as unknown as string[] },
    ];
    const slice = planImportedSlice(request({ isOtherNetwork: true, published: published({ endpoints }) }));
    expect(slice.addressType).toBe('FQDN');
    expect(slice.endpoints).toEqual([
      {
        addresses: ['ipv4.gateway.invalid'],
        conditions: { ready: false, serving: true, terminating: false },
        zone: 'eu-1',
      },
      { addresses: ['ipv4.gateway.invalid'], conditions: { ready: false, serving: false, terminating: false } },
    ]);
    expect(slice.ports).toEqual([{ name: 'http', port: 8080, protocol: 'TCP' }]);
    expect(JSON.stringify(slice)).not.toMatch(/10\.1\.0|db-0|n1/);
  });

  test('plan imported slice: another network has the same addresses as the reader -> counted all the same', () => {
    const overlapping = { ...rules, readerRanges: [parseRange('10.1.0.0/16')!] };
    expect(planImportedSlice(request({ rules: overlapping })).endpoints).toEqual([]);
    expect(planImportedSlice(request({ rules: overlapping, isOtherNetwork: true })).endpoints).toHaveLength(1);
  });

  test('plan imported slice: another network, and the cluster is draining or not trusted -> not serving', () => {
    for (const more of [{ isDraining: true }, { isTrusted: false }]) expect(text(more)).toMatch(/"serving":false/);
    expect(text()).toMatch(/"serving":true/);
  });

  test('plan imported slice: another network, and another address for the service there -> marked to be asked by name', () => {
    expect(text({ isAskedByName: true })).toMatch(/ipv4\.name\.gateway\.invalid.*"serving":true/);
    const plan = createImportedSlicePlanner();
    const slice = published();
    const planned = (isAskedByName: boolean) =>
      JSON.stringify(plan(request({ published: slice, isOtherNetwork: true, isAskedByName })));
    expect([planned(false), planned(true), planned(false)].map((each) => each.includes('.name.'))).toEqual([
      false,
      true,
      false,
    ]);
  });

  test('plan imported slice: another network and a headless service -> its virtual addresses under their names, none of the others', () => {
    const endpoints = [
      { addresses: ['10.1.0.1'], hostname: 'db-0', conditions: { ready: false } },
      { addresses: ['10.1.0.9'], hostname: 'db-0', zone: 'eu-1' },
      { addresses: ['10.1.0.2'], hostname: 'db-1' },
      { addresses: null as unknown as string[] },
    ];
    const virtual = new Map([
      ['IPv4 db-0', '243.1.0.1'],
      ['IPv6 db-1', 'fd00::1'],
    ]);
    const plan = createImportedSlicePlanner();
    const slice = published({ endpoints });
    const planned = (more: Partial<ImportedSliceRequest> = {}) =>
      plan(request({ published: slice, isOtherNetwork: true, virtual, ...more }));
    expect(planned().addressType).toBe('IPv4');
    expect(planned().metadata.labels?.['portolan.dev/virtual-addresses']).toBe('true');
    const conditions = { ready: true, serving: true, terminating: false };
    expect(planned().endpoints).toEqual([{ addresses: ['243.1.0.1'], hostname: 'db-0', zone: 'eu-1', conditions }]);
    expect(planned({ isTrusted: false }).endpoints?.[0]?.conditions?.ready).toBe(false);
    expect(planned({ virtual: new Map([['IPv4 db-1', '243.1.0.2']]) }).endpoints?.[0]?.addresses).toEqual([
      '243.1.0.2',
    ]);
  });

  test('plan imported slice: another network and a derived Service -> not behind that Service', () => {
    expect(text({ derivedService: 'derived-x' })).not.toMatch(/derived-x/);
  });

  test('plan imported slice: the cluster moves to another network -> planned anew', () => {
    const plan = createImportedSlicePlanner();
    const slice = published();
    expect(plan(request({ published: slice })).addressType).toBe('IPv4');
    expect(plan(request({ published: slice, isOtherNetwork: true })).addressType).toBe('FQDN');
    expect(plan(request({ published: slice, isOtherNetwork: false })).addressType).toBe('IPv4');
  });
});

describe('plan imported slice', () => {
  test('plan imported slice: what a cluster published -> a slice of the import, with our labels and the merged port names', () => {
    const slice = planImportedSlice(request());
    expect(slice).toEqual({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: importedSliceName(service, 'east', 'a.shop.pods'),
        namespace: 'shop',
        labels: {
          'multicluster.kubernetes.io/service-name': 'checkout',
          'multicluster.kubernetes.io/source-cluster': 'east',
          'endpointslice.kubernetes.io/managed-by': 'portolan.dev',
          'app.kubernetes.io/managed-by': 'portolan',
          'service.kubernetes.io/service-proxy-name': 'portolan',
        },
        ownerReferences: [owner],
      },
      addressType: 'IPv4',
      endpoints: [
        {
          addresses: ['10.1.0.1'],
          conditions: { ready: true, serving: true, terminating: false },
          hostname: undefined,
          zone: undefined,
        },
      ],
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    });
    expect(isOurSlice(slice)).toBe(true);
    expect([isOurSlice(published()), isOurSlice({ ...slice, metadata: { name: 'x' } })]).toEqual([false, false]);
  });

  test('plan imported slice: a derived Service -> the slice stands behind it, and not behind a proxy of our name', () => {
    const labels = planImportedSlice(request({ derivedService: 'derived-1' })).metadata.labels ?? {};
    expect(labels['kubernetes.io/service-name']).toBe('derived-1');
    expect('service.kubernetes.io/service-proxy-name' in labels).toBe(false);
  });

  test('plan imported slice: lists that are null -> an empty slice', () => {
    const slice = planImportedSlice(
      request({ published: published({ endpoints: null as never, ports: null as never }) }),
    );
    expect([slice.endpoints, slice.ports]).toEqual([[], []]);
    const unaddressed = published({ endpoints: [{ addresses: null as never }] });
    expect(planImportedSlice(request({ published: unaddressed })).endpoints).toEqual([]);
  });

  test('plan imported slice: ports that the cluster does not serve in the merge -> left out; a port without a name is one', () => {
    const ports = [
      { name: 'other', port: 1 },
      { port: 2, protocol: 'UDP' as const },
      { name: 'web', port: 3 },
    ];
    const portNames = new Map([
      ['', 'dns'],
      ['web', 'http'],
    ]);
    expect(planImportedSlice(request({ published: published({ ports }), portNames })).ports).toEqual([
      { name: 'dns', port: 2, protocol: 'UDP' },
      { name: 'http', port: 3, protocol: 'TCP' },
    ]);
  });

  test('plan imported slice: addresses that lead nowhere or are ours -> left out, and endpoints without any others', () => {
    const endpoints = [{ addresses: ['127.0.0.1', '10.1.0.2'] }, { addresses: ['243.0.0.1'] }];
    const slice = planImportedSlice(request({ published: published({ endpoints }) }));
    expect(slice.endpoints?.map(({ addresses }) => addresses)).toEqual([['10.1.0.2']]);
  });

  test('plan imported slice: what this very cluster published -> its own addresses again', () => {
    const { translations } = readTranslations([{ from: '10.1.0.0/16', to: '192.168.0.0/16' }]);
    expect(planImportedSlice(request({ translations })).endpoints?.[0]?.addresses).toEqual(['192.168.0.1']);
  });

  test('plan imported slice: other fields of an endpoint -> hostname and zone, nothing else', () => {
    const endpoint = {
      addresses: ['10.1.0.1'],
      hostname: 'web-0',
      zone: 'z1',
      nodeName: 'n',
      targetRef: { name: 'p' },
    };
    const slice = planImportedSlice(request({ published: published({ endpoints: [endpoint] }) }));
    expect(Object.keys(slice.endpoints?.[0] ?? {})).toEqual(['addresses', 'conditions', 'hostname', 'zone']);
    expect(slice.endpoints?.[0]).toMatchObject({ hostname: 'web-0', zone: 'z1' });
  });

  test('plan imported slice: a lease that has run out -> nothing is ready or serving', () => {
    expect(conditionsOf({ isTrusted: false })).toEqual({ ready: false, serving: false, terminating: false });
  });

  test('plan imported slice: a cluster that drains -> serving still, ready no more, terminating', () => {
    expect(conditionsOf({ isDraining: true })).toEqual({ ready: false, serving: true, terminating: true });
  });

  test('plan imported slice: conditions -> as published; serving follows ready where it is left open', () => {
    const of = (conditions: object) =>
      conditionsOf({ published: published({ endpoints: [{ addresses: ['10.1.0.1'], conditions }] }) });
    expect(of({ ready: false })).toEqual({ ready: false, serving: false, terminating: false });
    expect(of({ ready: false, serving: true, terminating: true })).toEqual({
      ready: false,
      serving: true,
      terminating: true,
    });
  });
});

describe('imported slice planner', () => {
  test('imported slice planner: asked again with the same -> the very same object; with anything else -> a new one', () => {
    const plan = createImportedSlicePlanner();
    const first = request();
    const planned = plan(first);
    expect(plan({ ...first })).toBe(planned);
    const others: Partial<ImportedSliceRequest>[] = [
      { cluster: 'west' },
      { isTrusted: false },
      { isDraining: true },
      { owner: { ...owner, uid: 'v' } },
      { derivedService: 'derived-1' },
      { portNames: new Map([['web', 'other']]) },
      { rules: { ...rules } },
      { translations: [] },
      { published: published() },
    ];
    for (const other of others) {
      expect(plan(first), Object.keys(other).join()).toEqual(planned);
      const before = plan(first);
      expect(plan({ ...first, ...other }), Object.keys(other).join()).not.toBe(before);
    }
  });

  test('imported slice name: other clusters and other slices -> other names', () => {
    const names = [
      importedSliceName(service, 'east', 'a'),
      importedSliceName(service, 'west', 'a'),
      importedSliceName(service, 'east', 'b'),
    ];
    expect(new Set(names).size).toBe(3);
    expect(names[0]).toMatch(/^checkout-[0-9a-f]{16}$/);
  });
});
