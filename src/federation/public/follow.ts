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

export class FederationPublisher {
  readonly #options: FederationPublisherOptions;
  readonly #key;
  readonly #noted;
  readonly #running = new Map<string, Running>();
  readonly #problems = new Map<string, string>();
  #records: number | undefined;
  #timer: Timer | undefined;
  #turn = Promise.resolve();
  #isStopped = false;
  readonly #unsubscribes;

  constructor(options: FederationPublisherOptions) {
    this.#options = options;
    this.#key = `${this.#options.clusterset}/${this.#options.federation}`;
    this.#noted = new Notes<PublishedPlace>(this.#options.broker, {
      namespace: this.#options.clusterset,
      name: publishedNotesName(this.#options.federation),
    });
    this.#unsubscribes = [
      this.#options.federations.on((changed, next, previous) => {
        if (changed === this.#key && !isSameSpec(next, previous)) this.#later(0);
      }),
      this.#options.shards.onChange(() => this.#later(gatherMs)),
      this.#options.clusters.on(() => this.#later(gatherMs)),
    ];
    this.#later(0);
  }

  /** Undefined while nothing is to be published. */
  publicRecords() {
    return this.#records;
  }

  /** Why the zone is not as wanted; empty if it is. */
  problem() {
    return [...this.#problems.values()].join('; ');
  }

  stop() {
    this.#isStopped = true;
    this.#timer?.cancel();
    for (const { stop } of this.#running.values()) stop();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  #wishNow(): Wish | undefined {
    const { public: spec, suffix = 'federation' } = this.#options.federations.get(this.#key)?.spec ?? {};
    return spec && { spec, suffix: this.#options.suffix ?? suffix };
  }

  #setProblem(zone: string, text: string): void {
    if (text === (this.#problems.get(zone) ?? '')) return;
    if (text === '') this.#problems.delete(zone);
    else this.#problems.set(zone, text);
    this.#options.onState();
  }

  #later(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.world.timers.after(delayMs, () => {
      this.#turn = this.#turn.then(() => this.#follow());
    });
  }

  /** The zone that is wanted is kept; the others that were ever written to are emptied of what is ours. */
  async #follow(): Promise<void> {
    if (this.#isStopped || !this.#options.shards.hasSynced) return;
    const wish = this.#wishNow();
    const wanted = wish && placeKeyOf(wish.spec);
    if (!wish) this.#records = undefined;
    await this.#attempt('', async () => {
      if (wish) await this.#noted.remember(placeKeyOf(wish.spec), placeOf(wish.spec));
      for (const [zone, place] of [...(await this.#noted.all())])
        await this.#attempt(zone, () => this.#keep(zone, place, zone === wanted ? wish : undefined));
    });
  }

  async #attempt(zone: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      if (zone === '') this.#setProblem(zone, '');
    } catch (error) {
      this.#setProblem(zone, errorText(error));
      this.#options.log.warn('public DNS cannot be written', {
        ...(zone === '' ? {} : { zone }),
        error: errorText(error),
      });
      if (!this.#isStopped) this.#later(retryMs);
    }
  }

  async #keep(zone: string, place: PublishedPlace, wish: Wish | undefined): Promise<void> {
    const ttlSeconds = wish?.spec.ttlSeconds ?? defaultTtlSeconds;
    const { provider, version, close } = await openPlace(zone, place, {
      ...this.#options,
      owner: ownerOf(this.#options),
      ttlSeconds,
    });
    const settings = JSON.stringify([place, wish, version]);
    if (this.#isStopped || this.#running.get(zone)?.settings === settings) close();
    if (this.#isStopped) return;
    if (this.#running.get(zone)?.settings !== settings) {
      this.#running.get(zone)?.stop();
      const wanted = () => (wish ? this.#setsOf(wish) : []);
      const onRun = (problem: string) => (wish ? this.#ran(zone, problem) : this.#emptied(zone, problem));
      const publisher = new Publisher({
        world: this.#options.world,
        log: this.#options.log,
        provider,
        owner: ownerOf(this.#options),
        ttlSeconds,
        wanted,
        onRun,
      });
      const stop = () => {
        publisher.stop();
        close();
      };
      this.#running.set(zone, { settings, publisher, stop });
    }
    this.#running.get(zone)?.publisher.nudge();
  }

  #setsOf({ spec, suffix }: Wish): readonly PublicSet[] {
    const { levels = [] } = spec;
    // Names of zones lead to those of their regions, so they bring them along.
    const hasZones = levels.includes('Zone');
    const places = [...this.#options.clusters.values()].map(({ spec: { zone, region } }) =>
      hasZones ? { zone, region } : { region },
    );
    const hasPlaceNames = levels.length > 0;
    const { sets } = wantedZone(servicesOf(this.#options.shards), {
      domain: spec.domain,
      suffix,
      hasPlaceNames,
      places,
    });
    this.#records = sets.length;
    return sets;
  }

  #ran(zone: string, problem: string): void {
    this.#setProblem(zone, problem);
    if (problem !== '' && !this.#isStopped) this.#later(refusedRetryMs);
    this.#options.onState();
  }

  /** Once nothing of ours is left there, it is not read again. */
  #emptied(zone: string, problem: string): void {
    this.#ran(zone, problem);
    if (problem !== '' || this.#isStopped) return;
    this.#running.get(zone)?.stop();
    this.#running.delete(zone);
    this.#options.log.info('nothing of ours is left in a public zone', { zone });
    this.#turn = this.#turn.then(() => this.#attempt(zone, () => this.#forget(zone)));
  }

  /** It may be wanted again by now. */
  async #forget(zone: string): Promise<void> {
    const wish = this.#wishNow();
    if (wish && placeKeyOf(wish.spec) === zone) return this.#later(0);
    await this.#noted.forget(zone);
    // The place that is wanted now may lead to the very zone that was just emptied.
    this.#later(0);
  }
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
