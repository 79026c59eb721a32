// The clusterset's policy as this agent knows it, and the address rules that follow from it. The same objects until the
// policy changes, so that what was planned under them stays valid by identity.

import type { Log } from '../../base/log.ts';
import { formatRange, type IpRange } from '../../base/net/ip.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { Cluster } from '../kinds/cluster.ts';
import { type ClusterSet, clusterSetType } from '../kinds/cluster-set.ts';
import type { MemberFollower } from '../members/follower.ts';
import { type OwnAddresses, readAddressRules, readOwnAddresses } from '../rules/address-translation.ts';
import { type AddressRules, refusal } from '../rules/endpoint-address.ts';
import { readSetPolicy, type SetPolicy } from '../rules/set-policy.ts';

export interface PolicyCopyOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  readonly members: MemberFollower;
  readonly clusterset: string;
  /** This cluster. */
  readonly clusterId: string;
}

export class PolicyCopy {
  readonly #sets: Informer<ClusterSet>;
  readonly #options: PolicyCopyOptions;
  readonly #rulesByRanges = new Map<string, AddressRules>();
  readonly #handlers = new Set<() => void>();
  #ownAddresses: { cluster: Cluster | undefined; from: AddressRules; addresses: OwnAddresses } | undefined;
  #current: SetPolicy = readSetPolicy(undefined);
  #ownRanges: readonly IpRange[] = [];

  constructor(options: PolicyCopyOptions) {
    this.#options = options;
    const { broker: client, world, log, clusterset } = options;
    this.#sets = createInformer<ClusterSet>({ client, world, log, type: clusterSetType, namespace: clusterset });
    this.#sets.on((_key, next, previous) => {
      if ((next ?? previous)?.metadata.name === clusterset) this.#changed(next);
    });
  }

  start(): void {
    this.#sets.start();
  }

  stop(): void {
    this.#sets.stop();
  }

  relist(): void {
    this.#sets.relist();
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#sets.whenSynced(signal);
  }

  /** Before that what it says are only the defaults. */
  get hasSynced(): boolean {
    return this.#sets.hasSynced;
  }

  get current(): SetPolicy {
    return this.#current;
  }

  get rules(): AddressRules {
    return this.#rulesFor([]);
  }

  /** Why a gateway of another cluster cannot have this address, given the ranges accepted for it; undefined if it can. */
  gatewayRefusal(address: string, allowedRanges: readonly IpRange[]): string | undefined {
    return refusal(address, { ...this.#rulesFor([], this.#ownRanges), allowedRanges });
  }

  rulesOf(clusterId: string): AddressRules {
    const allowed = this.#options.members.get(clusterId)?.cluster.spec.allowedRanges ?? [];
    return this.#rulesFor(allowed, clusterId === this.#options.clusterId ? [] : this.#ownRanges);
  }

  /** Ranges of this cluster's own pods and services, where no other has endpoints. */
  setOwnRanges(ranges: readonly IpRange[]): void {
    if (ranges.map(formatRange).join() === this.#ownRanges.map(formatRange).join()) return;
    this.#ownRanges = ranges;
    this.#rulesByRanges.clear();
    this.#tell();
  }

  /** For what the cluster itself publishes. The same object until the policy or the cluster changes. */
  ownAddressesOf(clusterId: string): OwnAddresses {
    const cluster = this.#options.members.get(clusterId)?.cluster;
    const rules = this.rulesOf(clusterId);
    if (this.#ownAddresses?.cluster === cluster && this.#ownAddresses?.from === rules)
      return this.#ownAddresses.addresses;
    const addresses = readOwnAddresses(rules, cluster?.spec);
    this.#ownAddresses = { cluster, from: rules, addresses };
    return addresses;
  }

  onChange(handler: () => void): void {
    this.#handlers.add(handler);
  }

  #rulesFor(ranges: readonly string[], readerRanges: readonly IpRange[] = []): AddressRules {
    const key = `${readerRanges.length} ${ranges.join(' ')}`;
    const known = this.#rulesByRanges.get(key);
    if (known !== undefined) return known;
    const rules = { ...readAddressRules(this.#current.virtualRanges, ranges), readerRanges };
    this.#rulesByRanges.set(key, rules);
    return rules;
  }

  #changed(set: ClusterSet | undefined): void {
    this.#current = readSetPolicy(set);
    this.#rulesByRanges.clear();
    this.#tell();
  }

  #tell(): void {
    for (const handler of this.#handlers) handler();
  }
}
