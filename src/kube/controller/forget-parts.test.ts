import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { forgetParts } from './forget-parts.ts';
import { keepPartLease } from './part-lease.ts';

const dayMs = 86_400_000;

test('parts: one died, one lives, one Lease is of somebody else -> the dead one is deleted after three days, no other', async () => {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  const client = home.clientOf(sim.world('test'));
  const keep = (name: string) => {
    const world = sim.world(name);
    keepPartLease({ client: home.clientOf(world), world, log: silentLog, part: 'proxy', id: name, renewMs: 600_000 });
    return world;
  };
  const dead = keep('dead');
  keep('alive');
  await sim.time.advance(1000);
  const other = {
    metadata: { namespace: 'portolan-system', name: 'leader' },
    spec: { renewTime: '2020-01-01T00:00:00.000000Z' },
  };
  await sim.time.settle(
    client.create(leaseType, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...other } as Lease),
  );
  dead.revoke();
  const world = sim.world('agent');
  const forgetting = forgetParts({ client: home.clientOf(world), world, log: silentLog });
  const names = async () => {
    const { items } = await sim.time.settle(client.list<Lease>(leaseType, { namespace: 'portolan-system' }));
    return items.map(({ metadata }) => metadata.name).sort();
  };
  await sim.time.advance(2.9 * dayMs);
  expect(await names()).toEqual(['leader', 'portolan-proxy-alive', 'portolan-proxy-dead']);
  await sim.time.advance(0.2 * dayMs);
  expect(await names()).toEqual(['leader', 'portolan-proxy-alive']);
  forgetting.stop();
});
