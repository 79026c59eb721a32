import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { service } from '../../../sim/manifests.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { type Log, silentLog } from '../../base/log.ts';
import { configMapType } from '../objects/config-map.ts';
import { eventType, type KubernetesEvent } from '../objects/event.ts';
import { namespaceType } from '../objects/namespace.ts';
import { createEventRecorder } from './events.ts';

async function setUp(log: Log = silentLog) {
  const simulation = new Simulation({ seed: 1 });
  const { admin } = await startHome(simulation);
  await admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const events = createEventRecorder({ home: admin, world: simulation.world('recorder'), log });
  const say = (name: string, message: string) =>
    events.record({ about: service(`shop/${name}`), type: 'Normal', reason: 'Changed', message });
  const messages = async (name: string) => {
    const { items } = await admin.list<KubernetesEvent>(eventType, { namespace: 'shop' });
    return items.filter(({ involvedObject }) => involvedObject.name === name).map(({ message }) => message);
  };
  const count = async () => (await admin.list(eventType, { namespace: 'shop' })).items.length;
  return { simulation, admin, say, messages, count };
}

test('events: an object that keeps changing -> a few Events, and later one that says how many were left out', async () => {
  const { simulation, say, messages } = await setUp();
  for (let change = 0; change < 500; change += 1) await say('flapping', `change ${change}`);
  await say('calm', 'once');
  expect(await messages('flapping')).toHaveLength(10);
  expect(await messages('calm')).toEqual(['once']);
  await simulation.time.advance(600_000);
  await say('flapping', 'change 500');
  expect(await messages('flapping')).toContain('change 500 (after 490 Events that were left out)');
});

test('events: thousands of objects change -> at most 5,000 Events in ten minutes', async () => {
  const { simulation, say, count } = await setUp();
  await Promise.all(Array.from({ length: 5_010 }, (_, index) => say(`s${index}`, 'changed')));
  expect(await count()).toBe(5_000);
  await simulation.time.advance(600_000);
  await say('later', 'changed');
  expect(await count()).toBe(5_001);
});

test('events: a message of any length -> cut to 1024 characters', async () => {
  const { say, messages } = await setUp();
  await say('long', 'x'.repeat(5000));
  expect(await messages('long')).toEqual(['x'.repeat(1024)]);
});

test('events: about an object whose namespace is being deleted, or is gone -> no warning; any other refusal -> one', async () => {
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (text: string) => void warnings.push(text) };
  const { admin, say, simulation } = await setUp(log);
  const metadata = { name: 'held', namespace: 'shop', finalizers: ['example.com/held'] };
  await admin.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  await admin.delete(namespaceType, { name: 'shop' });
  await say('ending', 'changed');
  await admin.patch(configMapType, metadata, { kind: 'merge', body: { metadata: { finalizers: [] } } });
  await simulation.time.advance(60_000);
  await say('ended', 'changed');
  expect(warnings).toEqual([]);
  await say('not a name of an object', 'changed');
  expect(warnings).toEqual(['event not written']);
});
