// ServiceImportPolicies of one cluster: what its imports carry, what is not imported, and what happens to wishes that make no sense.

import { describe, expect, test } from 'vitest';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { type ClusterProperty, clusterPropertyType } from '../../src/clusterset/kinds/cluster-property.ts';
import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import {
  type ServiceImportPolicy,
  type ServiceImportPolicySpec,
  serviceImportPolicyType,
} from '../../src/clusterset/kinds/service-import-policy.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { find } from '../look.ts';
import { service, serviceExport, slice } from '../manifests.ts';

async function threeClusters() {
  const set = await new SimClusterSet({ clusters: ['east', 'west', 'south'] }).start({ namespaces: ['shop'] });
  for (const id of ['east', 'west', 'south']) {
    const { admin } = set.home(id);
    await admin.create(serviceType, service('shop/web'));
    await admin.create(endpointSliceType, slice('shop/web', { endpoints: ['10.1.0.1'] }));
    await admin.create(serviceExportType, serviceExport('shop/web'));
  }
  const settle = () => set.time.advance(3_000);
  await settle();
  return { set, west: set.home('west').admin, east: set.home('east').admin, settle };
}

function policy(name: string, spec: ServiceImportPolicySpec): ServiceImportPolicy {
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata: { name }, spec };
}

async function routing(client: Client): Promise<string | undefined> {
  const found = (await find(client, serviceImportType, 'shop/web')) as ServiceImport | undefined;
  return found?.metadata.annotations?.['portolan.dev/routing'];
}

async function conditions(client: Client, name: string): Promise<string[]> {
  const found = (await find(client, serviceImportPolicyType, `/${name}`)) as ServiceImportPolicy;
  return (found.status?.conditions ?? []).map(({ type, status, message }) => `${type}=${status}: ${message}`);
}

const merge = (body: object) => ({ kind: 'merge', body }) as const;

const canary = policy('canary', {
  namespaces: ['shop'],
  clusters: [
    { clusters: ['east'], weight: 95 },
    { clusters: ['west'], weight: 5 },
  ],
});

describe('import policy', () => {
  test('weights -> on the import of this cluster alone, gone with the policy, and counted', async () => {
    const { west, east, settle } = await threeClusters();
    expect(await routing(west)).toBeUndefined();
    await west.create(serviceImportPolicyType, canary);
    await settle();
    expect(await routing(west)).toBe('{"g":[[["east"],95],[["west"],5]]}');
    expect(await routing(east)).toBeUndefined();
    expect(await find(west, serviceImportPolicyType, '/canary')).toMatchObject({ status: { imports: 1 } });
    expect(await conditions(west, 'canary')).toEqual([
      'Accepted=True: imports go by it',
      'Resolved=True: every cluster it names is a member',
      'Overlap=False: no other policy decides for its imports',
    ]);
    await west.delete(serviceImportPolicyType, { name: 'canary' });
    await settle();
    expect(await routing(west)).toBeUndefined();
  });

  test('a policy that stops making sense -> its condition says so, the import keeps what it had', async () => {
    const { west, settle } = await threeClusters();
    await west.create(serviceImportPolicyType, canary);
    await settle();
    const groups = [{ clusters: ['east'], weight: 0 }];
    await west.patch(serviceImportPolicyType, { name: 'canary' }, merge({ spec: { clusters: groups } }));
    await settle();
    expect(await routing(west)).toBe('{"g":[[["east"],95],[["west"],5]]}');
    expect((await conditions(west, 'canary'))[0]).toBe(
      'Accepted=False: all weights are 0: give one of them a part, or leave the weights out; imports keep what they had',
    );
  });

  test('two policies for one import -> the first by name, and the other names it', async () => {
    const { west, settle } = await threeClusters();
    await west.create(serviceImportPolicyType, canary);
    await west.create(serviceImportPolicyType, policy('all', { exclude: [{ clusters: ['south', 'mars'] }] }));
    await settle();
    expect(await routing(west)).toBe('{"x":["south"]}');
    expect(await conditions(west, 'canary')).toContain(
      'Overlap=True: shop/web and perhaps others go by the policy all, which is first by name',
    );
    expect(await conditions(west, 'all')).toContain('Resolved=False: no member: mars');
  });

  test('minReady: an endpoint comes and goes -> fewer count at once, more only after half a minute without a loss, also across a restart', async () => {
    const { set, west, east, settle } = await threeClusters();
    await west.create(
      serviceImportPolicyType,
      policy('enough', { clusters: [{ clusters: ['east'] }], spillover: { minReady: 2 } }),
    );
    const [own] = (await east.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' })).items.filter(
      ({ metadata }) => metadata.labels?.['multicluster.kubernetes.io/source-cluster'] === undefined,
    );
    const ready = async (...states: boolean[]) => {
      const endpoints = states.map((each, index) => ({
        addresses: [`10.1.0.${index + 1}`],
        conditions: { ready: each },
      }));
      await east.patch(endpointSliceType, { namespace: 'shop', name: own!.metadata.name }, merge({ endpoints }));
      await settle();
    };
    const plain = '{"g":[[["east"]]],"n":2}';
    await ready(true, true, true);
    expect(await routing(west)).toBe(plain);
    await ready(true, false, false);
    expect(await routing(west)).toBe(plain);
    for (let round = 0; round < 4; round += 1) {
      await ready(true, true, true);
      expect(await routing(west)).toBe('{"g":[[["east"]]],"n":2,"r":{"east":1}}');
      await ready(true, true, false);
    }
    set.killAgent('west');
    set.startAgent('west');
    await ready(true, true, true);
    expect(await routing(west)).toBe('{"g":[[["east"]]],"n":2,"r":{"east":1}}');
    await set.time.advance(24_000);
    expect(await routing(west)).toContain('"r":');
    await set.time.advance(10_000);
    expect(await routing(west)).toBe(plain);
    await ready(true, true, true, true);
    expect(await routing(west)).toBe(plain);
  });

  test('accept: false -> not imported here, elsewhere as before, and imported again when it goes', async () => {
    const { west, east, settle } = await threeClusters();
    await west.create(serviceImportPolicyType, policy('none', { services: ['web'], accept: false }));
    await settle();
    expect(await find(west, serviceImportType, 'shop/web')).toBeUndefined();
    expect(await find(east, serviceImportType, 'shop/web')).toBeDefined();
    await west.delete(serviceImportPolicyType, { name: 'none' });
    await settle();
    expect(await find(west, serviceImportType, 'shop/web')).toBeDefined();
  });

  test('the ClusterSet wishes something -> every cluster, but where a policy of its own selects the import', async () => {
    const { set, west, east, settle } = await threeClusters();
    const choice = { exclude: [{ clusters: ['south'] }] };
    await set.broker.admin.patch(clusterSetType, { namespace: setName, name: setName }, merge({ spec: { choice } }));
    await west.create(serviceImportPolicyType, canary);
    await settle();
    expect(await routing(east)).toBe('{"x":["south"]}');
    expect(await routing(west)).toBe('{"g":[[["east"],95],[["west"],5]]}');
  });

  test('an exporter wants a part of its share -> every cluster knows; what is no number lowers nothing and is told', async () => {
    const { west, east, settle } = await threeClusters();
    const annotate = (share: string) =>
      east.patch(
        serviceExportType,
        { namespace: 'shop', name: 'web' },
        merge({ metadata: { annotations: { 'portolan.dev/share': share } } }),
      );
    await annotate('20');
    await settle();
    expect(await routing(west)).toBe('{"l":{"east":20}}');
    await annotate('2000');
    await settle();
    expect(await routing(west)).toBeUndefined();
    expect(JSON.stringify(await find(east, serviceExportType, 'shop/web'))).toContain('is no number from 1 to 100');
  });

  test('an exporter writes routing itself, as metadata of its export -> no import has it, and the export says so', async () => {
    const { west, east, settle } = await threeClusters();
    const exportedAnnotations = { 'portolan.dev/routing': '{"x":["west"]}', 'portolan.dev/routed-by': 'me', team: 'a' };
    for (const client of [east, west])
      await client.patch(
        serviceExportType,
        { namespace: 'shop', name: 'web' },
        merge({ spec: { exportedAnnotations } }),
      );
    await settle();
    const found = (await find(west, serviceImportType, 'shop/web')) as ServiceImport;
    expect(found.metadata.annotations).toMatchObject({ team: 'a' });
    expect(await routing(west)).toBeUndefined();
    expect(found.metadata.annotations?.['portolan.dev/routed-by']).toBeUndefined();
    expect(JSON.stringify(await find(east, serviceExportType, 'shop/web'))).toContain('is for agents');
  });

  test('accept: false in a policy that makes no sense -> the import stays', async () => {
    const { west, settle } = await threeClusters();
    const wrong = { accept: false, clusters: [{ clusters: ['east'], weight: 0 }] };
    await west.create(serviceImportPolicyType, policy('wrong', wrong));
    await settle();
    expect(await find(west, serviceImportType, 'shop/web')).toBeDefined();
  });

  test('weights above a hundred -> refused by its condition, the import has what it had', async () => {
    const { west, settle } = await threeClusters();
    const clusters = ['east', 'west'].map((id) => ({ clusters: [id], weight: 60 }));
    await west.create(serviceImportPolicyType, policy('much', { clusters }));
    await settle();
    expect(await routing(west)).toBeUndefined();
    expect((await conditions(west, 'much'))[0]).toContain('Accepted=False: the weights add up to 120');
  });

  test('two exporters want less, each that the other serves -> both are lowered, nothing is lost', async () => {
    const { west, east, settle } = await threeClusters();
    for (const client of [east, west])
      await client.patch(
        serviceExportType,
        { namespace: 'shop', name: 'web' },
        merge({ metadata: { annotations: { 'portolan.dev/share': '1' } } }),
      );
    await settle();
    expect(await routing(west)).toBe('{"l":{"east":1,"west":1}}');
  });

  test('by a ClusterProperty of a member and by a label of its Cluster -> follows both as they come, change and go', async () => {
    const { set, west, east, settle } = await threeClusters();
    const gpu = { matchLabels: { 'gpu.example': 'a100' } };
    await west.create(
      serviceImportPolicyType,
      policy('gpu', { clusters: [{ propertySelector: gpu }, { clusterSelector: { matchLabels: { tier: 'gold' } } }] }),
    );
    await settle();
    expect(await routing(west)).toBeUndefined();
    const property = { apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: 'gpu.example' } };
    await east.create(clusterPropertyType, { ...property, spec: { value: 'a100' } } as ClusterProperty);
    await settle();
    expect(await routing(west)).toBe('{"g":[[["east"]]]}');
    const labels = { tier: 'gold' };
    await set.broker.admin.patch(clusterType, { namespace: setName, name: 'south' }, merge({ metadata: { labels } }));
    await settle();
    expect(await routing(west)).toBe('{"g":[[["east"]],[["south"]]]}');
    await east.patch(clusterPropertyType, { name: 'gpu.example' }, merge({ spec: { value: 'h100' } }));
    await settle();
    expect(await routing(west)).toBe('{"g":[[["south"]]]}');
    await east.patch(clusterPropertyType, { name: 'gpu.example' }, merge({ spec: { value: 'a100' } }));
    await settle();
    await east.delete(clusterPropertyType, { name: 'gpu.example' });
    await settle();
    expect(await routing(west)).toBe('{"g":[[["south"]]]}');
  });

  test('a thousand policies -> the first by name decides, the others say so', async () => {
    const { west, settle } = await threeClusters();
    for (let number = 999; number >= 0; number -= 1) {
      const name = `p${String(number).padStart(3, '0')}`;
      await west.create(
        serviceImportPolicyType,
        policy(name, { exclude: [{ clusters: [number === 0 ? 'south' : 'east'] }] }),
      );
    }
    for (let round = 0; round < 5; round += 1) await settle();
    expect(await routing(west)).toBe('{"x":["south"]}');
    expect(await conditions(west, 'p999')).toContain(
      'Overlap=True: shop/web and perhaps others go by the policy p000, which is first by name',
    );
  });
});
