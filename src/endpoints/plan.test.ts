import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import type { Pod } from '../kube/objects/pod.ts';
import type { Service } from '../kube/objects/service.ts';
import { podFacts, Shapes, serviceFacts } from './facts.ts';
import { planSlices, type SlicePlan } from './plan.ts';
import { groupEndpoints } from './pod-endpoint.ts';

describe('endpoints', () => {
  test('endpoints: a ready Pod -> one slice with labels, owner, conditions, node, zone and target', () => {
    const { creates } = plan({ pods: [pod(1, { node: 'n1' })] });
    expect(creates).toEqual([
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          name: expect.stringMatching(/^web-[0-9a-f]{8}-0$/),
          namespace: 'shop',
          labels: {
            team: 'blue',
            'kubernetes.io/service-name': 'web',
            'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.portolan.dev',
          },
          ownerReferences: [
            { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'svc', controller: true, blockOwnerDeletion: true },
          ],
        },
        addressType: 'IPv4',
        endpoints: [
          {
            addresses: ['10.0.0.1'],
            conditions: { ready: true, serving: true, terminating: false },
            nodeName: 'n1',
            zone: 'zone-of-n1',
            targetRef: { kind: 'Pod', namespace: 'shop', name: 'p1', uid: 'pod-1' },
          },
        ],
        ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      },
    ]);
  });

  const conditions: [string, PodOptions, ServiceOptions, string][] = [
    ['ready', {}, {}, 'ready serving'],
    ['not ready', { isReady: false }, {}, ''],
    ['terminating and still serving', { isTerminating: true }, {}, 'serving terminating'],
    ['terminating and not serving', { isTerminating: true, isReady: false }, {}, 'terminating'],
    ['not ready, but the Service publishes those', { isReady: false }, { publishesNotReady: true }, 'ready'],
    [
      'terminating, but the Service publishes those',
      { isTerminating: true },
      { publishesNotReady: true },
      'ready serving terminating',
    ],
  ];
  test.each(conditions)(
    'endpoints: a Pod that is %s -> its conditions',
    (_what, podOptions, serviceOptions, expected) => {
      const [slice] = plan({ pods: [pod(1, podOptions)], service: serviceOptions }).creates;
      const shown = Object.entries(slice!.endpoints[0]!.conditions!).filter(([, holds]) => holds);
      expect(shown.map(([name]) => name).join(' ')).toBe(expected);
    },
  );

  test.each([{ phase: 'Succeeded' }, { phase: 'Failed' }, { ips: [] }])(
    'endpoints: a Pod with %j -> not an endpoint',
    (options) => {
      expect(plan({ pods: [pod(1, options)] }).creates[0]?.endpoints).toEqual([]);
    },
  );

  test('endpoints: a named target port that differs between Pods -> one slice for each set of ports', () => {
    const service = { targetPort: 'web' };
    const { creates } = plan({ pods: [pod(1, { port: 80 }), pod(2, { port: 81 }), pod(3, { port: 80 })], service });
    expect(creates.map(({ ports, endpoints }) => [ports?.[0]?.port, endpoints.length])).toEqual([
      [80, 2],
      [81, 1],
    ]);
  });

  test('endpoints: a named target port that a Pod does not have, or has for another protocol -> left out', () => {
    const [slice] = plan({ pods: [pod(1, { port: 80, protocol: 'UDP' })], service: { targetPort: 'web' } }).creates;
    expect(slice).toMatchObject({ ports: [], endpoints: [{ addresses: ['10.0.0.1'] }] });
  });

  test('endpoints: both families -> a slice for each; a Pod with one address is in one of them', () => {
    const pods = [pod(1, { ips: ['10.0.0.1', 'fd00::1'] }), pod(2, { ips: ['10.0.0.2'] })];
    const { creates } = plan({ pods, service: { families: ['IPv6', 'IPv4'] } });
    const shown = creates.map(({ addressType, endpoints }) => [
      addressType,
      endpoints.flatMap((each) => each.addresses),
    ]);
    expect(Object.fromEntries(shown)).toEqual({ IPv4: ['10.0.0.1', '10.0.0.2'], IPv6: ['fd00::1'] });
  });

  test('endpoints: headless with host names -> on the Pods whose subdomain is the Service, and the label', () => {
    const pods = [pod(1, { hostname: 'db-0', subdomain: 'web' }), pod(2, { hostname: 'db-1', subdomain: 'other' })];
    const [slice] = plan({ pods, service: { isHeadless: true } }).creates;
    expect(slice!.endpoints.map(({ hostname }) => hostname)).toEqual(['db-0', undefined]);
    expect(slice!.metadata.labels).toHaveProperty(['service.kubernetes.io/headless'], '');
  });

  test('endpoints: 250 Pods -> slices of 100, 100 and 50', () => {
    const { creates } = plan({ pods: pods(250) });
    expect(creates.map(({ endpoints }) => endpoints.length)).toEqual([100, 100, 50]);
    expect(new Set(creates.map(({ metadata }) => metadata.name)).size).toBe(3);
  });

  test('endpoints: nothing changed -> nothing is written', () => {
    const present = plan({ pods: pods(250) }).creates;
    expect(plan({ pods: pods(250).reverse(), present })).toEqual({ creates: [], updates: [], deletes: [] });
  });

  const single: [string, (all: Pod[]) => Pod[]][] = [
    ['becomes unready', (all) => all.with(120, pod(121, { isReady: false }))],
    ['goes', (all) => all.toSpliced(120, 1)],
    ['comes', (all) => [...all, pod(251)]],
    ['is replaced by another', (all) => all.with(120, pod(999))],
  ];
  test.each(single)('endpoints: one of 250 Pods %s -> one slice is written', (_what, change) => {
    const present = plan({ pods: pods(250) }).creates;
    const next = plan({ pods: change(pods(250)), present });
    expect([next.creates.length, next.updates.length, next.deletes.length]).toEqual([0, 1, 0]);
  });

  test('endpoints: the last Pod goes -> the slice stays and is empty; comes back -> in the same slice', () => {
    const present = plan({ pods: pods(1) }).creates;
    const emptied = plan({ pods: [], present });
    expect(emptied).toMatchObject({ creates: [], updates: [{ endpoints: [] }], deletes: [] });
    expect(plan({ pods: [], present: emptied.updates })).toEqual({ creates: [], updates: [], deletes: [] });
    expect(plan({ pods: pods(1), present: emptied.updates })).toMatchObject({
      creates: [],
      updates: [{}],
      deletes: [],
    });
  });

  test('endpoints: a Service without Pods -> one empty slice for each family', () => {
    const { creates } = plan({ pods: [], service: { families: ['IPv4', 'IPv6'] } });
    expect(creates.map(({ addressType, endpoints }) => [addressType, endpoints])).toEqual([
      ['IPv4', []],
      ['IPv6', []],
    ]);
  });

  test('endpoints: the ports of the Service change -> the new slice is made, the old one goes', () => {
    const present = plan({ pods: pods(2) }).creates;
    const next = plan({ pods: pods(2), present, service: { targetPort: 9090 } });
    expect([next.creates.length, next.updates.length, next.deletes.length]).toEqual([1, 0, 1]);
  });

  test('endpoints: labels of the Service change -> its slices follow', () => {
    const present = plan({ pods: pods(150) }).creates;
    const next = plan({ pods: pods(150), present, service: { team: 'red' } });
    expect(next.updates.map(({ metadata }) => metadata.labels?.['team'])).toEqual(['red', 'red']);
  });

  test('endpoints: any sequence of changes -> every wanted endpoint in exactly one slice, none above 100', () => {
    const changes = fc.array(fc.uniqueArray(fc.nat(260), { maxLength: 260 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(changes, (rounds) => {
        let present: EndpointSlice[] = [];
        for (const numbers of rounds) {
          present = apply(present, plan({ pods: numbers.map((number) => pod(number + 1)), present }));
          const shown = present.flatMap(({ endpoints }) => endpoints.map((each) => each.targetRef?.uid));
          expect(shown.sort()).toEqual(numbers.map((number) => `pod-${number + 1}`).sort());
          for (const slice of present) expect(slice.endpoints.length).toBeLessThanOrEqual(100);
        }
      }),
      { numRuns: 50 },
    );
  });

  test.each([{ type: 'ExternalName', selector: { app: 'web' } }, { selector: {} }, {}])(
    'endpoints: a Service with %j -> left alone',
    (spec) => {
      const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec } as Service;
      expect(serviceFacts(service, new Shapes())).toBeUndefined();
    },
  );
});

interface PodOptions {
  readonly ips?: readonly string[];
  readonly isReady?: boolean;
  readonly isTerminating?: boolean;
  readonly phase?: string;
  readonly port?: number;
  readonly protocol?: string;
  readonly node?: string;
  readonly hostname?: string;
  readonly subdomain?: string;
}

function pod(number: number, options: PodOptions = {}): Pod {
  const {
    ips = [`10.0.${number >> 8}.${number & 255}`],
    isReady = true,
    phase = 'Running',
    port = 80,
    protocol = 'TCP',
  } = options;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `p${number}`,
      namespace: 'shop',
      uid: `pod-${number}`,
      labels: { app: 'web' },
      ...(options.isTerminating ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      nodeName: options.node,
      hostname: options.hostname,
      subdomain: options.subdomain,
      containers: [{ name: 'c', ports: [{ name: 'web', containerPort: port, protocol }] }],
    },
    status: {
      phase,
      podIPs: ips.map((ip) => ({ ip })),
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
    },
  };
}

function pods(count: number): Pod[] {
  return Array.from({ length: count }, (_, index) => pod(index + 1));
}

interface ServiceOptions {
  readonly targetPort?: number | string;
  readonly families?: ('IPv4' | 'IPv6')[];
  readonly isHeadless?: boolean;
  readonly publishesNotReady?: boolean;
  readonly team?: string;
}

function plan(request: {
  pods: readonly Pod[];
  service?: ServiceOptions;
  present?: readonly EndpointSlice[];
}): SlicePlan {
  const {
    targetPort = 8080,
    families = ['IPv4'],
    isHeadless,
    publishesNotReady,
    team = 'blue',
  } = request.service ?? {};
  const service = serviceFacts(
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'shop', uid: 'svc', labels: { team } },
      spec: {
        selector: { app: 'web' },
        clusterIP: isHeadless ? 'None' : '10.96.0.1',
        ipFamilies: families,
        publishNotReadyAddresses: publishesNotReady,
        ports: [{ name: 'http', port: 80, targetPort }],
      },
    },
    new Shapes(),
  )!;
  const facts = request.pods.flatMap((each) => podFacts(each) ?? []);
  const groups = groupEndpoints({
    service,
    pods: facts,
    node: (name) => (name ? { zone: `zone-of-${name}` } : undefined),
  });
  return planSlices({ service, groups, present: request.present ?? [] });
}

function apply(present: readonly EndpointSlice[], { creates, updates, deletes }: SlicePlan): EndpointSlice[] {
  const byName = new Map(present.map((slice) => [slice.metadata.name, slice]));
  for (const slice of [...creates, ...updates]) byName.set(slice.metadata.name, slice);
  for (const slice of deletes) byName.delete(slice.metadata.name);
  return [...byName.values()];
}
