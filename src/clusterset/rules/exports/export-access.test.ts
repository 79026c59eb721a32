import { expect, test } from 'vitest';
import type { ServiceExport } from '../../kinds/service-export.ts';
import { accessOf } from './export-access.ts';

function exportWith(
  ready: string | undefined,
  changes: Partial<ServiceExport['metadata']> = {},
  valid = 'True',
): ServiceExport {
  const condition = (type: string, status: string, reason: string) => ({
    ...{ type, status: status as 'True', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
  });
  return {
    ...{ apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport' },
    metadata: { name: 'web', namespace: 'shop', ...changes },
    status: {
      conditions: [
        condition('Valid', valid, 'Valid'),
        ...(ready === undefined ? [] : [condition('Ready', 'True', ready)]),
      ],
    },
  };
}

const to = (ids: string) => ({ annotations: { 'portolan.dev/export-to': ids } });

test.each([
  ['accepted', exportWith('Exported'), 'all'],
  ['accepted, nothing ready', exportWith('NoReadyEndpoints'), 'all'],
  ['accepted, and the broker is away', exportWith('BrokerAway'), 'all'],
  ['for some', exportWith('Exported', to('west,south')), 'south west'],
  ['for none that can be', exportWith('Exported', to('no/such')), ''],
  ['not yet published', exportWith('Pending'), 'nobody'],
  ["refused by the set's admin", exportWith('Refused'), 'nobody'],
  ['beyond the quota', exportWith('QuotaExceeded'), 'nobody'],
  ['never looked at', exportWith(undefined), 'nobody'],
  ['without its Service', exportWith('Exported', {}, 'False'), 'nobody'],
  ['being deleted', exportWith('Exported', { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'nobody'],
  [
    'with null conditions',
    { ...exportWith('Exported'), status: { conditions: null } } as unknown as ServiceExport,
    'nobody',
  ],
])('gateway access: %s -> %3$s', (_what, serviceExport, wanted) => {
  const access = accessOf(serviceExport);
  expect(access === undefined ? 'nobody' : (access.exportTo?.join(' ') ?? 'all')).toBe(wanted);
});
