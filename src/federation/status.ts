// Keeps a Federation's status: asks those who know, compares, writes what differs. Told that something changed, it waits a
// moment for the rest.

import { isSameJson } from '../base/json.ts';
import { errorText, type Log } from '../base/log.ts';
import { Queue } from '../base/queue.ts';
import { repeat } from '../base/repeat.ts';
import type { World } from '../base/world.ts';
import type { Cluster } from '../clusterset/kinds/cluster.ts';
import type { Client } from '../kube/client/client.ts';
import type { InformerReader } from '../kube/controller/informer.ts';
import { type WantedCondition, withConditions } from '../kube/objects/conditions.ts';
import { authorityRenewMs, type Federation, type FederationStatus, federationType } from './kinds/federation.ts';
import type { FederationShardSet } from './rules/shard-set.ts';

export interface FederationStatusOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  readonly clusterset: string;
  readonly federation: string;
  readonly federations: InformerReader<Federation>;
  readonly clusters: InformerReader<Cluster>;
  readonly shards: FederationShardSet;
  readonly stubZones: () => NonNullable<FederationStatus['stubZones']>;
  /** Base64 of PEM; undefined if members are given it in another way. */
  readonly caBundle?: string | undefined;
  /** Undefined if nothing is published. */
  readonly publicRecords: () => number | undefined;
  /** Why the public zone is not as wanted; empty if it is. */
  readonly publicProblem: () => string;
  /** The trusted servers whose keys cannot be read; empty if all can. */
  readonly trustProblem?: () => string;
}

export interface FederationStatusController {
  /** Something changed. */
  nudge(): void;
  stop(): Promise<void>;
}

const gatherMs = 500;

export function runFederationStatus(options: FederationStatusOptions): FederationStatusController {
  const { world, log, broker, clusterset, federation: name, federations, shards } = options;
  const key = `${clusterset}/${name}`;

  async function write(): Promise<undefined> {
    const present = federations.get(key);
    if (!present || !shards.hasSynced) return undefined;
    const status = statusOf(present, options);
    if (isSameJson(present.status ?? {}, status)) return undefined;
    const body = { status: { publicRecords: null, ...status } };
    await broker.patch(
      federationType,
      { namespace: clusterset, name },
      { kind: 'merge', body },
      { subresource: 'status' },
    );
    return undefined;
  }

  const queue = new Queue({
    name: 'federation status',
    world,
    work: write,
    onFailure: ({ error }) => log.info("the federation's status was not written", { error: errorText(error) }),
  });
  const nudge = () => queue.addAfter(key, gatherMs);
  const unsubscribes = [shards.onChange(nudge), federations.on((changed) => (changed === key ? nudge() : undefined))];
  const everyMs = () => authorityRenewMs(options.clusters.size);
  const stopRenewing = repeat(world.timers, { everyMs }, () => queue.add(key));
  queue.start();
  return {
    nudge,
    stop: () => {
      stopRenewing();
      for (const unsubscribe of unsubscribes) unsubscribe();
      return queue.stop();
    },
  };
}

function statusOf(present: Federation, options: FederationStatusOptions): FederationStatus {
  const services = new Set<string>();
  for (const { key } of options.shards.values()) services.add(`${key.namespace}/${key.service}`);
  const stubZones = options.stubZones();
  const publicRecords = options.publicRecords();
  const { generation } = present.metadata;
  const now = `${new Date(options.world.clock.wallMs()).toISOString().slice(0, 19)}Z`;
  const renewed = present.status?.authority?.renewTime;
  const renewedAgoMs = options.world.clock.wallMs() - Date.parse(renewed ?? '');
  // A moment less than the period: the timer that asks for a renewal may be early.
  const isRecent = Math.abs(renewedAgoMs) < 0.8 * authorityRenewMs(options.clusters.size);
  const stamp = { now, observedGeneration: generation };
  return {
    services: services.size,
    publicRecords,
    authority: {
      ...(options.caBundle === undefined ? {} : { caBundle: options.caBundle }),
      renewTime: isRecent ? renewed : now,
    },
    stubZones,
    observedGeneration: generation,
    conditions: [...withConditions(present.status?.conditions, [readiness(stubZones, options)], stamp)],
  };
}

function readiness(
  stubZones: NonNullable<FederationStatus['stubZones']>,
  { publicProblem, trustProblem }: FederationStatusOptions,
): WantedCondition {
  const failed = stubZones.filter(({ state }) => state === 'Failed').map(({ cluster }) => cluster);
  if (failed.length > 0) return notReady('StubZonesFailed', `resolvers of ${failed.join(', ')} could not be told`);
  const missing = trustProblem?.() ?? '';
  if (missing !== '') return notReady('KeysMissing', `some signing keys are not trusted: ${missing}`);
  const problem = publicProblem();
  if (problem !== '') return notReady('PublicZoneFailed', problem);
  // Last, because it may mend itself: a failure must not hide behind it.
  const waiting = stubZones.filter(({ state }) => state === 'Pending');
  if (waiting.length > 0) {
    const each = waiting.map(({ cluster, message }) => (message === undefined ? cluster : `${cluster} (${message})`));
    return notReady('StubZonesPending', `resolvers do not know this federation yet: ${each.join(', ')}`);
  }
  return { type: 'Ready', status: 'True', reason: 'Ready', message: ready };
}

/** Nobody is left to withdraw it when the authority stops, so it does not say that the authority answers. */
const ready = 'the resolvers know the authority, which renews status.authority.renewTime while it runs';

function notReady(reason: string, message: string): WantedCondition {
  return { type: 'Ready', status: 'False', reason, message };
}
