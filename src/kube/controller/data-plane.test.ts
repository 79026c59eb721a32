// The watch of the data plane: what comes counts at once, what goes after a while.

import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { leaseType } from '../objects/lease.ts';
import { namespaceType } from '../objects/namespace.ts';
import { programmedAnnotation } from '../objects/reports/data-plane.ts';
import { watchDataPlane } from './data-plane.ts';
import { keepPartLease } from './part-lease.ts';

const namespace = 'portolan-system';
const since = '2026-01-01T00:00:00Z';

async function start() {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation, 'east');
  const { time } = simulation;
  const system = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
  await time.settle(home.admin.create(namespaceType, system).catch(() => {}));
  const at = { client: home.admin, log: silentLog, namespace };
  let changes = 0;
  const plane = watchDataPlane({
    ...{ ...at, world: simulation.world('agent'), roles: ['sidecar'] },
    onChange: () => (changes += 1),
  });
  let proxies = 1;
  const xds = (name: string, world = simulation.world(name)) =>
    keepPartLease({
      ...{ ...at, world, part: 'xds', id: 'node-1' },
      extras: () => ({ [programmedAnnotation]: JSON.stringify({ sidecar: { proxies, since, isBound: true } }) }),
    });
  return {
    ...{ simulation, home, time, plane, xds },
    changes: () => changes,
    become: (count: number) => (proxies = count),
    kind: () => plane.of('sidecar').kind,
  };
}

test('data plane watch: nothing, then a server with an Envoy -> none, programmed within seconds', async () => {
  const { time, xds, kind, changes } = await start();
  expect(kind()).toBe('unknown');
  await time.advance(2000);
  expect([kind(), changes()]).toEqual(['none', 1]);
  xds('xds');
  await time.advance(2000);
  expect([kind(), changes()]).toEqual(['programmed', 2]);
  await time.advance(600_000);
  expect([kind(), changes()], 'renewals are no news').toEqual(['programmed', 2]);
});

test('data plane watch: the server restarts in a few seconds -> no change; it stays away -> told within 15 s', async () => {
  const { time, xds, kind, changes } = await start();
  const first = xds('xds-1');
  await time.advance(3000);
  const before = changes();
  await time.settle(first.stop());
  await time.advance(5000);
  const second = xds('xds-2');
  await time.advance(30_000);
  expect([kind(), changes()]).toEqual(['programmed', before]);
  await time.settle(second.stop());
  await time.advance(10_000);
  expect(kind()).toBe('programmed');
  await time.advance(5000);
  expect([kind(), changes()]).toEqual(['none', before + 1]);
});

test('data plane watch: the last Envoy leaves its server -> told within 15 s', async () => {
  const { time, xds, kind, become } = await start();
  const lease = xds('xds');
  await time.advance(3000);
  become(0);
  lease.changed();
  await time.advance(15_000);
  expect(kind()).toBe('none');
});

test('data plane watch: the server is killed -> away after its Lease has ended; its Lease deleted by hand -> none', async () => {
  const { home, simulation, time, xds, kind } = await start();
  const world = simulation.world('xds');
  xds('xds', world);
  await time.advance(3000);
  world.revoke();
  await time.advance(30_000 + 15_000);
  expect(kind()).toBe('away');
  await time.settle(home.admin.delete(leaseType, { namespace, name: 'portolan-xds-node-1' }));
  await time.advance(2000);
  expect(kind()).toBe('none');
});
