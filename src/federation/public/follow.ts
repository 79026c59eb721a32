// The public names of one federation: follows what its Federation says about them and runs a publisher over the shards while
// there is something to publish. Every place written to is noted first, so that its records are removed when the Federation no longer wants them, also if it was deleted meanwhile.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { Client } from '../../kube/client/client.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { Notes } from '../../kube/controller/notes.ts';
import { type Federation, type FederationPublicDns, isSameSpec } from '../kinds/federation.ts';
import { publishedNotesName } from '../rules/broker-names.ts';
import type { FederationShardSet } from '../rules/shard-set.ts';
import { openPlace, type PublishedPlace, placeKeyOf, placeOf } from './place.ts';
import { Publisher } from './publisher.ts';
import type { DnsConnection } from './rfc2136.ts';
import { type PublicService, type PublicSet, type PublicShard, wantedZone } from './wanted.ts';

export interface FederationPublisherOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random' | 'network'>;
  readonly log: Log;
  readonly broker: Client;
  readonly clusterset: string;
  readonly federation: string;
  readonly federations: InformerReader<Federation>;
  readonly clusters: InformerReader<Cluster>;
  readonly shards: FederationShardSet;
  /** `host`, `host:port` or `[address]:port` to a way there. */
  readonly connect: (server: string) => DnsConnection;
  readonly onState: () => void;
  /** If the authority's suffix differs from the Federation's. */
  readonly suffix?: string;
}

export interface FederationPublisher {
  /** Undefined while nothing is to be published. */
  publicRecords(): number | undefined;
  /** Why the zone is not as wanted; empty if it is. */
  problem(): string;
  stop(): void;
}

interface Wish {
  readonly spec: FederationPublicDns;
  readonly suffix: string;
}

interface Running {
  /** The settings it was started with; different ones need a new publisher. */
  readonly settings: string;
  readonly publisher: Publisher;
  readonly stop: () => void;
}

const retryMs = 5000;
/** The key may have been changed since: a Secret is looked at again, not watched. */
const refusedRetryMs = 30_000;
/** Shards come in bursts: a run for all of them together. */
const gatherMs = 200;
const defaultTtlSeconds = 60;

export function publishFederation(options: FederationPublisherOptions): FederationPublisher {
  const { world, log, broker, clusterset, federation: name, federations, clusters, shards } = options;
  const key = `${clusterset}/${name}`;
  const noted = new Notes<PublishedPlace>(broker, { namespace: clusterset, name: publishedNotesName(name) });
  const running = new Map<string, Running>();
  const problems = new Map<string, string>();
  let records: number | undefined;
  let timer: Timer | undefined;
  let turn = Promise.resolve();
  let isStopped = false;

  function wishNow(): Wish | undefined {
    const { public: spec, suffix = 'federation' } = federations.get(key)?.spec ?? {};
    return spec && { spec, suffix: options.suffix ?? suffix };
  }

  function setProblem(zone: string, text: string): void {
    if (text === (problems.get(zone) ?? '')) return;
    if (text === '') problems.delete(zone);
    else problems.set(zone, text);
    options.onState();
  }

  function later(delayMs: number): void {
    timer?.cancel();
    timer = world.timers.after(delayMs, () => {
      turn = turn.then(follow);
    });
  }

  /** The zone that is wanted is kept; the others that were ever written to are emptied of what is ours. */
  async function follow(): Promise<void> {
    if (isStopped || !shards.hasSynced) return;
    const wish = wishNow();
    const wanted = wish && placeKeyOf(wish.spec);
    if (!wish) records = undefined;
    await attempt('', async () => {
      if (wish) await noted.remember(placeKeyOf(wish.spec), placeOf(wish.spec));
      for (const [zone, place] of [...(await noted.all())])
        await attempt(zone, () => keep(zone, place, zone === wanted ? wish : undefined));
    });
  }

  async function attempt(zone: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      if (zone === '') setProblem(zone, '');
    } catch (error) {
      setProblem(zone, errorText(error));
      log.warn('public DNS cannot be written', { ...(zone === '' ? {} : { zone }), error: errorText(error) });
      if (!isStopped) later(retryMs);
    }
  }

  async function keep(zone: string, place: PublishedPlace, wish: Wish | undefined): Promise<void> {
    const ttlSeconds = wish?.spec.ttlSeconds ?? defaultTtlSeconds;
    const { provider, version, close } = await openPlace(zone, place, {
      ...options,
      owner: ownerOf(options),
      ttlSeconds,
    });
    const settings = JSON.stringify([place, wish, version]);
    if (isStopped || running.get(zone)?.settings === settings) close();
    if (isStopped) return;
    if (running.get(zone)?.settings !== settings) {
      running.get(zone)?.stop();
      const wanted = () => (wish ? setsOf(wish) : []);
      const onRun = (problem: string) => (wish ? ran(zone, problem) : emptied(zone, problem));
      const publisher = new Publisher({ world, log, provider, owner: ownerOf(options), ttlSeconds, wanted, onRun });
      const stop = () => {
        publisher.stop();
        close();
      };
      running.set(zone, { settings, publisher, stop });
    }
    running.get(zone)?.publisher.nudge();
  }

  function setsOf({ spec, suffix }: Wish): readonly PublicSet[] {
    const { levels = [] } = spec;
    // Names of zones lead to those of their regions, so they bring them along.
    const hasZones = levels.includes('Zone');
    const places = [...clusters.values()].map(({ spec: { zone, region } }) =>
      hasZones ? { zone, region } : { region },
    );
    const hasPlaceNames = levels.length > 0;
    const { sets } = wantedZone(servicesOf(shards), { domain: spec.domain, suffix, hasPlaceNames, places });
    records = sets.length;
    return sets;
  }

  function ran(zone: string, problem: string): void {
    setProblem(zone, problem);
    if (problem !== '' && !isStopped) later(refusedRetryMs);
    options.onState();
  }

  /** Once nothing of ours is left there, it is not read again. */
  function emptied(zone: string, problem: string): void {
    ran(zone, problem);
    if (problem !== '' || isStopped) return;
    running.get(zone)?.stop();
    running.delete(zone);
    log.info('nothing of ours is left in a public zone', { zone });
    turn = turn.then(() => attempt(zone, () => forget(zone)));
  }

  /** It may be wanted again by now. */
  async function forget(zone: string): Promise<void> {
    const wish = wishNow();
    if (wish && placeKeyOf(wish.spec) === zone) return later(0);
    await noted.forget(zone);
    // The place that is wanted now may lead to the very zone that was just emptied.
    later(0);
  }

  const unsubscribes = [
    federations.on((changed, next, previous) => {
      if (changed === key && !isSameSpec(next, previous)) later(0);
    }),
    shards.onChange(() => later(gatherMs)),
    clusters.on(() => later(gatherMs)),
  ];
  later(0);
  return {
    publicRecords: () => records,
    problem: () => [...problems.values()].join('; '),
    stop: () => {
      isStopped = true;
      timer?.cancel();
      for (const { stop } of running.values()) stop();
      for (const unsubscribe of unsubscribes) unsubscribe();
    },
  };
}

/** Names us in the zone's ownership records among others who write there. */
function ownerOf({ clusterset, federation }: FederationPublisherOptions): string {
  return `${clusterset}/${federation}`;
}

/** Services with an address outside their clusters, which those of type LoadBalancer have. */
export function servicesOf(shards: Pick<FederationShardSet, 'values'>): PublicService[] {
  const services = new Map<string, Omit<PublicService, 'shards'> & { readonly shards: PublicShard[] }>();
  for (const { key, record } of shards.values()) {
    if (record.externalIPs.length === 0 && record.hostnames.length === 0) continue;
    const { federation, namespace, service, cluster } = key;
    const id = `${namespace}/${service}`;
    const known = services.get(id) ?? { federation, namespace, service, shards: [] };
    services.set(id, known);
    const { zone, region, externalIPs, hostnames, isReady } = record;
    known.shards.push({ cluster, zone, region, externalIPs, hostnames, isHealthy: isReady });
  }
  return [...services.values()];
}
