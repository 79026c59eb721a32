import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog } from '../../base/log.ts';
import { createClient } from '../client/client.ts';
import { ApiError } from '../objects/api-error.ts';
import type { ResourceType } from '../objects/object.ts';
import { ScriptedHome } from '../testing/scripted-home.ts';
import { createInformer } from './informer.ts';
import { type ControllerOptions, runController } from './loop.ts';

const tops: ResourceType = { group: 'toys.test', version: 'v1', plural: 'tops', kind: 'Top', isNamespaced: true };
const strings: ResourceType = { ...tops, plural: 'strings', kind: 'String' };

test('controller loop: one of two informers has not synced -> nothing is reconciled; then everything known is', async () => {
  const { sim, homes, seen, controller } = start({});
  sim.network.setLink('agent', 'https://strings', 'refused');
  homes.tops.put('a');
  await sim.time.advance(60_000);
  expect([seen, controller.isRunning]).toEqual([[], false]);
  sim.network.setLink('agent', 'https://strings', 'up');
  await sim.time.advance(60_000);
  expect([seen, controller.isRunning]).toEqual([['shop/a'], true]);
});

test('controller loop: many events of one object -> one reconcile of its key; keysOf maps events to other keys', async () => {
  const { sim, homes, seen } = start({});
  await sim.time.advance(1000);
  homes.strings.put('cord', { of: 'b' });
  await sim.time.advance(1000);
  expect(seen).toEqual(['shop/b']);
});

test('controller loop: reconcile fails -> tried again, later and later; conflicts are not worth a warning', async () => {
  for (const [error, warned] of [
    [new Error('broken'), true],
    [new ApiError('changed', { code: 409, reason: 'Conflict' }), false],
  ] as const) {
    const { sim, homes, seen, lines } = start({
      reconcile: () => {
        throw error;
      },
    });
    homes.tops.put('a');
    await sim.time.advance(10_000);
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.length).toBeLessThan(20);
    expect(lines.some((line) => line.includes('"warn"') && line.includes('reconcile failed'))).toBe(warned);
  }
});

test('controller loop: reconcile asks to come back -> it does', async () => {
  const { sim, homes, seen } = start({ reconcile: async () => ({ requeueAfterMs: 1000 }) });
  homes.tops.put('a');
  await sim.time.advance(10_000);
  expect(seen.length).toBe(10);
});

test('controller loop: stopped -> nothing more is reconciled', async () => {
  const { sim, homes, seen, controller } = start({});
  await sim.time.advance(1000);
  await sim.time.settle(controller.stop());
  homes.tops.put('a');
  await sim.time.advance(10_000);
  expect(seen).toEqual([]);
});

function start(options: Partial<ControllerOptions>) {
  const sim = new Simulation({ seed: 11 });
  const world = sim.world('agent');
  const lines: string[] = [];
  const log = createLog({ clock: world.clock, level: 'debug', write: (line) => lines.push(line) });
  const homes = { tops: new ScriptedHome(tops), strings: new ScriptedHome(strings) };
  const informerOf = (name: 'tops' | 'strings', type: ResourceType) => {
    sim.network.listen(`https://${name}`, homes[name].handle);
    const client = createClient(world.network.http({ server: `https://${name}` }), { world, userAgent: 'test' });
    const informer = createInformer({ client, world, type });
    informer.start();
    return informer;
  };
  const seen: string[] = [];
  const controller = runController({
    name: 'test',
    world,
    log,
    sources: [
      { informer: informerOf('tops', tops) },
      { informer: informerOf('strings', strings), keysOf: (_key, next) => [`shop/${next?.of}`] },
    ],
    ...options,
    reconcile: async (key) => {
      seen.push(key);
      return options.reconcile?.(key);
    },
  });
  return { sim, homes, seen, controller, lines };
}
