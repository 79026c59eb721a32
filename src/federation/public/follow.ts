// The public zone of one federation: follows what its Federation says about it, reads the TSIG key from the Secret it
// names, and runs a publisher over the shards while there is something to publish. Every zone written to is noted
// first, so that its records are removed when the Federation no longer wants them, also if it was deleted meanwhile.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { Client } from '../../kube/client/client.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { Notes } from '../../kube/controller/notes.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type Federation, type FederationPublicDns, isSameSpec } from '../kinds/federation.ts';
import { publishedNotesName } from '../rules/broker-names.ts';
import type { FederationShardSet } from '../rules/shard-set.ts';
import { tsigKeyOf } from '../rules/tsig-secret.ts';
import { type Provider, Publisher } from './publisher.ts';
import { createRfc2136Provider, type DnsConnection } from './rfc2136.ts';
import { type PublicService, type PublicSet, type PublicShard, wantedZone } from './wanted.ts';

export interface FederationPublisherOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
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

/** Where a zone is written to. A zone has one name, whatever the address of its server. */
interface PublishedZone {
  readonly server: string;
  readonly tsigSecret: string;
}

interface Wish {
  readonly spec: FederationPublicDns;
  readonly suffix: string;
}

interface Running {
  /** The settings it was started with; different ones need a new publisher. */
  readonly settings: string;
  readonly publisher: Publisher;
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
  const noted = new Notes<PublishedZone>(broker, { namespace: clusterset, name: publishedNotesName(name) });
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
    const wanted = wish && zoneOf(wish.spec);
    if (!wish) records = undefined;
    await attempt('', async () => {
      if (wish) await noted.remember(zoneOf(wish.spec), placeOf(wish.spec));
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

  async function keep(zone: string, place: PublishedZone, wish: Wish | undefined): Promise<void> {
    const ttlSeconds = wish?.spec.ttlSeconds ?? defaultTtlSeconds;
    const { provider, keyName } = await providerOf(zone, place, ttlSeconds);
    if (isStopped) return;
    const settings = JSON.stringify([place, wish, keyName]);
    if (running.get(zone)?.settings !== settings) {
      running.get(zone)?.publisher.stop();
      const wanted = () => (wish ? setsOf(wish) : []);
      const onRun = (problem: string) => (wish ? ran(zone, problem) : emptied(zone, problem));
      const publisher = new Publisher({ world, log, provider, owner: ownerOf(options), ttlSeconds, wanted, onRun });
      running.set(zone, { settings, publisher });
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
    running.get(zone)?.publisher.stop();
    running.delete(zone);
    log.info('nothing of ours is left in a public zone', { zone });
    turn = turn.then(() => attempt(zone, () => forget(zone)));
  }

  /** It may be wanted again by now. */
  async function forget(zone: string): Promise<void> {
    const wish = wishNow();
    if (wish && zoneOf(wish.spec) === zone) return later(0);
    await noted.forget(zone);
  }

  async function providerOf(
    zone: string,
    { server, tsigSecret }: PublishedZone,
    ttlSeconds: number,
  ): Promise<{ provider: Provider; keyName: string }> {
    const secret = await broker.get<Secret>(secretType, { namespace: clusterset, name: tsigSecret });
    const found = tsigKeyOf(secret);
    if ('problem' in found) throw new Error(found.problem);
    const provider = createRfc2136Provider({
      zone,
      key: found,
      connect: () => options.connect(server),
      clock: world.clock,
      random: world.random,
      owner: ownerOf(options),
      ttlSeconds,
    });
    return { provider, keyName: `${found.name} ${secret.metadata.resourceVersion ?? ''}` };
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
      for (const { publisher } of running.values()) publisher.stop();
      for (const unsubscribe of unsubscribes) unsubscribe();
    },
  };
}

function zoneOf({ domain, provider }: FederationPublicDns): string {
  return provider.rfc2136.zone ?? domain;
}

function placeOf({ provider }: FederationPublicDns): PublishedZone {
  const { server, tsigSecret } = provider.rfc2136;
  return { server, tsigSecret: tsigSecret.name };
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
