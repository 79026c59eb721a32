// Marks Federations whose authority is silent: frozen, killed or cut off, it cannot withdraw what it wrote itself, and no member
// may. Told by the process of an embedded broker for all of them, and by an authority that waits for its turn for its own. One that
// is back, or takes over, writes Ready again.

import { errorText, type Log } from '../base/log.ts';
import { repeat } from '../base/repeat.ts';
import type { World } from '../base/world.ts';
import { type Cluster, clusterType } from '../clusterset/kinds/cluster.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer, type InformerReader } from '../kube/controller/informer.ts';
import { conditionOf, formatTime, withConditions } from '../kube/objects/conditions.ts';
import { authorityRenewMs, type Federation, federationType } from './kinds/federation.ts';

export interface AuthorityWatchOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** At the broker. */
  readonly client: Client;
  readonly federations: InformerReader<Federation>;
  /** Whether this one is ours to mark now. */
  readonly isWatched: (key: string) => boolean;
}

const lookMs = 1_000;
/** A longer gap between two looks: this process stood still, and renewals could not arrive. */
const gapMsMax = 3_000;
/** Two renewals are missing. */
const overdueMs = (renewMs: number) => 2 * renewMs + 2_000;

interface Sighting {
  readonly renewTime: string;
  /** When it was seen first, by the monotonic clock. */
  readonly atMs: number;
}

/** Watches all federations at an embedded broker, in the process of its home. */
export function watchAllAuthorities(options: Pick<AuthorityWatchOptions, 'world' | 'log' | 'client'>) {
  const federations = createInformer<Federation>({ ...options, type: federationType });
  const watch = watchAuthorities({ ...options, federations, isWatched: () => true });
  federations.start();
  return {
    stop: () => {
      federations.stop();
      return watch.stop();
    },
  };
}

export function watchAuthorities(options: AuthorityWatchOptions): { stop(): Promise<void> } {
  const { world, log, client, federations } = options;
  const sightings = new Map<string, Sighting>();
  let lookedMs = world.clock.monotonicMs();
  let looking: Promise<void> = Promise.resolve();
  const unsubscribe = federations.on((key, next) => {
    const renewTime = next?.status?.authority?.renewTime;
    if (renewTime === undefined) sightings.delete(key);
    else if (sightings.get(key)?.renewTime !== renewTime)
      sightings.set(key, { renewTime, atMs: world.clock.monotonicMs() });
  });

  async function look(): Promise<void> {
    const nowMs = world.clock.monotonicMs();
    if (nowMs - lookedMs > gapMsMax) for (const [key, one] of sightings) sightings.set(key, { ...one, atMs: nowMs });
    lookedMs = nowMs;
    for (const [key, { atMs, renewTime }] of sightings) {
      const federation = federations.get(key);
      if (federation === undefined || nowMs - atMs < overdueMs(authorityRenewMs(0)) || !isFine(federation)) continue;
      if (!options.isWatched(key)) continue;
      try {
        await mark(federation, { renewTime, silentMs: nowMs - atMs });
      } catch (error) {
        log.info('not written: the authority of a federation is silent', { federation: key, error: errorText(error) });
      }
    }
  }

  /** With the version that was seen: one that was renewed meanwhile stays as it is. */
  async function mark(federation: Federation, { renewTime, silentMs }: { renewTime: string; silentMs: number }) {
    const { namespace, name, generation, resourceVersion } = federation.metadata;
    const { items } = await client.list<Cluster>(clusterType, { namespace });
    if (silentMs < overdueMs(authorityRenewMs(items.length))) return;
    const message = `the authority has not reported since ${renewTime}; before that: ${conditionOf(federation.status?.conditions, 'Ready')?.message}`;
    const wanted = { type: 'Ready', status: 'Unknown' as const, reason: 'AuthoritySilent', message };
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: generation };
    const conditions = [...withConditions(federation.status?.conditions, [wanted], stamp)];
    const body = { metadata: { resourceVersion }, status: { conditions } };
    await client.patch(federationType, { namespace, name }, { kind: 'merge', body }, { subresource: 'status' });
  }

  const stopLooking = repeat(world.timers, { everyMs: lookMs }, () => (looking = look()));
  return {
    stop: () => {
      stopLooking();
      unsubscribe();
      return looking;
    },
  };
}

/** A fault that the authority has found is still one. */
function isFine({ status }: Federation): boolean {
  return conditionOf(status?.conditions, 'Ready')?.status === 'True';
}
