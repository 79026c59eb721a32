// A source follows one kind of object in the home and keeps sets of resources current.

import { errorText, type Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import type { XdsResource } from '../resource.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import type { ViewIndex } from '../view/view-index.ts';

export interface SourceOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly views: ViewIndex;
}

export interface XdsSource {
  whenSynced(): Promise<void>;
  /** Since when the home fails us, on the monotonic clock; undefined while it does not. */
  staleSinceMs(): number | undefined;
  stop(): void;
}

/** One owner's resources that cannot be encoded leave its previous ones, and those of others. */
export function replaceSafely(set: ResourceSet, owner: string, make: () => readonly XdsResource[], log: Log): void {
  try {
    set.replace(owner, make());
  } catch (error) {
    log.error('resources cannot be made; the old ones stay', { owner, error: errorText(error) });
  }
}

export function sourceOf(informers: readonly Informer<never>[], stop: () => void): XdsSource {
  for (const informer of informers) informer.start();
  return {
    whenSynced: async () => void (await Promise.all(informers.map((informer) => informer.whenSynced()))),
    staleSinceMs: () => {
      const since = informers.map((informer) => informer.status().staleSinceMs).filter((ms) => ms !== undefined);
      return since.length === 0 ? undefined : Math.min(...since);
    },
    stop: () => {
      for (const informer of informers) informer.stop();
      stop();
    },
  };
}
