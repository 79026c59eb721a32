import { expect, test } from 'vitest';
import { type ServiceExportPolicySpec, serviceExportPolicyType } from '../kinds/service-export-policy.ts';
import { selectsService } from './export-policies.ts';

function selects(
  spec: ServiceExportPolicySpec,
  namespace: string,
  serviceLabels: Record<string, string> = {},
): boolean {
  const policy = {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: serviceExportPolicyType.kind,
    metadata: { name: 'p' },
    spec,
  };
  return selectsService(policy, {
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
