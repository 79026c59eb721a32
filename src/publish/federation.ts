// The public zone of one federation: follows what its Federation says about it, reads the TSIG key from the Secret it names,
// and runs a publisher over the shards while there is something to publish. What was published is taken back when the
// Federation no longer wants it.

import { errorText, type Log } from '../base/log.ts';
import type { Timer, World } from '../base/world.ts';
import type { Client } from '../client/client.ts';
import type { InformerReader } from '../client/informer.ts';
import type { Cluster } from '../model/cluster.ts';
import type { Federation, FederationPublicDns } from '../model/federation.ts';
import type { FederationShardSet } from '../model/federation-shard-set.ts';
import { type Secret, secretType } from '../model/secret.ts';
import { tsigKeyOf } from '../model/tsig-secret.ts';
import type { Provider } from './provider.ts';
import { createRfc2136Provider, type DnsConnection } from './providers/rfc2136.ts';
import { Publisher } from './publisher.ts';
import { type PublicService, type PublicShard, type Wanted, wantedZone } from './wanted.ts';

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
}

export interface FederationPublisher {
  /** Undefined while nothing is to be published. */
  publicRecords(): number | undefined;
  /** What keeps the zone from being as it should; empty if nothing does. */
  problem(): string;
  stop(): void;
}

interface Running {
  readonly settings: string;
  readonly publisher: Publisher;
}

const retryMs = 5000;
/** Shards come in bursts: a run for all of them together. */
const gatherMs = 200;

export function publishFederation(options: FederationPublisherOptions): FederationPublisher {
  const { world, log, clusterset, federation: name, federations, clusters, shards } = options;
  const key = `${clusterset}/${name}`;
  let running: Running | undefined;
  let lastSpec: { readonly spec: FederationPublicDns; readonly suffix: string } | undefined;
  let problem = '';
  let records: number | undefined;
  let timer: Timer | undefined;
  let isStopped = false;

  function wanted(spec: FederationPublicDns, suffix: string): Wanted {
    const { levels = [] } = spec;
    const hasPlaceNames = levels.length > 0;
    // Names of zones lead to those of their regions, so they bring them along.
    const hasZones = levels.includes('Zone');
    const places = [...clusters.values()].map(({ spec: { zone, region } }) =>
      hasZones ? { zone, region } : { region },
    );
    return wantedZone(servicesOf(shards), { domain: spec.domain, suffix, hasPlaceNames, places });
  }

  function setProblem(text: string): void {
    if (text === problem) return;
    problem = text;
    options.onState();
  }

  function later(delayMs: number): void {
    timer?.cancel();
    timer = world.timers.after(delayMs, () => void follow());
  }

  async function follow(): Promise<void> {
    if (isStopped || !shards.hasSynced) return;
    const federation = federations.get(key);
    const spec = federation?.spec?.public;
    const suffix = federation?.spec?.suffix ?? 'federation';
    if (spec) lastSpec = { spec, suffix };
    // Without a Federation, or without its wish, the last known zone is emptied of what is ours.
    const target = spec ?? lastSpec?.spec;
    if (!target) return;
    try {
      await ensureRunning(target, lastSpec!.suffix, spec !== undefined);
    } catch (error) {
      setProblem(errorText(error));
      log.warn('public DNS cannot start', { error: errorText(error) });
      later(retryMs);
      return;
    }
    running?.publisher.nudge();
  }

  async function ensureRunning(spec: FederationPublicDns, suffix: string, isWanted: boolean): Promise<void> {
    const provider = await providerOf(spec);
    const settings = JSON.stringify([spec, suffix, isWanted, provider.keyName]);
    if (isStopped || running?.settings === settings) return;
    running?.publisher.stop();
    const sets = () => {
      const { sets: all } = isWanted ? wanted(spec, suffix) : { sets: [] };
      records = isWanted ? all.length : undefined;
      return all;
    };
    const publisher = new Publisher({
      world,
      log,
      provider: provider.provider,
      owner: ownerOf(options),
      ttlSeconds: spec.ttlSeconds ?? 60,
      wanted: sets,
      onRun: (text) => {
        setProblem(text);
        options.onState();
      },
    });
    running = { settings, publisher };
  }

  async function providerOf(spec: FederationPublicDns): Promise<{ provider: Provider; keyName: string }> {
    const { server, zone, tsigSecret } = spec.provider.rfc2136;
    const secret = await options.broker.get<Secret>(secretType, { namespace: clusterset, name: tsigSecret.name });
    const found = tsigKeyOf(secret);
    if ('problem' in found) throw new Error(found.problem);
    const provider = createRfc2136Provider({
      zone: zone ?? spec.domain,
      key: found,
      connect: () => options.connect(server),
      clock: world.clock,
      random: world.random,
      owner: ownerOf(options),
      ttlSeconds: spec.ttlSeconds ?? 60,
    });
    return { provider, keyName: `${found.name} ${secret.metadata.resourceVersion ?? ''}` };
  }

  const unsubscribes = [
    federations.on((changed) => (changed === key ? later(0) : undefined)),
    shards.onChange(() => later(gatherMs)),
    clusters.on(() => later(gatherMs)),
  ];
  return {
    publicRecords: () => records,
    problem: () => problem,
    stop: () => {
      isStopped = true;
      timer?.cancel();
      running?.publisher.stop();
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
