import { expect, test } from 'vitest';
import type { FederatedService } from '../kinds/federated-service.ts';
import { isPlacedIn } from './placement.ts';
import { serviceFromTemplate } from './plan-service.ts';

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
});

test.each([
  [undefined, true],
  [['east'], true],
  [['west'], false],
  [[], false],
])('federated service: clusters %j -> in east %j', (clusters, expected) => {
  expect(isPlacedIn(federated('a.b', clusters), 'east')).toBe(expected);
});
