// ServiceAccessPolicies of one cluster: what data planes are given, and what the policies say about themselves.

import { expect, test } from 'vitest';
import { type ServiceAccessPolicy, serviceAccessPolicyType } from '../../src/clusterset/kinds/service-access-policy.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { callersOf, readCallers } from '../../src/clusterset/rules/exports/callers.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { SimClusterSet } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { service, serviceExport } from '../manifests.ts';

const planes = { namespace: 'portolan-system', name: 'portolan-clusterset-dns' };

async function start() {
  const set = await new SimClusterSet({ clusters: ['east', 'west', 'south'] }).start({ namespaces: ['shop'] });
  const { admin } = set.home('east');
  for (const name of ['shop/db', 'shop/web']) {
    await admin.create(serviceType, service(name));
    await admin.create(serviceExportType, serviceExport(name));
  }
  const settle = () => set.time.advance(12_000);
  await settle();
  return {
    ...{ set, admin, settle },
    put: (name: string, spec: object) =>
      admin.create(serviceAccessPolicyType, {
        ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceAccessPolicy', metadata: { name, namespace: 'shop' } },
        ...{ spec },
      }),
    of: async (name: string) => {
      const written = await admin.get<ConfigMap>(configMapType, planes);
      return callersOf({ exportTo: undefined }, name, readCallers(written)).exportTo;
    },
    status: async (name: string) => {
      const ref = { namespace: 'shop', name };
      const { status } = await admin.get<ServiceAccessPolicy>(serviceAccessPolicyType, ref);
      return [status?.services, ...(status?.conditions ?? []).map(({ type, reason }) => `${type} ${reason}`)];
    },
  };
}

test('access policy: written, changed, deleted -> data planes have it, of its services alone, and it says that packets pass', async () => {
  const { put, of, status, settle, admin } = await start();
  await put('db', { services: ['db'], from: [{ cluster: 'west' }] });
  await settle();
  expect([await of('shop/db'), await of('shop/web')]).toEqual([['west'], undefined]);
  expect(await status('db')).toEqual([1, 'Accepted Accepted', 'Enforced PacketsPass']);
  await put('all', { from: [{ cluster: 'south' }, { cluster: 'moon' }] });
  await settle();
  expect([await of('shop/db'), await of('shop/web')]).toEqual([
    ['moon', 'south', 'west'],
    ['moon', 'south'],
  ]);
  expect(await status('all')).toEqual([2, 'Accepted NoSuchCluster', 'Enforced PacketsPass']);
  await admin.delete(serviceAccessPolicyType, { namespace: 'shop', name: 'all' });
  await admin.delete(serviceAccessPolicyType, { namespace: 'shop', name: 'db' });
  await settle();
  expect([await of('shop/db'), await of('shop/web')]).toEqual([undefined, undefined]);
});

test('access policy: the agent starts again -> what data planes have stays', async () => {
  const { set, put, of, settle } = await start();
  await put('db', { services: ['db'], from: [{ cluster: 'west' }] });
  await settle();
  await set.stopAgent('east');
  set.startAgent('east');
  for (let each = 0; each < 20; each += 1) {
    await set.time.advance(500);
    expect(await of('shop/db')).toEqual(['west']);
  }
});

test('explain: a service with policies -> each with its callers, and whether it is enforced', async () => {
  const { set, put, settle } = await start();
  await put('db', { services: ['db'], from: [{ cluster: 'west', namespaces: ['billing'] }, { cluster: 'south' }] });
  await settle();
  const explained = await set.time.settle(typeAt(await openDesk(set, 'east'), 'explain shop/db'));
  expect(explained.join('\n')).toContain(
    'access: policy db admits west (billing), south; Enforced=False: packets of south, west pass',
  );
  const other = await set.time.settle(typeAt(await openDesk(set, 'east'), 'explain shop/web'));
  expect(other.join('\n')).not.toContain('policy');
});
