import { expect, test } from 'vitest';
import type { ServiceSpec } from '../../kube/objects/service.ts';
import {
  type ServiceExportPolicy,
  type ServiceExportPolicySpec,
  serviceExportPolicyType,
} from '../kinds/service-export-policy.ts';
import { exportOfPolicy, policyFor, selectsService } from './export-policies.ts';

const policyOf = (name: string, spec: ServiceExportPolicySpec): ServiceExportPolicy => ({
  apiVersion: 'portolan.dev/v1alpha1',
  kind: serviceExportPolicyType.kind,
  metadata: { name },
  spec,
});

function selects(
  spec: ServiceExportPolicySpec,
  namespace: string,
  serviceLabels: Record<string, string> = {},
): boolean {
  return selectsService(policyOf('p', spec), {
    namespace: { name: namespace, labels: { team: namespace } },
    service: { name: 's', labels: serviceLabels },
  });
}

const all = { namespaceSelector: {} };

test.each<[string, boolean, boolean]>([
  ['nothing said -> nothing', selects({}, 'shop'), false],
  ['empty namespace selector -> every namespace', selects(all, 'shop'), true],
  [
    'labels of the namespace match -> selected',
    selects({ namespaceSelector: { matchLabels: { team: 'shop' } } }, 'shop'),
    true,
  ],
  [
    'labels of the namespace differ -> not',
    selects({ namespaceSelector: { matchLabels: { team: 'x' } } }, 'shop'),
    false,
  ],
  ['reserved namespace by selector -> not', selects(all, 'kube-system'), false],
  ['reserved namespace by name -> selected', selects({ namespaces: ['kube-system'] }, 'kube-system'), true],
  [
    'labels of the service match -> selected',
    selects({ ...all, serviceSelector: { matchLabels: { a: 'b' } } }, 'shop', { a: 'b' }),
    true,
  ],
  [
    'labels of the service differ -> not',
    selects({ ...all, serviceSelector: { matchLabels: { a: 'b' } } }, 'shop'),
    false,
  ],
])('export policy: %s', (_, found, expected) => expect(found).toBe(expected));

test('export policy: several select a service -> the first by name; none that is being deleted, none for ExternalName', () => {
  const deleted = policyOf('a', all);
  deleted.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  const policies = [policyOf('c', all), policyOf('b', all), deleted, policyOf('a2', {})];
  const chosen = (spec: ServiceSpec) =>
    policyFor(policies, {
      namespace: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      service: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'checkout', namespace: 'shop' }, spec },
    })?.metadata.name;
  expect(chosen({})).toBe('b');
  expect(chosen({ type: 'ExternalName' })).toBeUndefined();
});

test('export policy: its export -> marked as made here, with the options of the policy and no others', () => {
  const made = exportOfPolicy('shop/checkout', policyOf('p', all), 'east').metadata;
  expect(made).toStrictEqual({
    namespace: 'shop',
    name: 'checkout',
    labels: { 'portolan.dev/export-policy': 'p' },
    annotations: { 'portolan.dev/made-as': 'east/shop/checkout' },
  });
  const spec: ServiceExportPolicySpec = { ...all, exportTo: ['west', 'north'], onStale: 'Keep' };
  expect(exportOfPolicy('shop/checkout', policyOf('p', spec), 'east').metadata.annotations).toStrictEqual({
    ...made.annotations,
    'portolan.dev/export-to': 'west,north',
    'portolan.dev/on-stale': 'Keep',
  });
});
