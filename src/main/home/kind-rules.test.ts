// The embedded home refuses what the rules of a kind refuse, at admission, all at once.

import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { featureAnnotations } from '../../clusterset/rules/networks/known-by.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import type { AnyObject } from '../../kube/objects/object.ts';

const apiVersion = 'portolan.dev/v1alpha1';

async function home() {
  const simulation = new Simulation({ seed: 1 });
  const { admin } = await startHome(simulation);
  for (const name of ['portolan-system', 'prod', 'shop'])
    await simulation.time.settle(
      admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }).catch(() => {}),
    );
  const create = (namespace: string, spec: unknown) => {
    const object = { apiVersion, kind: 'MeshExternalService', metadata: { name: 'example', namespace }, spec };
    return simulation.time.settle(admin.create(meshExternalServiceType, object as unknown as AnyObject));
  };
  return { simulation, admin, create };
}

const good = { match: [{ type: 'IP', value: '10.0.0.1', port: 80 }] };

test('external service: wrong types and wrong rules -> refused with all of them', async () => {
  const { create } = await home();
  const spec = {
    match: [{ type: 'IP', value: 'x', port: 80 }],
    destination: {
      type: 'Regular',
      extension: { type: 'Lambda' },
      endpoints: [{ address: 'a.b' }],
      tls: { caCert: { inline: 123 } },
    },
  };
  const error = await create('portolan-system', spec).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  for (const field of ['spec.match[0].value', 'spec.destination.extension', 'spec.destination.tls.caCert.inline'])
    expect(error?.message).toContain(field);
  expect(error?.message.match(/caCert\.inline: /g)).toHaveLength(1);
});

test('external service: another namespace than the system namespace -> refused; that of a clusterset -> accepted', async () => {
  const { simulation, admin, create } = await home();
  await expect(create('shop', good)).rejects.toThrow('only accepted in namespace portolan-system');
  await create('portolan-system', good);
  const set = { apiVersion, kind: 'ClusterSet', metadata: { name: 'prod', namespace: 'prod' } };
  await simulation.time.settle(admin.create(clusterSetType, set));
  await create('prod', good);
});

test('cluster: its network is edited while an agent knows no networks -> refused and named, whoever writes; others fields, and all upgraded -> accepted', async () => {
  const { simulation, admin } = await home();
  const settle = <T>(promise: Promise<T>) => simulation.time.settle(promise);
  for (const id of ['east', 'west']) {
    const namespace = `prod-m-${id}`;
    await settle(admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }));
    const metadata = { name: id, namespace: 'prod' };
    await settle(admin.create(clusterType, { apiVersion, kind: 'Cluster', metadata, spec: { namespace } } as Cluster));
    const annotations = id === 'east' ? featureAnnotations() : {};
    const lease = { name: 'portolan-agent', namespace, annotations };
    await settle(admin.create(heartbeatType, { apiVersion, kind: 'Heartbeat', metadata: lease }));
  }
  const edit = (spec: object) =>
    settle(admin.patch(clusterType, { namespace: 'prod', name: 'east' }, { kind: 'merge', body: { spec } }));
  await expect(edit({ network: 'aws' })).rejects.toThrow('Cluster prod/east: network aws: the agents of west are of');
  const north = { name: 'north', namespace: 'prod' };
  const spec = { namespace: 'prod-m-north', network: 'aws' };
  await expect(
    settle(admin.create(clusterType, { apiVersion, kind: 'Cluster', metadata: north, spec } as Cluster)),
  ).rejects.toThrow('the agents of west');
  await edit({ zone: 'a', network: 'default' });
  const lease = { namespace: 'prod-m-west', name: 'portolan-agent' };
  const body = { metadata: { annotations: featureAnnotations() } };
  await settle(admin.patch(heartbeatType, lease, { kind: 'merge', body }));
  await edit({ network: 'aws' });
  expect((await settle(admin.get<Cluster>(clusterType, { namespace: 'prod', name: 'east' }))).spec.network).toBe('aws');
});
