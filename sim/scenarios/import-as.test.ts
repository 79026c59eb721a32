// Imports under other names than their services have in the clusterset: who gets a name, and what is said of who does not.

import { describe, expect, test } from 'vitest';
import { addressClaimType } from '../../src/addresses/address-claim.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import {
  type ServiceImportPolicy,
  type ServiceImportPolicySpec,
  serviceImportPolicyType,
} from '../../src/clusterset/kinds/service-import-policy.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { SimClusterSet } from '../clusterset.ts';
import { find } from '../look.ts';
import { service, serviceExport, slice } from '../manifests.ts';

async function eastExports(...keys: string[]) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop', 'bank'] });
  const [east, west] = [set.home('east').admin, set.home('west').admin];
  const settle = () => set.time.advance(3_000);
  const exportIt = async (key: string) => {
    await east.create(serviceType, service(key));
    await east.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.1'] }));
    await east.create(serviceExportType, serviceExport(key));
  };
  for (const key of keys) await exportIt(key);
  await settle();
  /** `namespace/name <- service it is of`, of all imports in west. */
  const imports = async () => {
    const { items } = await west.list<ServiceImport>(serviceImportType);
    return items
      .map(({ metadata: { namespace, name, annotations } }) => {
        const from = annotations?.['portolan.dev/imported-from'];
        return from === undefined ? `${namespace}/${name}` : `${namespace}/${name} <- ${from}`;
      })
      .sort();
  };
  const named = async (policyName: string) => {
    const found = (await find(west, serviceImportPolicyType, `/${policyName}`)) as ServiceImportPolicy;
    const condition = (found.status?.conditions ?? []).find(({ type }) => type === 'Named');
    return `${condition?.status}: ${condition?.message}`;
  };
  return { set, east, west, settle, exportIt, imports, named };
}

function rename(name: string, spec: ServiceImportPolicySpec): ServiceImportPolicy {
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata: { name }, spec };
}

const merge = (body: object) => ({ kind: 'merge', body }) as const;
const asPay = rename('pay', { namespaces: ['shop'], services: ['checkout'], importAs: 'bank/pay' });

describe('import as', () => {
  test('another name and namespace -> import, slices and claim are there and follow the exporter; back when the policy goes', async () => {
    const { east, west, settle, imports, named } = await eastExports('shop/checkout', 'shop/cart');
    const before = (await find(west, serviceImportType, 'shop/checkout')) as ServiceImport;
    await west.create(serviceImportPolicyType, asPay);
    await settle();
    expect(await imports()).toEqual(['bank/pay <- shop/checkout', 'shop/cart']);
    expect(await named('pay')).toBe('True: all imports have the names that it gives');
    const { items: slices } = await west.list(endpointSliceType, { namespace: 'bank' });
    expect(slices.map(({ metadata }) => metadata.labels?.['multicluster.kubernetes.io/service-name'])).toEqual(['pay']);
    const pay = (await find(west, serviceImportType, 'bank/pay')) as ServiceImport;
    const claims = (await west.list(addressClaimType)).items as unknown as { spec: { owner: { name: string } } }[];
    expect(claims.filter(({ spec }) => spec.owner.name === 'pay')).toHaveLength(1);
    expect(pay.spec.ips).toHaveLength(1);
    expect(pay.spec.ports).toEqual(before.spec.ports);
    await east.patch(
      serviceType,
      { namespace: 'shop', name: 'checkout' },
      merge({ spec: { sessionAffinity: 'ClientIP' } }),
    );
    await settle();
    expect(await find(west, serviceImportType, 'bank/pay')).toMatchObject({ spec: { sessionAffinity: 'ClientIP' } });
    await west.delete(serviceImportPolicyType, { name: 'pay' });
    await settle();
    expect(await imports()).toEqual(['shop/cart', 'shop/checkout']);
    await east.delete(serviceExportType, { namespace: 'shop', name: 'checkout' });
    await settle();
    expect(await imports()).toEqual(['shop/cart']);
    expect((await west.list(endpointSliceType, { namespace: 'bank' })).items).toEqual([]);
  });

  test('the name of another import -> refused by a condition that names it, and granted when that one goes', async () => {
    const { east, west, settle, imports, named } = await eastExports('shop/checkout', 'bank/pay');
    await west.create(serviceImportPolicyType, asPay);
    await settle();
    expect(await imports()).toEqual(['bank/pay', 'shop/checkout']);
    expect(await named('pay')).toBe(
      'False: shop/checkout keeps its name and is not imported as bank/pay: that is the name of the import of bank/pay',
    );
    await east.delete(serviceExportType, { namespace: 'bank', name: 'pay' });
    await settle();
    expect(await imports()).toEqual(['bank/pay <- shop/checkout']);
    expect(await named('pay')).toMatch(/^True/);
  });

  test('a service with that name is exported later -> the import that has the name keeps it, and restarts change nothing', async () => {
    const { set, settle, exportIt, imports, named, west } = await eastExports('shop/checkout');
    await west.create(serviceImportPolicyType, asPay);
    await settle();
    await exportIt('bank/pay');
    await settle();
    expect(await imports()).toEqual(['bank/pay <- shop/checkout']);
    expect(await named('pay')).toBe(
      'False: bank/pay of the clusterset is not imported: its name here belongs to shop/checkout',
    );
    const uid = (await find(west, serviceImportType, 'bank/pay'))?.metadata.uid;
    set.killAgent('west');
    set.startAgent('west');
    await settle();
    expect((await find(west, serviceImportType, 'bank/pay'))?.metadata.uid).toBe(uid);
    await west.delete(serviceImportPolicyType, { name: 'pay' });
    await settle();
    expect(await imports()).toEqual(['bank/pay', 'shop/checkout']);
  });

  test('two services for one name, and two that swap -> the first by name has it; a swap is one', async () => {
    const { west, settle, imports, named } = await eastExports('shop/checkout', 'shop/cart', 'bank/pay');
    await west.create(serviceImportPolicyType, rename('both', { namespaces: ['shop'], importAs: 'basket' }));
    await settle();
    expect(await imports()).toEqual(['bank/pay', 'shop/basket <- shop/cart', 'shop/checkout']);
    expect(await named('both')).toContain('shop/checkout keeps its name and is not imported as shop/basket');
    await west.delete(serviceImportPolicyType, { name: 'both' });
    await settle();
    await west.create(serviceImportPolicyType, rename('a', { services: ['pay'], importAs: 'shop/cart' }));
    await west.create(serviceImportPolicyType, rename('b', { services: ['cart'], importAs: 'bank/pay' }));
    await settle();
    expect(await imports()).toEqual(['bank/pay <- shop/cart', 'shop/cart <- bank/pay', 'shop/checkout']);
  });

  test('a namespace that is not there, a foreign import, no name at all -> each said, and the service keeps its name', async () => {
    const { west, settle, imports, named } = await eastExports('shop/checkout');
    await west.create(serviceImportPolicyType, rename('all', { importAs: 'new/*' }));
    await settle();
    expect(await named('all')).toContain('there is no such namespace');
    expect(await imports()).toEqual(['shop/checkout']);
    await west.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'new' } });
    await settle();
    expect(await imports()).toEqual(['new/checkout <- shop/checkout']);
    const foreign = {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceImport',
      metadata: { name: 'pay', namespace: 'bank' },
      spec: { type: 'ClusterSetIP', ports: [{ port: 80, protocol: 'TCP' }] },
    };
    await west.create(serviceImportType, foreign as never);
    await west.patch(serviceImportPolicyType, { name: 'all' }, merge({ spec: { importAs: 'bank/pay' } }));
    await settle();
    expect(await named('all')).toContain('an import that Portolan did not write has that name');
    expect(await imports()).toEqual(['bank/pay', 'shop/checkout']);
    await expect(west.create(serviceImportPolicyType, rename('bad', { importAs: 'Not A Name' }))).rejects.toThrow();
  });

  test('a thousand policies that rename -> each service has the name of the first that selects it', async () => {
    const { west, settle, imports } = await eastExports('shop/checkout');
    for (let number = 0; number < 1000; number += 1) {
      const name = `p${String(number).padStart(3, '0')}`;
      await west.create(serviceImportPolicyType, rename(name, { importAs: `bank/${name}` }));
    }
    await settle();
    expect(await imports()).toEqual(['bank/p000 <- shop/checkout']);
  });
});
