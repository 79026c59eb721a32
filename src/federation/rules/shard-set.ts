// All shards of a federation as they are now, health included, for those who write them somewhere: the records in etcd, the
// public zone, the status. Says which shard changed; keeps nothing else and does no I/O.

import type { FederationPolicy } from '../kinds/federation.ts';
import { type FederationSink, formatShardKey, type ShardKey, type ShardRecord } from './record.ts';

export interface HeldShard {
  readonly key: ShardKey;
  /** Not ready while its cluster's lease has run out. */
  readonly record: ShardRecord;
}

export class FederationShardSet implements FederationSink {
  readonly #shards = new Map<string, { readonly key: ShardKey; readonly record: ShardRecord }>();
  readonly #deadClusters = new Set<string>();
  readonly #listeners = new Set<(keyText: string) => void>();
  #hasSynced = false;

  /** False until all shards have been delivered once: before that, a missing one proves nothing. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /**
   * Called with the key of every shard that came, changed or went, and with an empty text when all have been
   * delivered once.
   */
  onChange(listener: (keyText: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get(keyText: string): HeldShard | undefined {
    const shard = this.#shards.get(keyText);
    return shard && this.#judged(shard);
  }

  keys(): IterableIterator<string> {
    return this.#shards.keys();
  }

  *values(): IterableIterator<HeldShard> {
    for (const shard of this.#shards.values()) yield this.#judged(shard);
  }

  upsertShard(key: ShardKey, record: ShardRecord): void {
    const keyText = formatShardKey(key);
    this.#shards.set(keyText, { key, record });
    this.#tell(keyText);
  }

  removeShard(key: ShardKey): void {
    const keyText = formatShardKey(key);
    if (this.#shards.delete(keyText)) this.#tell(keyText);
  }

  setClusterAlive(cluster: string, isAlive: boolean): void {
    if (isAlive === !this.#deadClusters.has(cluster)) return;
    if (isAlive) this.#deadClusters.delete(cluster);
    else this.#deadClusters.add(cluster);
    for (const [keyText, { key }] of this.#shards) if (key.cluster === cluster) this.#tell(keyText);
  }

  setPolicy(_federation: string, _policy: FederationPolicy): void {
    // The policy orders answers; it changes no record.
  }

  setSynced(): void {
    this.#hasSynced = true;
    this.#tell('');
  }

  setStale(_isStale: boolean): void {
    // Fail static: what was known stays.
  }

  #judged({ key, record }: HeldShard): HeldShard {
    return this.#deadClusters.has(key.cluster) ? { key, record: { ...record, isReady: false } } : { key, record };
  }

  #tell(keyText: string): void {
    for (const listener of this.#listeners) listener(keyText);
  }
}

/** One who tells several. */
export function allOf(sinks: readonly FederationSink[]): FederationSink {
  const each = (tell: (sink: FederationSink) => void) => sinks.forEach(tell);
  return {
    upsertShard: (key, record, seen) => each((sink) => sink.upsertShard(key, record, seen)),
    removeShard: (key) => each((sink) => sink.removeShard(key)),
    setClusterAlive: (cluster, isAlive) => each((sink) => sink.setClusterAlive(cluster, isAlive)),
    setPolicy: (federation, policy) => each((sink) => sink.setPolicy(federation, policy)),
    setSynced: () => each((sink) => sink.setSynced()),
    setStale: (isStale) => each((sink) => sink.setStale(isStale)),
  };
}
