// An informer of one kind at a home that misbehaves on demand, in virtual time.

import { Simulation } from '../../../sim/virtual-world.ts';
import { createClient } from '../client/client.ts';
import { createInformer, type InformerOptions } from '../controller/informer.ts';
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

export function start(
  home: ScriptedHome,
  options: Partial<InformerOptions<Top, Top>> = {},
  clock: { readonly clockRate?: number } = {},
) {
  const sim = new Simulation({ seed: 7 });
  sim.network.listen(server, home.handle);
  const world = sim.world('agent', clock);
  const client = createClient(world.network.http({ server }), { world, userAgent: 'test' });
  const informer = createInformer<Top, Top>({ client, world, type, ...options });
  const told: string[] = [];
  const spinOf = (top: Top | undefined) => (top === undefined ? '-' : (top.spin ?? 0));
  informer.on((key, next, previous) => told.push(`${key}: ${spinOf(previous)} -> ${spinOf(next)}`));
  informer.start();
  return { sim, home, client, informer, told };
}

export async function synced(names: readonly string[] = [], clock: { readonly clockRate?: number } = {}) {
  const home = new ScriptedHome(type);
  for (const name of names) home.put(name);
  const started = start(home, {}, clock);
  await started.sim.time.until(() => started.informer.status().state.kind === 'watching', { withinMs: 1000 });
  return started;
}
