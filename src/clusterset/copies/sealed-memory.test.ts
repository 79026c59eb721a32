import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { createClient } from '../../kube/client/client.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { sealingNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { sealedMemoryName } from '../membership/membership.ts';
import { SealedMemory } from './sealed-memory.ts';

const place = { namespace: sealingNamespace, name: sealedMemoryName };
const name = (index: number) => `s-${index.toString(16).padStart(16, '0')}${'0'.repeat(24)}`;
const base64 = (text: string) => Buffer.from(text).toString('base64');

async function setUp(data?: Record<string, string>) {
  const sim = new Simulation({ seed: 1 });
  const { api } = await startHome(sim);
  const world = sim.world('agent');
  const home = createClient({ send: api.handle, close: () => {} }, { world, userAgent: 'test' });
  await home.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: sealingNamespace } });
  if (data !== undefined)
    await home.create(secretType, { apiVersion: 'v1', kind: 'Secret', metadata: place, data } as Secret);
  const start = async () => {
    const memory = new SealedMemory({ home, world, log: silentLog });
    await memory.load();
    return memory;
  };
  return { sim, home, start };
}

test('marks of two exporters -> only higher ones count; kept for the next start within a second, or at a stop', async () => {
  const { sim, start } = await setUp();
  const memory = await start();
  memory.note('east', name(1), 7);
  memory.note('east', name(1), 5);
  memory.note('west', name(1), 3);
  expect([memory.highest('east', name(1)), memory.highest('east', name(2))]).toEqual([7, 0]);
  await sim.time.advance(1_100);
  memory.note('west', name(1), 4);
  const killed = await start();
  expect([killed.highest('east', name(1)), killed.highest('west', name(1))]).toEqual([7, 3]);
  await memory.stop();
  expect((await start()).highest('west', name(1))).toBe(4);
});

test('nonsense in the Secret -> what is a mark counts, the rest is left out', async () => {
  const { start } = await setUp({
    east: base64(`${name(1).slice(0, 18)} a\nx\n${name(2).slice(0, 18)} zzzzzzzzzzzzzz\n\n`),
    west: '',
    north: base64('\u0000'),
  });
  const memory = await start();
  expect([1, 2].map((index) => memory.highest('east', name(index)))).toEqual([10, 0]);
});

test('more than it keeps -> of the exporter with most the oldest go, the others keep all; the Secret stays below 1 MB', async () => {
  const { sim, home, start } = await setUp();
  const memory = await start();
  memory.note('west', name(1), 3);
  for (let index = 0; index < 21_000; index += 1) memory.note('east', name(index), 1_795_132_535_000 + index);
  expect(memory.highest('west', name(1))).toBe(3);
  expect([0, 20_999].map((index) => memory.highest('east', name(index)) > 0)).toEqual([false, true]);
  await sim.time.advance(2_000);
  expect(JSON.stringify(await home.get<Secret>(secretType, place)).length).toBeLessThan(1_000_000);
});
