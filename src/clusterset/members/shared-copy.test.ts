import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { SharedCopy } from './shared-copy.ts';

async function setUp() {
  const sim = new Simulation({ seed: 1 });
  const world = sim.world('reader');
  const { api } = await startHome(sim);
  const client: Client = createClient({ send: api.handle, close: () => {} }, { world, userAgent: 'test' });
  for (const name of ['a', 'b'])
    await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const indexes = { color: (map: ConfigMap) => [map.data?.['color'] ?? ''] };
  const copy = new SharedCopy<ConfigMap>({ client, world, type: configMapType, indexes });
  const put = (namespace: string, name: string, color: string) =>
    client.create(configMapType, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name },
      data: { color },
    });
  return { sim, client, copy, put };
}

test('shared copy: records of two namespaces -> each part has its own, by key, index and event', async () => {
  const { sim, client, copy, put } = await setUp();
  await put('a', 'one', 'red');
  await put('b', 'two', 'red');
  copy.open();
  const [a, b] = [copy.part('a'), copy.part('b')];
  const told: string[] = [];
  await a.whenSynced();
  a.on((key, next, previous) => told.push(`${key} ${previous?.data?.['color']} to ${next?.data?.['color']}`));
  expect(told).toEqual(['a/one undefined to red']);
  await put('b', 'three', 'blue');
  await put('a', 'four', 'red');
  await client.delete(configMapType, { namespace: 'a', name: 'one' });
  await sim.time.advance(1_000);
  expect(told.slice(1)).toEqual(['a/four undefined to red', 'a/one red to undefined']);
  expect([a.size, b.size, a.countByIndex('color', 'red'), b.countByIndex('color', 'red')]).toEqual([1, 2, 1, 1]);
  expect(a.byIndex('color', 'red').map(({ metadata }) => metadata.name)).toEqual(['four']);
  expect(copy.part('nobody').size).toBe(0);
});

test('shared copy: a part is stopped -> it hears nothing more, the others do; closed -> all are empty', async () => {
  const { sim, copy, put } = await setUp();
  copy.open();
  const [one, other] = [copy.part('a'), copy.part('a')];
  const told: string[] = [];
  one.on((key) => told.push(`one ${key}`));
  other.on((key) => told.push(`other ${key}`));
  await one.whenSynced();
  one.stop();
  await put('a', 'x', 'red');
  await sim.time.advance(1_000);
  expect(told).toEqual(['other a/x']);
  copy.close();
  expect([other.size, other.hasSynced, copy.isOpen]).toEqual([0, false, false]);
});
