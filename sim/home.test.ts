import { expect, test } from 'vitest';
import { isSameJson } from '../src/base/json.ts';
import { createInformer } from '../src/kube/controller/informer.ts';
import type { AnyObject, ResourceType } from '../src/kube/objects/object.ts';
import { startHome } from './home.ts';
import { Simulation } from './virtual-world.ts';

const configMaps: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
};

test('simulated home: an informer of another process -> follows what is written there', async () => {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  const world = sim.world('agent');
  const client = home.clientOf(world);
  const informer = createInformer({ client, world, type: configMaps, namespace: 'default' });
  informer.start();
  await sim.time.until(() => informer.hasSynced, { withinMs: 1000 });
  const made = await sim.time.settle(client.create(configMaps, configMap('a', '1')));
  await sim.time.until(() => informer.get('default/a') !== undefined, { withinMs: 1000 });
  await sim.time.settle(client.update(configMaps, { ...made, data: { value: '2' } }));
  await sim.time.until(() => isSameJson(informer.get('default/a')?.data, { value: '2' }), { withinMs: 1000 });
  await expect(sim.time.settle(client.update(configMaps, made))).rejects.toMatchObject({
    code: 409,
    reason: 'Conflict',
  });
  await sim.time.settle(client.delete(configMaps, { namespace: 'default', name: 'a' }));
  await sim.time.until(() => informer.get('default/a') === undefined, { withinMs: 1000 });
});

function configMap(name: string, value: string): AnyObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { value } };
}
