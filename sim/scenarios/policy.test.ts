import { describe, expect, test } from 'vitest';
import {
  type FederatedService,
  type FederatedServiceSpec,
  federatedServiceType,
} from '../../src/clusterset/kinds/federated-service.ts';
import { type ServiceExport, serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import {
  type ServiceExportPolicy,
  type ServiceExportPolicySpec,
  serviceExportPolicyType,
} from '../../src/clusterset/kinds/service-export-policy.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { eventType, type KubernetesEvent } from '../../src/kube/objects/event.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { ResourceType } from '../../src/kube/objects/object.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { exportLine, find, importedIps, importLine, sliceLines } from '../look.ts';
import { service, serviceExport, slice } from '../manifests.ts';

async function twoClusters() {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop', 'bank'] });
  const east = set.home('east').admin;
  return { set, east, west: set.home('west').admin, settle: () => set.time.advance(3_000) };
}

function policy(name: string, spec: ServiceExportPolicySpec): ServiceExportPolicy {
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceExportPolicy', metadata: { name }, spec };
}

async function createService(client: Client, key: string, labels: Record<string, string> = {}): Promise<void> {
  const made = service(key);
  await client.create(serviceType, { ...made, metadata: { ...made.metadata, labels } });
}

async function exportedKeys(client: Client): Promise<string[]> {
  const { items } = await client.list(serviceExportType);
  return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort();
}

describe('policy', () => {
  test('policy: by namespace and label -> what it selects is exported, and no longer when it does not [003-04, 003-26]', async () => {
    const { east, west, settle } = await twoClusters();
    await createService(east, 'shop/checkout', { export: 'yes' });
    await createService(east, 'shop/internal');
    await createService(east, 'bank/vault', { export: 'yes' });
    await east.create(
      serviceExportPolicyType,
      policy('shop', { namespaces: ['shop'], serviceSelector: { matchLabels: { export: 'yes' } } }),
    );
    await settle();
    expect(await exportedKeys(east)).toEqual(['shop/checkout']);
    expect(await importLine(west, 'shop/checkout')).toBe('ClusterSetIP http:80/TCP from east');
    expect(await find(east, serviceExportPolicyType, '/shop')).toMatchObject({ status: { exportedServices: 1 } });
    await east.patch(
      serviceType,
      { namespace: 'shop', name: 'checkout' },
      {
        kind: 'merge',
        body: { metadata: { labels: { export: null } } },
      },
    );
    await settle();
    expect(await exportedKeys(east)).toEqual([]);
    expect(await importLine(west, 'shop/checkout')).toBe('none');
  });

  test('policy: by the labels of namespaces -> follows them, but kube-system and default only if named [003-37]', async () => {
    const { set, east, settle } = await twoClusters();
    await createNamespace(set.home('east'), 'kube-system').catch(() => {});
    for (const key of ['shop/a', 'default/b', 'kube-system/c']) await createService(east, key);
    await east.create(serviceExportPolicyType, policy('all', { namespaceSelector: {} }));
    await settle();
    expect(await exportedKeys(east)).toEqual(['shop/a']);
    await east.patch(
      serviceExportPolicyType,
      { name: 'all' },
      {
        kind: 'merge',
        body: { spec: { namespaces: ['default'], namespaceSelector: { matchLabels: { team: 'x' } } } },
      },
    );
    await settle();
    expect(await exportedKeys(east)).toEqual(['default/b']);
    await east.patch(namespaceType, { name: 'shop' }, { kind: 'merge', body: { metadata: { labels: { team: 'x' } } } });
    await settle();
    expect(await exportedKeys(east)).toEqual(['default/b', 'shop/a']);
  });

  test('policy: deleted -> what it made goes, what was made by hand stays [003-86]', async () => {
    const { east, settle } = await twoClusters();
    await createService(east, 'shop/checkout');
    await createService(east, 'shop/cart');
    await east.create(serviceExportType, serviceExport('shop/cart'));
    await east.create(
      serviceExportPolicyType,
      policy('shop', { namespaces: ['shop'], exportedLabels: { tier: 'gold' } }),
    );
    await settle();
    expect((await find<ServiceExport>(east, serviceExportType, 'shop/checkout'))?.spec?.exportedLabels).toEqual({
      tier: 'gold',
    });
    expect((await find<ServiceExport>(east, serviceExportType, 'shop/cart'))?.spec?.exportedLabels).toBeUndefined();
    await east.delete(serviceExportPolicyType, { name: 'shop' });
    await settle();
    expect(await exportedKeys(east)).toEqual(['shop/cart']);
  });

  test('policy: with export-to and on-stale -> its exports carry them', async () => {
    const { east, west, settle } = await twoClusters();
    await createService(east, 'shop/checkout');
    await east.create(
      serviceExportPolicyType,
      policy('shop', { namespaces: ['shop'], exportTo: ['north'], onStale: 'Keep' }),
    );
    await settle();
    expect((await find(east, serviceExportType, 'shop/checkout'))?.metadata.annotations).toMatchObject({
      'portolan.dev/export-to': 'north',
      'portolan.dev/on-stale': 'Keep',
    });
    expect(await importLine(west, 'shop/checkout')).toBe('none');
  });

  test('policy: an export that is drained, or has its order noted on it -> stays so', async () => {
    const { east, settle } = await twoClusters();
    await createService(east, 'shop/checkout');
    await east.create(serviceExportPolicyType, policy('shop', { namespaces: ['shop'] }));
    await settle();
    const annotations = {
      'portolan.dev/drain': 'true',
      'portolan.dev/exported-after': 'west',
      'portolan.dev/on-stale': 'Keep',
    };
    const ref = { namespace: 'shop', name: 'checkout' };
    await east.patch(serviceExportType, ref, { kind: 'merge', body: { metadata: { annotations } } });
    const now = async () => (await find(east, serviceExportType, 'shop/checkout'))?.metadata.annotations ?? {};
    // A change of the policy makes the agent look at the export at once.
    await east.patch(
      serviceExportPolicyType,
      { name: 'shop' },
      { kind: 'merge', body: { spec: { exportTo: ['west'] } } },
    );
    await settle();
    expect(await now()).toMatchObject({ 'portolan.dev/drain': 'true', 'portolan.dev/export-to': 'west' });
    expect(await now()).not.toHaveProperty('portolan.dev/on-stale');
  });
});

describe('what agents made', () => {
  /** As `kubectl get -o yaml | sed | kubectl create` does. */
  async function copy(client: Client, type: ResourceType, from: string, to: string): Promise<void> {
    const { metadata, ...body } = (await find<Service>(client, type, from))!;
    const { uid: _uid, resourceVersion: _rv, creationTimestamp: _at, ...kept } = metadata;
    const { clusterIP: _ip, clusterIPs: _ips, ...spec } = body.spec ?? {};
    const [namespace, name] = to.split('/') as [string, string];
    await client.create(type, { ...body, metadata: { ...kept, namespace, name }, spec });
  }

  test('placement: a placed service and its export copied under other names -> the copies stay', async () => {
    const { set, east, west, settle } = await twoClusters();
    await set.broker.admin.create(federatedServiceType, federated({ clusters: ['east'], template }));
    await settle();
    const copies = ['shop/checkout-2', 'bank/checkout'];
    for (const type of [serviceType, serviceExportType]) {
      for (const to of copies) await copy(east, type, 'shop/checkout', to);
    }
    const manifest = (await find<Service>(east, serviceType, 'shop/checkout'))!;
    const { uid: _uid, resourceVersion: _rv, ...metadata } = manifest.metadata;
    const { clusterIP: _ip, clusterIPs: _ips, ...spec } = manifest.spec!;
    await west.create(serviceType, { ...manifest, metadata, spec });
    await settle();
    const ref = { namespace: setName, name: 'checkout.shop' };
    await set.broker.admin.delete(federatedServiceType, ref);
    await settle();
    for (const type of [serviceType, serviceExportType]) {
      for (const to of copies) expect(await find(east, type, to), `${type.kind} ${to}`).toBeDefined();
      expect(await find(east, type, 'shop/checkout')).toBeUndefined();
    }
    expect(await find(west, serviceType, 'shop/checkout')).toBeDefined();
  });

  test('policy: an export that a policy made, copied under another name -> the copy stays', async () => {
    const { east, settle } = await twoClusters();
    await createService(east, 'shop/checkout', { export: 'yes' });
    await createService(east, 'shop/internal');
    const selector = { matchLabels: { export: 'yes' } };
    await east.create(serviceExportPolicyType, policy('shop', { namespaces: ['shop'], serviceSelector: selector }));
    await settle();
    await copy(east, serviceExportType, 'shop/checkout', 'shop/internal');
    await settle();
    expect(await exportedKeys(east)).toEqual(['shop/checkout', 'shop/internal']);
    await east.delete(serviceExportPolicyType, { name: 'shop' });
    await settle();
    expect(await exportedKeys(east)).toEqual(['shop/internal']);
  });
});

function federated(spec: FederatedServiceSpec) {
  const metadata = { name: 'checkout.shop', namespace: setName };
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'FederatedService', metadata, spec };
}

const template = {
  labels: { app: 'checkout' },
  spec: { ports: [{ name: 'http', port: 80 }], selector: { app: 'checkout' } },
};

/** `east Placed `, one line a cluster; then the condition. */
async function placementLines(set: SimClusterSet): Promise<string[]> {
  const found = await find<FederatedService>(set.broker.admin, federatedServiceType, `${setName}/checkout.shop`);
  const { clusters = [], conditions = [] } = found?.status ?? {};
  return [
    ...clusters.map(({ cluster, state, message }) => `${cluster} ${state} ${message ?? ''}`),
    ...conditions.map(({ type, status, reason, message }) => `${type}=${status}/${reason} ${message}`),
  ];
}

describe('placement', () => {
  test('placement: a federated service for one cluster -> service and export there, imported everywhere; moved -> moved [001-23]', async () => {
    const { set, east, west, settle } = await twoClusters();
    await set.broker.admin.create(federatedServiceType, federated({ clusters: ['east'], template }));
    await settle();
    expect(await find(east, serviceType, 'shop/checkout')).toMatchObject({ metadata: { labels: { app: 'checkout' } } });
    expect(await find(west, serviceType, 'shop/checkout')).toBeUndefined();
    expect(await importLine(west, 'shop/checkout')).toBe('ClusterSetIP http:80/TCP from east');
    expect(await exportLine(east, 'shop/checkout')).toContain('Ready=False/NoReadyEndpoints');
    await set.broker.admin.patch(
      federatedServiceType,
      { namespace: setName, name: 'checkout.shop' },
      {
        kind: 'merge',
        body: { spec: { clusters: ['west'] } },
      },
    );
    await settle();
    expect(await find(east, serviceType, 'shop/checkout')).toBeUndefined();
    expect(await importLine(east, 'shop/checkout')).toBe('ClusterSetIP http:80/TCP from west');
  });

  test('placement: a service that is used moves -> it stays where it was until it can be reached where it goes, then goes', async () => {
    const { set, east, west } = await twoClusters();
    await set.broker.admin.create(federatedServiceType, federated({ clusters: ['east'], template }));
    await set.time.advance(4_000);
    await east.create(endpointSliceType, slice('shop/checkout', { endpoints: ['10.1.0.1'] }));
    await set.time.advance(4_000);
    const [ip] = await importedIps(west, 'shop/checkout');
    const body = { spec: { clusters: ['west'] } };
    await set.broker.admin.patch(
      federatedServiceType,
      { namespace: setName, name: 'checkout.shop' },
      { kind: 'merge', body },
    );
    await set.time.advance(120_000);
    // Nothing is ready in west: its clients are still served by east.
    expect(await find(east, serviceType, 'shop/checkout')).toBeDefined();
    expect(await sliceLines(west, 'shop/checkout')).toContain('east: 10.1.0.1 on http>8080');
    await west.create(endpointSliceType, slice('shop/checkout', { endpoints: ['10.2.0.1'] }));
    for (let second = 0; second < 40; second += 1) {
      await set.time.advance(1_000);
      expect((await sliceLines(east, 'shop/checkout')).join(), `second ${second}`).toMatch(/10\.[12]\.0\.1 /);
      expect(await importedIps(west, 'shop/checkout')).toEqual([ip]);
    }
    expect(await find(east, serviceType, 'shop/checkout')).toBeUndefined();
    expect(await sliceLines(east, 'shop/checkout')).toEqual(['west: 10.2.0.1 on http>8080']);
  });

  test('placement: the template changes -> the services follow and keep their addresses; deleted -> all gone', async () => {
    const { set, east, west, settle } = await twoClusters();
    await set.broker.admin.create(federatedServiceType, federated({ template }));
    await settle();
    const before = await find<Service>(east, serviceType, 'shop/checkout');
    expect(await importLine(west, 'shop/checkout')).toBe('ClusterSetIP http:80/TCP from east,west');
    const ref = { namespace: setName, name: 'checkout.shop' };
    const body = { spec: { template: { spec: { ports: [{ name: 'http', port: 81, protocol: 'TCP' }] } } } };
    await set.broker.admin.patch(federatedServiceType, ref, { kind: 'merge', body });
    await settle();
    const after = await find<Service>(east, serviceType, 'shop/checkout');
    expect(after?.spec?.clusterIP).toBe(before?.spec?.clusterIP);
    expect(await importLine(west, 'shop/checkout')).toBe('ClusterSetIP http:81/TCP from east,west');
    await set.broker.admin.delete(federatedServiceType, ref);
    await settle();
    for (const client of [east, west]) {
      expect(await find(client, serviceType, 'shop/checkout')).toBeUndefined();
      expect(await importLine(client, 'shop/checkout')).toBe('none');
    }
  });

  test('placement: looked at again and again -> nothing is written that is as the template says', async () => {
    const writes: string[] = [];
    const set = await new SimClusterSet({
      clusters: ['east', 'west'],
      onRequest: (home, user, { verb, resource }) => {
        if (user === 'agent-east' && home === 'east' && verb === 'update' && resource === 'services') writes.push(user);
      },
    }).start({ namespaces: ['shop'] });
    await set.broker.admin.create(federatedServiceType, federated({ template }));
    await set.time.advance(3_000);
    const { admin } = set.home('east');
    const ref = { namespace: 'shop', name: 'checkout' };
    for (const label of ['a', 'b', 'c']) {
      const body = { metadata: { annotations: { label } } };
      await admin.patch(serviceType, ref, { kind: 'merge', body });
      await set.time.advance(1_000);
    }
    expect(writes).toEqual([]);
    expect((await find(admin, serviceType, 'shop/checkout'))?.metadata.annotations).toMatchObject({ label: 'c' });
  });

  test('placement: a service that somebody else made -> left alone; its placement is not forced upon it [001-24, 003-08]', async () => {
    const { set, east, settle } = await twoClusters();
    const made = await east.create(serviceType, service('shop/checkout', { ports: [{ name: 'mine', port: 9 }] }));
    await set.broker.admin.create(federatedServiceType, federated({ template }));
    await settle();
    expect((await find(east, serviceType, 'shop/checkout'))?.metadata.resourceVersion).toBe(
      made.metadata.resourceVersion,
    );
    expect(await find(east, serviceExportType, 'shop/checkout')).toBeUndefined();
    const { items } = await east.list<KubernetesEvent>(eventType, { namespace: 'shop' });
    expect(items.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
      'PlacementRefused: FederatedService checkout.shop is not placed in this cluster: Service shop/checkout has another owner; delete it, or remove this cluster from spec.clusters',
    ]);
  });

  test('placement: placed, refused, no namespace, no such member -> the status says which, and follows [001-24]', async () => {
    const { set, east, west } = await twoClusters();
    await east.create(serviceType, service('shop/checkout', { ports: [{ name: 'mine', port: 9 }] }));
    await set.broker.admin.create(
      federatedServiceType,
      federated({ clusters: ['east', 'west', 'nowhere'], template: { spec: template.spec } }),
    );
    await set.time.advance(15_000);
    expect(await placementLines(set)).toEqual([
      'east Refused Service shop/checkout has another owner; delete it, or remove this cluster from spec.clusters',
      'west Placed ',
      'nowhere Pending no such cluster is a member of the clusterset',
      'Ready=False/Refused placed in 1 of 3 clusters; east: Service shop/checkout has another owner; delete it, or remove this cluster from spec.clusters (and 1 more)',
    ]);
    await east.delete(serviceType, { namespace: 'shop', name: 'checkout' });
    await west.delete(namespaceType, { name: 'shop' });
    await set.time.advance(15_000);
    expect((await placementLines(set)).slice(0, 2)).toEqual([
      'east Placed ',
      'west Pending there is no namespace shop',
    ]);
  });

  test('placement: agents restarted while one refuses -> nobody writes a status, nobody says it again', async () => {
    const { set, east } = await twoClusters();
    await east.create(serviceType, service('shop/checkout', { ports: [{ name: 'mine', port: 9 }] }));
    await set.broker.admin.create(federatedServiceType, federated({ template }));
    await set.time.advance(15_000);
    const look = async () => [
      (await find(set.broker.admin, federatedServiceType, `${setName}/checkout.shop`))?.metadata.resourceVersion,
      (await east.list(eventType, { namespace: 'shop' })).items.length,
    ];
    const before = await look();
    expect(before[1]).toBe(1);
    for (const id of ['east', 'west']) await set.stopAgent(id);
    for (const id of ['east', 'west']) set.startAgent(id);
    await set.time.advance(60_000);
    expect(await look()).toEqual(before);
  });

  test('placement: a member vandalises the status -> put right', async () => {
    const { set } = await twoClusters();
    await set.broker.admin.create(federatedServiceType, federated({ template }));
    await set.time.advance(15_000);
    const right = await placementLines(set);
    const revision = async () =>
      (await find(set.broker.admin, federatedServiceType, `${setName}/checkout.shop`))?.metadata.resourceVersion;
    const before = await revision();
    const body = { status: { clusters: [{ cluster: 'west', state: 'Refused', message: 'says east' }] } };
    const ref = { namespace: setName, name: 'checkout.shop' };
    const east = set.memberClient('east');
    const patched = east.patch(federatedServiceType, ref, { kind: 'merge', body }, { subresource: 'status' });
    const { metadata } = await set.time.settle(patched);
    expect(metadata.resourceVersion).not.toBe(before);
    await set.time.advance(5_000);
    expect(await revision()).not.toBe(metadata.resourceVersion);
    expect(await placementLines(set)).toEqual(right);
    const spec = east.patch(federatedServiceType, ref, { kind: 'merge', body: { spec: { clusters: [] } } });
    await expect(set.time.settle(spec)).rejects.toMatchObject({ code: 403 });
  });

  test('placement: the namespace comes later -> placed then; removed while the agent is down -> cleaned when it is back', async () => {
    const { set, east, settle } = await twoClusters();
    const object = federated({ template });
    await set.broker.admin.create(federatedServiceType, {
      ...object,
      metadata: { ...object.metadata, name: 'checkout.later' },
    });
    await settle();
    await createNamespace(set.home('east'), 'later');
    await settle();
    expect(await find(east, serviceType, 'later/checkout')).toBeDefined();
    set.killAgent('east');
    await set.broker.admin.delete(federatedServiceType, { namespace: setName, name: 'checkout.later' });
    set.startAgent('east');
    await settle();
    expect(await find(east, serviceType, 'later/checkout')).toBeUndefined();
  });

  test('placement: fields leave the template -> they leave the services; what others set stays', async () => {
    const { set, east, settle } = await twoClusters();
    const rich = {
      annotations: { note: 'a', team: 'b' },
      spec: {
        type: 'NodePort' as const,
        sessionAffinity: 'ClientIP' as const,
        trafficDistribution: 'PreferClose',
        selector: { app: 'checkout' },
        ports: [{ name: 'http', port: 80, targetPort: 8080, appProtocol: 'http' }],
      },
    };
    await set.broker.admin.create(federatedServiceType, federated({ template: rich }));
    await settle();
    const ref = { namespace: setName, name: 'checkout.shop' };
    const body = { metadata: { annotations: { mine: 'stays' } }, spec: { publishNotReadyAddresses: true } };
    await east.patch(serviceType, { namespace: 'shop', name: 'checkout' }, { kind: 'merge', body });
    await settle();
    const before = (await find<Service>(east, serviceType, 'shop/checkout'))!;
    expect(before.spec).toMatchObject({
      type: 'NodePort',
      sessionAffinity: 'ClientIP',
      publishNotReadyAddresses: true,
    });
    const next = { annotations: { note: 'a' }, spec: { ports: [{ name: 'http', port: 80 }] } };
    const present = await set.broker.admin.get<FederatedService>(federatedServiceType, ref);
    await set.broker.admin.update(federatedServiceType, { ...present, spec: { template: next } });
    await settle();
    const after = (await find<Service>(east, serviceType, 'shop/checkout'))!;
    expect(after.metadata.annotations).toMatchObject({ note: 'a', mine: 'stays' });
    expect(after.metadata.annotations?.['team']).toBeUndefined();
    expect(after.spec).toEqual({
      type: 'ClusterIP',
      clusterIP: before.spec?.clusterIP,
      clusterIPs: before.spec?.clusterIPs,
      ipFamilies: before.spec?.ipFamilies,
      ipFamilyPolicy: before.spec?.ipFamilyPolicy,
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      publishNotReadyAddresses: true,
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 80 }],
    });
    expect(after.metadata.uid).toBe(before.metadata.uid);
    await settle();
    expect((await find(east, serviceType, 'shop/checkout'))?.metadata.resourceVersion).toBe(
      after.metadata.resourceVersion,
    );
  });

  test('placement: the template becomes headless, and back -> the services are made anew, and an Event says so', async () => {
    const { set, east, west, settle } = await twoClusters();
    await set.broker.admin.create(federatedServiceType, federated({ template }));
    await settle();
    const ref = { namespace: setName, name: 'checkout.shop' };
    const before = (await find<Service>(east, serviceType, 'shop/checkout'))!;
    const body = (clusterIP: string | null) => ({ spec: { template: { spec: { clusterIP } } } });
    await set.broker.admin.patch(federatedServiceType, ref, { kind: 'merge', body: body('None') });
    await set.time.advance(15_000);
    expect((await find<Service>(east, serviceType, 'shop/checkout'))?.spec?.clusterIP).toBe('None');
    expect(await importLine(west, 'shop/checkout')).toBe('Headless http:80/TCP from east,west');
    expect((await placementLines(set)).slice(0, 2)).toEqual(['east Placed ', 'west Placed ']);
    const { items } = await east.list<KubernetesEvent>(eventType, { namespace: 'shop' });
    expect(items.filter(({ reason }) => reason === 'ServiceReplaced').map(({ message }) => message)).toEqual([
      `recreated, because its FederatedService has changed: clusterIP ${before.spec?.clusterIP} cannot be changed to None`,
    ]);
    await set.broker.admin.patch(federatedServiceType, ref, { kind: 'merge', body: body(null) });
    await set.time.advance(15_000);
    expect((await find<Service>(east, serviceType, 'shop/checkout'))?.spec?.clusterIP).toMatch(/^10\./);
  });

  test('placement: a service that must be made anew is held by a finalizer -> made when it has gone', async () => {
    const { set, east } = await twoClusters();
    await set.broker.admin.create(federatedServiceType, federated({ clusters: ['east'], template }));
    await set.time.advance(3_000);
    const ref = { namespace: 'shop', name: 'checkout' };
    const hold = (finalizers: string[]) => ({ kind: 'merge', body: { metadata: { finalizers } } }) as const;
    await east.patch(serviceType, ref, hold(['example.org/load-balancer']));
    const body = { spec: { template: { spec: { clusterIP: 'None' } } } };
    const name = { namespace: setName, name: 'checkout.shop' };
    await set.broker.admin.patch(federatedServiceType, name, { kind: 'merge', body });
    await set.time.advance(60_000);
    expect((await placementLines(set))[0]).toBe('east Pending Service shop/checkout is being deleted');
    await east.patch(serviceType, ref, hold([]));
    await set.time.advance(20_000);
    expect((await find<Service>(east, serviceType, 'shop/checkout'))?.spec?.clusterIP).toBe('None');
    expect((await placementLines(set))[0]).toBe('east Placed ');
  });
});
