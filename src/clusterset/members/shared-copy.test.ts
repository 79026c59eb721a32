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

test('shared copy: records of two namespaces -> each part has its own, by name and index; events come for all', async () => {
  const { sim, client, copy, put } = await setUp();
  await put('a', 'one', 'red');
  await put('b', 'two', 'red');
  const told: string[] = [];
  copy.on((key, next, previous) => told.push(`${key} ${previous?.data?.['color']} to ${next?.data?.['color']}`));
  copy.open();
  const [a, b] = [copy.part('a'), copy.part('b')];
  await copy.whenSynced();
  expect(told.filter((line) => /^[ab]\//.test(line))).toEqual(['a/one undefined to red', 'b/two undefined to red']);
  told.length = 0;
  await put('b', 'three', 'blue');
  await put('a', 'four', 'red');
  await client.delete(configMapType, { namespace: 'a', name: 'one' });
  await sim.time.advance(1_000);
  expect(told).toEqual(['b/three undefined to blue', 'a/four undefined to red', 'a/one red to undefined']);
  expect([a.size, b.size, a.values().length]).toEqual([1, 2, 1]);
  expect([a.get('four')?.metadata.namespace, a.get('two'), b.get('two')?.data]).toEqual([
    'a',
    undefined,
    { color: 'red' },
  ]);
  expect(a.byIndex('color', 'red').map(({ metadata }) => metadata.name)).toEqual(['four']);
  expect(copy.named('two').map(({ metadata }) => metadata.namespace)).toEqual(['b']);
  expect(copy.part('nobody').size).toBe(0);
});

test('shared copy: closed -> its parts are empty and nothing is told; opened again -> all of it is told again', async () => {
  const { sim, copy, put } = await setUp();
  await put('a', 'x', 'red');
  const told: string[] = [];
  copy.on((key) => told.push(key));
  copy.open();
  await copy.whenSynced();
  const part = copy.part('a');
  expect([part.size, copy.isOpen]).toEqual([1, true]);
  copy.close();
  told.length = 0;
  await put('a', 'y', 'red');
  await sim.time.advance(1_000);
  expect([part.size, copy.hasSynced, copy.isOpen, told]).toEqual([0, false, false, []]);
  copy.open();
  await copy.whenSynced();
  expect(told.filter((key) => key.startsWith('a/'))).toEqual(['a/x', 'a/y']);
});
