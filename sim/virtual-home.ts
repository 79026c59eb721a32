// An embedded home in a simulation: the real API server over a store in memory, reached through the virtual network.

import type { Access } from '../src/api/access.ts';
import { type Api, createApi } from '../src/api/api.ts';
import { customResourceDefinitionKind } from '../src/api/kinds/custom-resource-definition.ts';
import { builtinKinds } from '../src/api/kinds/index.ts';
import { silentLog } from '../src/base/log.ts';
import type { Metrics } from '../src/base/metrics.ts';
import { type Client, createClient } from '../src/client/client.ts';
import type { AnyObject } from '../src/model/object.ts';
import { createMemoryStore } from '../src/store/open.ts';
import type { Store } from '../src/store/store.ts';
import type { Simulation, VirtualWorld } from './virtual-world.ts';

export interface VirtualHome {
  readonly api: Api;
  readonly store: Store;
  readonly server: string;
  readonly world: VirtualWorld;
  /** Asks through the network, as the process of that World. */
  clientOf(world: VirtualWorld): Client;
}

export interface VirtualHomeOptions {
  /** What its callers connect to: `https://home`. */
  readonly server: string;
  /** Anybody may do anything when absent. */
  readonly access?: Access;
  readonly definitions?: readonly AnyObject[];
  readonly serviceRanges?: readonly string[];
  readonly metrics?: Metrics;
}

const everybody: Access = {
  authenticate: async () => ({ name: 'admin', groups: ['system:masters'] }),
  authorize: () => ({ isAllowed: true, reason: '' }),
};

export async function startHome(sim: Simulation, options: VirtualHomeOptions): Promise<VirtualHome> {
  const { server, access = everybody, definitions, metrics } = options;
  const world = sim.world(server);
  const store = createMemoryStore({ world });
  const kinds = builtinKinds({
    serviceRanges: options.serviceRanges ?? ['10.96.0.0/16'],
    random: world.random,
    extra: [customResourceDefinitionKind],
  });
  const api = await createApi({ world, store, access, definitions, metrics, kinds, log: silentLog });
  await sim.time.settle(api.start());
  sim.network.listen(server, api.handle);
  return {
    api,
    store,
    server,
    world,
    clientOf: (process) => createClient(process.network.http({ server }), { world: process, userAgent: process.name }),
  };
}
