import { expect, test } from 'vitest';
import type { EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import type { Service } from '../kube/objects/service.ts';
import { endpointsManager, Shapes, serviceFacts, sliceFacts } from './facts.ts';

const service: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name: 'web', uid: 'u1', labels: { app: 'web', team: 'a' } },
  spec: { selector: { app: 'web', team: 'a', tier: 'b' }, ports: [{ port: 80 }] },
};

function slice(owner: { name: string; uid: string }): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace: 'shop',
      name: 'web-1',
      uid: 'u2',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { app: 'web', team: 'b', 'kubernetes.io/service-name': 'web' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', ...owner }],
    },
    addressType: 'IPv4',
    endpoints: [],
  };
}

const shapes = new Shapes();

test('facts: a Service whose labels repeat its name -> the same labels and selector', () => {
  expect(serviceFacts(structuredClone(service), shapes)).toMatchObject({
    name: 'web',
    labels: { app: 'web', team: 'a' },
    selector: { app: 'web', team: 'a', tier: 'b' },
  });
});

test.each([
  { name: 'web', uid: 'u1' },
  { name: 'web', uid: 'u3' },
  { name: 'other', uid: 'u1' },
])('facts: a slice of $name $uid, its Service known or not -> the same labels and owner', (owner) => {
  const known = sliceFacts(slice(owner), { service: serviceFacts(structuredClone(service), shapes), shapes });
  expect(known).toEqual(sliceFacts(slice(owner), { service: undefined, shapes }));
  const { labels, ownerReferences } = known.metadata;
  expect(labels).toMatchObject({ app: 'web', team: 'b', 'endpointslice.kubernetes.io/managed-by': endpointsManager });
  expect(ownerReferences).toMatchObject([owner]);
});

test('facts: two Services with alike ports and families -> each is held once', () => {
  const [one, other] = [1, 2].map(() => serviceFacts(structuredClone(service), shapes)!);
  expect(one!.ports).toBe(other!.ports);
  expect(one!.families).toBe(other!.families);
  const ported = structuredClone(service);
  ported.spec!.ports = [{ port: 4711 }];
  expect(serviceFacts(ported, shapes)!.ports).toEqual([{ port: 4711 }]);
});
