// The suffixes of a clusterset's federations, followed at the broker: names inside belong to the set.

import type { Log } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer } from '../kube/controller/informer.ts';
import { type Federation, federationType } from './kinds/federation.ts';

export interface FederationZonesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  readonly clusterset: string;
}

const suffixDefault = 'federation';

export function followFederationZones({ world, log, broker: client, clusterset: namespace }: FederationZonesOptions) {
  const handlers = new Set<() => void>();
  const federations = createInformer<Federation>({ client, world, log, type: federationType, namespace });
  federations.on(() => {
    for (const handler of handlers) handler();
  });
  federations.start();
  return {
    current: () => [...new Set(Array.from(federations.values(), ({ spec }) => spec?.suffix ?? suffixDefault))].sort(),
    authorities: () =>
      Object.fromEntries(
        Array.from(federations.values(), ({ metadata, status }) => [metadata.name, status?.authority?.caBundle ?? ''])
          .filter(([, bundle]) => bundle !== '')
          .sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
      ) as Record<string, string>,
    onChanged: (handler: () => void) => void handlers.add(handler),
    stop: () => federations.stop(),
  };
}
