import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { eventType, type KubernetesEvent } from '../objects/event.ts';
import { createEventRecorder } from './events.ts';
import { keepPartLease } from './part-lease.ts';
import { tellMissingRights } from './tell-missing-rights.ts';

test('parts: the account of one lacks a right -> one Event about its Lease, and one when it has it; others none', async () => {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  let missing = ['watch services'];
  const keep = (id: string, missingRights: () => string[]) => {
    const world = sim.world(id);
    const client = { ...home.clientOf(world), missingRights };
    keepPartLease({ client, world, log: silentLog, part: 'dns', id });
  };
  keep('poor', () => missing);
  keep('rich', () => []);
  const world = sim.world('agent');
  const client = home.clientOf(world);
  const events = createEventRecorder({ home: client, world, log: silentLog });
  const telling = tellMissingRights({ client, world, log: silentLog, events });
  const said = async () => {
    const { items } = await sim.time.settle(client.list<KubernetesEvent>(eventType, { namespace: 'portolan-system' }));
    return items
      .map(({ type, reason, message, involvedObject }) => `${involvedObject.name} ${type} ${reason} ${message}`)
      .sort();
  };
  await sim.time.advance(150_000);
  const lacking =
    'portolan-dns-poor Warning MissingRights dns: its account may not watch services; apply the roles of this version (portolan upgrade)';
  expect(await said()).toEqual([lacking]);
  missing = [];
  await sim.time.advance(60_000);
  expect(await said()).toEqual(['portolan-dns-poor Normal RightsComplete dns: has all rights', lacking]);
  telling.stop();
});
