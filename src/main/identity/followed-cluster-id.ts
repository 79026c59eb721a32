// The id of the cluster that a part serves, where no flag gives it: the one that the cluster joined with, also if it joins
// later or anew.

import type { Log } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
} from '../../clusterset/kinds/cluster-property.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';

export interface FollowedClusterId {
  current(): string;
  /** Called with the id, now and whenever it is another one. */
  onChange(listener: (id: string) => void): void;
  stop(): void;
}

export interface FollowClusterIdOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  /** The id of an earlier run, used while the home is away. */
  readonly last?: string;
}

/** Id of a cluster that has joined nothing, and while its home was never read. */
const unjoinedId = 'cluster';
const firstLookMs = 3000;
/** A part that served this cluster before waits only briefly. */
const shortLookMs = 500;

export async function followClusterId({ world, log, home, last }: FollowClusterIdOptions): Promise<FollowedClusterId> {
  const fieldSelector = `metadata.name=${clusterIdProperty}`;
  const informer = createInformer<ClusterProperty>({
    world,
    log,
    client: home,
    type: clusterPropertyType,
    fieldSelector,
  });
  const read = () => informer.get(clusterIdProperty)?.spec?.value || unjoinedId;
  const enough = new AbortController();
  const patience = sleep(world.timers, last === undefined ? firstLookMs : shortLookMs, enough.signal).catch(() => {});
  informer.start();
  const synced = informer.whenSynced(enough.signal).catch(() => {});
  await Promise.race([synced, patience]);
  enough.abort();
  let id = informer.hasSynced ? read() : (last ?? unjoinedId);
  const listeners = new Set<(id: string) => void>();
  const look = () => {
    if (!informer.hasSynced || read() === id) return;
    id = read();
    for (const listener of listeners) listener(id);
  };
  informer.on(look);
  // A cluster without an id has no object that could be reported.
  const stopping = new AbortController();
  informer.whenSynced(stopping.signal).then(look, () => {});
  return {
    current: () => id,
    onChange: (listener) => {
      listeners.add(listener);
      listener(id);
    },
    stop: () => {
      stopping.abort();
      informer.stop();
    },
  };
}
