// An informer of one kind at a home that misbehaves on demand, in virtual time.

import { Simulation } from '../../../sim/virtual-world.ts';
import { type Client, createClient } from '../client/client.ts';
import { createInformer, type InformerOptions } from '../controller/informer.ts';
import { leaseType } from '../objects/lease.ts';
import type { AnyObject, ResourceType } from '../objects/object.ts';
import { ScriptedHome } from './scripted-home.ts';

export const type: ResourceType = {
  group: 'toys.test',
  version: 'v1',
  plural: 'tops',
  kind: 'Top',
  isNamespaced: true,
};
export const server = 'https://home';

export type Top = AnyObject & { spin?: unknown; colors?: unknown };

interface Setting {
  readonly clockRate?: number;
  /** Whether the client has renewed a lease of its own before. */
  readonly hasLease?: boolean;
}

export function start(home: ScriptedHome, options: Partial<InformerOptions<Top, Top>> = {}, setting: Setting = {}) {
  const sim = new Simulation({ seed: 7 });
  sim.network.listen(server, home.handle);
  const world = sim.world('agent', setting);
  const client = createClient(world.network.http({ server }), { world, userAgent: 'test' });
  const informer = createInformer<Top, Top>({ client, world, type, ...options });
  const told: string[] = [];
  const spinOf = (top: Top | undefined) => (top === undefined ? '-' : (top.spin ?? 0));
  informer.on((key, next, previous) => told.push(`${key}: ${spinOf(previous)} -> ${spinOf(next)}`));
  if (setting.hasLease) void renew(client).then(() => informer.start());
  else informer.start();
  return { sim, home, client, informer, told };
}

export async function synced(names: readonly string[] = [], setting: Setting = {}) {
  const home = new ScriptedHome(type);
  for (const name of names) home.put(name);
  const started = start(home, {}, setting);
  await started.sim.time.until(() => started.informer.status().state.kind === 'watching', { withinMs: 1000 });
  return started;
}

/** With the revision that is thought to be there. */
export async function renew(client: Client, resourceVersion?: string): Promise<void> {
  const metadata = { name: 'own', namespace: 'x', resourceVersion };
  await client.update(leaseType, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata });
}
