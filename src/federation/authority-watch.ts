// Marks Federations at an embedded broker whose authority is silent: frozen, killed or cut off, it cannot withdraw what it wrote
// itself, and no member may. Told by the process of the home, which sees every renewal. An authority that is back writes Ready again.

import { errorText, type Log } from '../base/log.ts';
import { repeat } from '../base/repeat.ts';
import type { World } from '../base/world.ts';
import { type Cluster, clusterType } from '../clusterset/kinds/cluster.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer } from '../kube/controller/informer.ts';
import { conditionOf, formatTime, withConditions } from '../kube/objects/conditions.ts';
import { authorityRenewMs, type Federation, federationType } from './kinds/federation.ts';

export interface AuthorityWatchOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** At the home itself. */
  readonly client: Client;
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

export function runAuthorityWatch({ world, log, client }: AuthorityWatchOptions): { stop(): Promise<void> } {
  const sightings = new Map<string, Sighting>();
  const federations = createInformer<Federation>({ client, world, log, type: federationType });
  let lookedMs = world.clock.monotonicMs();
  let looking: Promise<void> = Promise.resolve();
  federations.on((key, next) => {
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
      try {
        await mark(federation, { renewTime, silentMs: nowMs - atMs });
      } catch (error) {
        log.info('not written: the authority of a federation is silent', { federation: key, error: errorText(error) });
      }
    }
  }

  /** With the version that was seen: one that was renewed meanwhile stays as it is. */
  async function mark(federation: Federation, { renewTime, silentMs }: { renewTime: string; silentMs: number }) {
    const { namespace, generation } = federation.metadata;
    const { items } = await client.list<Cluster>(clusterType, { namespace });
    if (silentMs < overdueMs(authorityRenewMs(items.length))) return;
    const message = `the authority has not reported since ${renewTime}; before that: ${conditionOf(federation.status?.conditions, 'Ready')?.message}`;
    const wanted = { type: 'Ready', status: 'Unknown' as const, reason: 'AuthoritySilent', message };
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: generation };
    const conditions = [...withConditions(federation.status?.conditions, [wanted], stamp)];
    await client.updateStatus(federationType, { ...federation, status: { ...federation.status, conditions } });
  }

  federations.start();
  const stopLooking = repeat(world.timers, { everyMs: lookMs }, () => (looking = look()));
  return {
    stop: () => {
      stopLooking();
      federations.stop();
      return looking;
    },
  };
}

/** A fault that the authority has found is still one. */
function isFine({ status }: Federation): boolean {
  return conditionOf(status?.conditions, 'Ready')?.status === 'True';
}
