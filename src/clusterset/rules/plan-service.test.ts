import { expect, test } from 'vitest';
import type { Service, ServiceSpec } from '../../kube/objects/service.ts';
import type { FederatedService } from '../kinds/federated-service.ts';
import { isMadeHere } from './agent-marks.ts';
import { isPlacedIn } from './placement.ts';
import { appliedAnnotation, serviceFor, serviceFromTemplate, whyMadeAnew, withTemplate } from './plan-service.ts';

const federated = (name: string, clusters?: string[]): FederatedService => ({
  apiVersion: 'portolan.dev/v1alpha1',
  kind: 'FederatedService',
  metadata: { name, namespace: 'prod' },
  spec: { clusters, template: { labels: { a: 'b' }, spec: { ports: [{ port: 80 }] } } },
});

test('federated service: template -> the Service it names, a copy', () => {
  const from = federated('checkout.shop');
  const service = serviceFromTemplate(from)!;
  expect(service).toEqual({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'checkout', namespace: 'shop', labels: { a: 'b' } },
    spec: { ports: [{ port: 80 }] },
  });
  service.spec!.ports![0]!.port = 81;
  expect(from.spec.template.spec.ports![0]!.port).toBe(80);
});

test('federated service: name without a namespace -> no Service', () => {
  expect(serviceFromTemplate(federated('checkout'))).toBeUndefined();
  expect(serviceFor(federated('checkout'), 'east')).toBeUndefined();
});

test.each([
  [undefined, true],
  [['east'], true],
  [['west'], false],
  [[], false],
])('federated service: clusters %j -> in east %j', (clusters, expected) => {
  expect(isPlacedIn(federated('a.b', clusters), 'east')).toBe(expected);
});

/** The Service of a template with that spec and those annotations, as east makes it. */
function wantedWith(spec: ServiceSpec, annotations?: Record<string, string>): Service {
  const from = federated('checkout.shop');
  return serviceFor({ ...from, spec: { template: { labels: { a: 'b' }, annotations, spec } } }, 'east')!;
}

test('placed service: made by this cluster -> marked with where it comes from and what the template said', () => {
  const made = wantedWith({ ports: [{ port: 80 }] }, { note: 'x' });
  expect(isMadeHere(made, 'east')).toBe(true);
  expect(isMadeHere(made, 'west')).toBe(false);
  expect(made.metadata.labels).toEqual({ a: 'b', 'portolan.dev/federated-service': 'checkout.shop' });
  expect(JSON.parse(made.metadata.annotations![appliedAnnotation]!)).toEqual({
    annotations: ['note'],
    spec: { ports: [{ port: 80 }] },
  });
});

test('placed service: the template no longer says something -> taken away; what the home or people added stays', () => {
  const before = wantedWith({ ports: [{ port: 80, appProtocol: 'h2c' }], externalName: 'x' }, { note: 'x' });
  const present = structuredClone(before);
  present.metadata.annotations!['theirs'] = 'y';
  Object.assign(present.spec!, { clusterIP: '10.96.0.1', type: 'NodePort' });
  Object.assign(present.spec!.ports![0]!, { nodePort: 30_080, protocol: 'TCP' });
  const after = withTemplate(present, wantedWith({ ports: [{ port: 80 }, { port: 80, protocol: 'UDP' }] }));
  expect(after.spec).toEqual({
    clusterIP: '10.96.0.1',
    type: 'NodePort',
    ports: [
      { port: 80, protocol: 'TCP', nodePort: 30_080 },
      { port: 80, protocol: 'UDP' },
    ],
  });
  expect(Object.keys(after.metadata.annotations!).sort()).toEqual([
    'portolan.dev/applied-template',
    'portolan.dev/made-as',
    'theirs',
  ]);
});

test.each(['{', 'null', '{"annotations":7}', undefined])(
  'placed service: applied %j -> nothing is taken away',
  (text) => {
    const wanted = wantedWith({ ports: [] });
    const present = { ...wanted, spec: { clusterIP: '10.96.0.1' } };
    present.metadata = { ...wanted.metadata, annotations: { kept: 'y', ...(text && { [appliedAnnotation]: text }) } };
    const after = withTemplate(present, wanted);
    expect(after.metadata.annotations).toEqual({ kept: 'y', ...wanted.metadata.annotations });
    expect(after.spec).toEqual({ clusterIP: '10.96.0.1', ports: [] });
  },
);

const filledIn = {
  sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
  externalTrafficPolicy: 'Cluster',
  healthCheckNodePort: 30_001,
  allocateLoadBalancerNodePorts: true,
  loadBalancerClass: 'x',
  ports: [{ port: 80, nodePort: 30_080 }],
};
const ofAffinity = ['sessionAffinityConfig'];
const ofNodes = ['externalTrafficPolicy', 'healthCheckNodePort'];
const ofBalancers = ['allocateLoadBalancerNodePorts', 'loadBalancerClass'];

test.each<[ServiceSpec, string[]]>([
  [{}, []],
  [{ type: 'ClusterIP' }, []],
  [{ type: 'ExternalName' }, []],
  [{ type: 'NodePort' }, [...ofNodes, 'nodePort']],
  [{ type: 'LoadBalancer' }, [...ofBalancers, ...ofNodes, 'nodePort']],
  [{ sessionAffinity: 'ClientIP' }, ofAffinity],
  [{ ports: [{ port: 80, nodePort: 30_080 }] }, ['nodePort']],
  [{ loadBalancerClass: 'y' } as ServiceSpec, ['loadBalancerClass']],
])('placed service: template %j -> of the defaults of another type stay %j', (spec, expected) => {
  const wanted = wantedWith({ ports: [{ port: 80 }], ...spec });
  const after = withTemplate({ ...wanted, metadata: { name: 'checkout' }, spec: filledIn as ServiceSpec }, wanted);
  const kept = [...ofAffinity, ...ofNodes, ...ofBalancers].filter((field) => field in after.spec!);
  if (after.spec!.ports![0]!.nodePort !== undefined) kept.push('nodePort');
  expect(kept.sort()).toEqual(expected.sort());
});

test.each<[ServiceSpec, ServiceSpec, string | undefined]>([
  [{ clusterIP: '10.96.0.1' }, {}, undefined],
  [{ clusterIP: '10.96.0.1' }, { clusterIP: '10.96.0.1' }, undefined],
  [{ clusterIP: '10.96.0.1' }, { clusterIP: '10.96.0.2' }, 'clusterIP 10.96.0.1 cannot be changed to 10.96.0.2'],
  [{ clusterIP: '10.96.0.1' }, { clusterIP: 'None' }, 'clusterIP 10.96.0.1 cannot be changed to None'],
  [{ clusterIP: 'None' }, {}, 'clusterIP None cannot be changed to an allocated one'],
  [{ clusterIP: 'None' }, { clusterIP: 'None' }, undefined],
  [{}, { clusterIP: '10.96.0.2' }, 'clusterIP allocated cannot be changed to 10.96.0.2'],
  [{ clusterIP: 'None' }, { type: 'ExternalName' }, undefined],
  [{ type: 'ExternalName' }, { clusterIP: 'None' }, undefined],
  [{ ipFamilies: ['IPv4'] }, { ipFamilies: ['IPv6'] }, 'its first family, IPv4, cannot be changed to IPv6'],
  [{ ipFamilies: ['IPv4'] }, { ipFamilies: ['IPv4', 'IPv6'] }, undefined],
  [{ ipFamilies: ['IPv4'] }, {}, undefined],
  [{}, { ipFamilies: ['IPv6'] }, undefined],
])('placed service: %j wanted as %j -> made anew because %s', (present, wanted, why) => {
  const of = (spec: ServiceSpec): Service => ({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'c' }, spec });
  expect(whyMadeAnew(of(present), of(wanted))).toBe(why);
});
