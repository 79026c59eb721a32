// The zone of a federation's authority: shards come in one by one and are turned into names in the table that the server
// reads. A change touches the names of one service. Health comes from outside: a shard is served while it is ready and its
// cluster's lease lives.

import type { FederationPolicy } from '../../federation/kinds/federation.ts';
import {
  type FederationSink,
  formatShardKey,
  parseShardKey,
  parseShardRecord,
  type ShardKey,
  type ShardRecord,
  type ShardSeen,
} from '../../federation/rules/record.ts';
import type { NameTable } from '../names/name-table.ts';
import { fixedNames, makeZone, type Zone } from '../names/zones.ts';
import { type FederatedNames, type NamedShard, namesOfFederatedService } from './federation-names.ts';

export interface FederationTableOptions {
  readonly table: NameTable;
  /** Its zone is then `<federation>.svc.<suffix>`, and other federations may have theirs beside it; without it the whole
   *  suffix is. */
  readonly federation?: string;
  /** `federation` unless the federation says otherwise. */
  readonly suffix?: string;
  /** Its number among the table's zones. */
  readonly zoneId?: number;
  readonly ttlSeconds?: number;
  /** Addresses of its servers; the first ones are kept while no others are given. */
  readonly serverAddresses?: readonly string[];
  readonly policy?: FederationPolicy;
}

const firstFederationZone = 2;

export class FederationTable implements FederationSink {
  #zone: Zone;
  #suffix: string;
  readonly #federation: string | undefined;
  readonly #ownAddresses: readonly string[];
  readonly #table: NameTable;
  readonly #services = new Map<string, Map<string, ShardRecord>>();
  readonly #published = new Map<string, FederatedNames>();
  /** By the shard's key. */
  readonly #seen = new Map<string, ShardSeen>();
  readonly #policies = new Map<string, FederationPolicy>();
  readonly #deadClusters = new Set<string>();
  readonly #policy: FederationPolicy;

  constructor(options: FederationTableOptions) {
    this.#table = options.table;
    this.#policy = options.policy ?? 'ordered';
    this.#federation = options.federation;
    this.#ownAddresses = options.serverAddresses ?? [];
    this.#suffix = suffixOf(options);
    this.#zone = federationZone(options.zoneId ?? firstFederationZone, options);
    for (const [name, sets] of fixedNames(this.zone)) this.#table.put(name, this.zone.id, sets);
  }

  /** The server that answers for it must be notified when it changes. */
  get zone(): Zone {
    return this.#zone;
  }

  /** The suffix of all federated names here, behind `svc`. */
  get suffix(): string {
    return this.#suffix;
  }

  /** Another suffix moves every name; another TTL is the zone's own and moves none. False if nothing changes. */
  setZone(spec: Pick<FederationTableOptions, 'suffix' | 'ttlSeconds' | 'serverAddresses'>): boolean {
    const before = this.#zone;
    const serverAddresses = spec.serverAddresses?.length ? spec.serverAddresses : this.#ownAddresses;
    const after = federationZone(before.id, { ...spec, serverAddresses, federation: this.#federation });
    const isSameServer = after.serverAddresses.join() === before.serverAddresses.join();
    if (after.name === before.name && after.ttlSeconds === before.ttlSeconds && isSameServer) return false;
    if (after.name === before.name) {
      this.#zone = after;
      for (const [name, sets] of fixedNames(after)) this.#table.put(name, after.id, sets);
      return true;
    }
    for (const key of this.#services.keys()) this.#unpublish(key);
    for (const name of fixedNames(before).keys()) this.#table.remove(name);
    this.#zone = after;
    this.#suffix = suffixOf(spec);
    for (const [name, sets] of fixedNames(after)) this.#table.put(name, after.id, sets);
    for (const key of this.#services.keys()) this.#publish(key);
    return true;
  }

  get table(): NameTable {
    return this.#table;
  }

  setSynced(): void {
    this.#table.setReady(this.zone.id, true);
  }

  setStale(isStale: boolean): void {
    this.#table.setStale(this.zone.id, isStale);
  }

  policyOf(federation: string): FederationPolicy {
    return this.#policies.get(federation) ?? this.#policy;
  }

  setPolicy(federation: string, policy: FederationPolicy): void {
    this.#policies.set(federation, policy);
    for (const key of this.#services.keys()) if (key.startsWith(`/${federation}/`)) this.#publish(key);
  }

  /** A cluster whose lease has run out is left out of every answer until it is back. */
  setClusterAlive(cluster: string, isAlive: boolean): void {
    if (isAlive === !this.#deadClusters.has(cluster)) return;
    if (isAlive) this.#deadClusters.delete(cluster);
    else this.#deadClusters.add(cluster);
    for (const [key, shards] of this.#services) if (shards.has(cluster)) this.#publish(key);
  }

  upsertShard(key: ShardKey, record: ShardRecord, seen?: ShardSeen): void {
    if (seen) this.#seen.set(formatShardKey(key), seen);
    const serviceKey = serviceKeyOf(key);
    const shards = this.#services.get(serviceKey) ?? new Map<string, ShardRecord>();
    this.#services.set(serviceKey, shards.set(key.cluster, record));
    if (record.zone || record.region) {
      this.#table.places.place({ id: key.cluster, zone: record.zone, region: record.region });
    }
    this.#publish(serviceKey);
  }

  removeShard(key: ShardKey): void {
    const serviceKey = serviceKeyOf(key);
    const shards = this.#services.get(serviceKey);
    this.#seen.delete(formatShardKey(key));
    if (!shards?.delete(key.cluster)) return;
    if (shards.size === 0) this.#services.delete(serviceKey);
    this.#publish(serviceKey);
  }

  /** One record as it lies in etcd; text that is no shard takes the shard away, and the result says why. */
  putText(keyText: string, valueText: string): string | undefined {
    const key = parseShardKey(keyText);
    if (!key) return `key ${keyText}: want /<federation>/<namespace>/<service>/<cluster>`;
    const record = parseShardRecord(valueText);
    if (record) {
      this.upsertShard(key, record);
      return undefined;
    }
    this.removeShard(key);
    return `value of ${keyText}: want JSON with externalIP and clusterIP`;
  }

  removeText(keyText: string): void {
    const key = parseShardKey(keyText);
    if (key) this.removeShard(key);
  }

  /** Which revision of a shard is served, and since when. */
  seenOf(key: ShardKey): ShardSeen | undefined {
    return this.#seen.get(formatShardKey(key));
  }

  *shardKeys(): IterableIterator<string> {
    for (const [serviceKey, shards] of this.#services)
      for (const cluster of shards.keys()) yield `${serviceKey}/${cluster}`;
  }

  /** The shards that the names of a service are made of at present. */
  shardsOf(serviceKey: string): NamedShard[] {
    const shards = [...(this.#services.get(serviceKey) ?? [])].map(([cluster, record]) => ({
      ...record,
      cluster,
      isReady: record.isReady && !this.#deadClusters.has(cluster),
    }));
    return shards.sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  }

  /** The shards left out of a service's names, and why. */
  leftOutOf(serviceKey: string): FederatedNames['leftOut'] {
    const [, federation, namespace, service] = serviceKey.split('/');
    const nothing = [{ what: `${namespace}/${service}`, why: `no cluster of federation ${federation} exports it` }];
    return this.#published.get(serviceKey)?.leftOut ?? nothing;
  }

  #publish(serviceKey: string): void {
    const before = this.#published.get(serviceKey);
    const after = this.#namesOf(serviceKey);
    if (after) {
      for (const [name, sets] of after.sets) {
        if (!before?.sets.has(name)) this.#table.hold(name, this.zone);
        this.#table.put(name, this.zone.id, sets);
      }
    }
    for (const name of before?.sets.keys() ?? []) if (!after?.sets.has(name)) this.#take(name);
    if (after) this.#published.set(serviceKey, after);
    else this.#published.delete(serviceKey);
    this.#table.bumpSerial();
  }

  #unpublish(serviceKey: string): void {
    for (const name of this.#published.get(serviceKey)?.sets.keys() ?? []) this.#take(name);
    this.#published.delete(serviceKey);
  }

  #take(name: string): void {
    this.#table.remove(name);
    this.#table.release(name, this.zone);
  }

  #namesOf(serviceKey: string): FederatedNames | undefined {
    const shards = this.shardsOf(serviceKey);
    if (shards.length === 0) return undefined;
    const [, federation, namespace, service] = serviceKey.split('/') as [string, string, string, string];
    return namesOfFederatedService({
      name: `${service}.${namespace}.${federation}.svc.${this.#suffix}`,
      shards,
      policy: this.policyOf(federation),
      ordinalOf: (cluster) => this.#table.places.ordinalOf(cluster),
    });
  }
}

type ZoneOptions = Pick<FederationTableOptions, 'federation' | 'suffix' | 'ttlSeconds' | 'serverAddresses'>;

function federationZone(id: number, options: ZoneOptions): Zone {
  const { federation, ttlSeconds, serverAddresses } = options;
  const suffix = suffixOf(options);
  const name = federation === undefined ? suffix : `${federation}.svc.${suffix}`;
  return makeZone(id, { name, source: 'federation', ttlSeconds, serverAddresses });
}

function suffixOf({ suffix = 'federation' }: ZoneOptions): string {
  return suffix.replace(/\.$/, '').toLowerCase();
}

function serviceKeyOf(key: ShardKey): string {
  return formatShardKey({ ...key, cluster: '' }).slice(0, -1);
}
