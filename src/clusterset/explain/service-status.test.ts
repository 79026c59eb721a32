import { describe, expect, test } from 'vitest';
import type { ServiceImport } from '../kinds/service-import.ts';
import type { ServiceImportPolicy } from '../kinds/service-import-policy.ts';
import type { MergeWithConflicts } from '../rules/merge/merge.ts';
import { planSpec } from '../rules/plan-import.ts';
import type { Prediction } from './predict.ts';
import { serviceStatus } from './service-status.ts';

const merge = {
  type: 'ClusterSetIP',
  clusters: ['east'],
  excluded: [],
  conflicts: [],
  ports: [],
  ipFamilies: ['IPv4'],
} as unknown as MergeWithConflicts;
const prediction = { merge: () => merge } as unknown as Prediction;
const at = (namespace: string, name: string): ServiceImport => ({
  apiVersion: 'multicluster.x-k8s.io/v1beta1',
  kind: 'ServiceImport',
  metadata: { namespace, name },
  spec: { ...planSpec(merge, []), ips: ['243.0.0.7'] },
  status: { clusters: [{ cluster: 'east' }] },
});
const request = {
  key: 'shop/checkout',
  id: 'west',
  prediction,
  names: new Set(['shop', 'bank']),
  isUnread: () => false,
};
const refusing = { metadata: { name: 'no' }, spec: { namespaces: ['shop'], accept: false } } as ServiceImportPolicy;

describe('service status', () => {
  test('imported under another name -> in step, and the name is shown', () => {
    const imports = new Map([['shop/checkout', at('bank', 'pay')]]);
    expect(serviceStatus({ ...request, imports })).toMatchObject({
      import: 'in step',
      importedAs: 'bank/pay',
      addresses: ['243.0.0.7'],
    });
  });

  test('under its own name -> no other name is shown', () => {
    const imports = new Map([['shop/checkout', at('shop', 'checkout')]]);
    expect(serviceStatus({ ...request, imports }).importedAs).toBeUndefined();
  });

  test('a policy does not accept it -> refused by policy, not behind', () => {
    expect(serviceStatus({ ...request, imports: new Map(), policies: [refusing] }).import).toBe('refused by policy');
    expect(serviceStatus({ ...request, imports: new Map(), policies: [] }).import).toBe('behind');
  });

  test.each([
    ['IPv4', ['IPv4'], 'in step'],
    ['IPv4', ['IPv4', 'IPv6'], 'behind'],
    ['IPv4', undefined, 'in step'],
    ['IPv4,IPv6', ['IPv4', 'IPv6'], 'in step'],
    ['IPv4,IPv6', ['IPv4'], 'behind'],
  ] as const)('a service of both families imported as %s where Pods have %s -> %s', (imported, families, state) => {
    const both = { ...merge, ipFamilies: ['IPv4', 'IPv6'] } as unknown as MergeWithConflicts;
    const object = at('shop', 'checkout');
    object.spec = { ...object.spec, ipFamilies: imported.split(',') as ('IPv4' | 'IPv6')[] };
    const imports = new Map([['shop/checkout', object]]);
    const asked = { ...request, prediction: { merge: () => both } as unknown as Prediction, imports };
    expect(serviceStatus({ ...asked, ...(families && { families }) }).import).toBe(state);
  });
});
