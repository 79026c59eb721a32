// Load balancers that have a name and no address: the name is looked up, and again before its answer runs out, so that such
// a shard takes its place among the others in every answer. An alias could not: it must stand alone. While a name cannot be
// looked up, the addresses it had stay.

import type { Log } from '../../base/log.ts';
import { type LookUp, refreshSeconds } from '../../base/net/followed-names.ts';
import { parseRange } from '../../base/net/ip.ts';
import type { Timer, World } from '../../base/world.ts';
import { readAddressRules } from '../../clusterset/rules/address-translation.ts';
import { refusal } from '../../clusterset/rules/endpoint-address.ts';
import {
  type FederationSink,
  formatShardKey,
  type ShardKey,
  type ShardRecord,
  type ShardSeen,
} from '../rules/record.ts';

export interface BalancerNamesOptions {
  readonly sink: FederationSink;
  readonly lookUp: LookUp;
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
}

interface NamedBalancer {
  readonly key: ShardKey;
  readonly record: ShardRecord;
  readonly seen: ShardSeen | undefined;
  addresses: readonly string[];
  timer: Timer | undefined;
}

/** The owner of a name may point it anywhere: what no record of the cluster may give, no name of it may either. */
function usable(addresses: readonly string[], { hostnameRules }: ShardRecord): string[] {
  const virtual = (hostnameRules?.virtualRanges ?? []).flatMap((text) => parseRange(text) ?? []);
  const rules = readAddressRules(virtual, hostnameRules?.allowedRanges);
  return addresses.filter((address) => refusal(address, rules) === undefined);
}

export class BalancerNames implements FederationSink {
  readonly #options: BalancerNamesOptions;
  readonly #balancers = new Map<string, NamedBalancer>();

  constructor(options: BalancerNamesOptions) {
    this.#options = options;
  }

  upsertShard(key: ShardKey, record: ShardRecord, seen?: ShardSeen): void {
    const keyText = formatShardKey(key);
    const before = this.#balancers.get(keyText);
    this.#forget(keyText);
    if (record.externalIPs.length > 0 || record.hostnames.length === 0) {
      this.#options.sink.upsertShard(key, record, seen);
      return;
    }
    const isSameName = before?.record.hostnames.join() === record.hostnames.join();
    // The rules may be other ones than when they were looked up.
    const addresses = isSameName ? usable(before!.addresses, record) : [];
    const balancer: NamedBalancer = { key, record, seen, addresses, timer: undefined };
    this.#balancers.set(keyText, balancer);
    this.#tell(balancer);
    void this.#refresh(balancer);
  }

  removeShard(key: ShardKey): void {
    this.#forget(formatShardKey(key));
    this.#options.sink.removeShard(key);
  }

  setClusterAlive(cluster: string, isAlive: boolean): void {
    this.#options.sink.setClusterAlive(cluster, isAlive);
  }

  setPolicy(federation: string, policy: Parameters<FederationSink['setPolicy']>[1]): void {
    this.#options.sink.setPolicy(federation, policy);
  }

  setSynced(): void {
    this.#options.sink.setSynced();
  }

  setStale(isStale: boolean): void {
    this.#options.sink.setStale(isStale);
  }

  stop(): void {
    for (const keyText of [...this.#balancers.keys()]) this.#forget(keyText);
  }

  #forget(keyText: string): void {
    this.#balancers.get(keyText)?.timer?.cancel();
    this.#balancers.delete(keyText);
  }

  #tell({ key, record, seen, addresses }: NamedBalancer): void {
    this.#options.sink.upsertShard(key, { ...record, externalIPs: addresses }, seen);
  }

  async #refresh(balancer: NamedBalancer): Promise<void> {
    const { lookUp, world, log } = this.#options;
    const keyText = formatShardKey(balancer.key);
    let waitSeconds = refreshSeconds.min;
    try {
      const answers = await Promise.all(balancer.record.hostnames.map(lookUp));
      if (this.#balancers.get(keyText) !== balancer) return;
      const addresses = usable([...new Set(answers.flatMap((answer) => answer.addresses))], balancer.record).sort();
      const ttl = Math.min(...answers.map(({ ttlSeconds }) => ttlSeconds));
      waitSeconds = Math.min(refreshSeconds.max, Math.max(refreshSeconds.min, ttl));
      if (addresses.join() !== balancer.addresses.join()) {
        balancer.addresses = addresses;
        this.#tell(balancer);
      }
    } catch (error) {
      log.warn('the name of a load balancer cannot be looked up', { shard: keyText, error });
    }
    if (this.#balancers.get(keyText) !== balancer) return;
    balancer.timer = world.timers.after(1000 * waitSeconds, () => void this.#refresh(balancer));
  }
}
