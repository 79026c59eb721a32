// Ties the proxy's state to a home: ServiceImports, their slices and AddressClaims, handed on one by one, and the few
// objects that say where this node is. While the home is away, what was last known stays.

import { errorText, type Log } from '../base/log.ts';
import type { IpRange } from '../base/net/ip.ts';
import { sleep, type Timer, type World } from '../base/world.ts';
import { followImports } from '../catalog/follow-imports.ts';
import { type ClusterProperty, clusterIdProperty, clusterPropertyType } from '../clusterset/kinds/cluster-property.ts';
import { readAccess } from '../clusterset/rules/access/set-access.ts';
import { allocatedRanges } from '../clusterset/rules/address-plan.ts';
import { clusterSetDnsName } from '../clusterset/rules/clusterset-dns.ts';
import { readCallers } from '../clusterset/rules/exports/callers.ts';
import { readLocality } from '../clusterset/rules/locality.ts';
import { readNetworks } from '../clusterset/rules/networks/networks.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer, type Informer } from '../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../kube/objects/config-map.ts';
import { type Node, nodeType } from '../kube/objects/node.ts';
import type { KubernetesObject, ResourceType } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { areSameRanges, rangesAtHome } from './ranges.ts';
import type { ProxyState } from './state.ts';
import { type ViewInput, viewOf } from './view.ts';

export interface AttachProxyOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly state: ProxyState;
  /** From flags. The home cannot override these. */
  readonly view: ViewInput;
  /** Name of the Node object to read, if there is one. */
  readonly node?: string;
  /**
   * Told the clusterset's ranges when they were read and when they change; resolves to why they cannot be used, or to an
   * empty text. Absent if those of the view are used whatever the home says.
   */
  readonly useRanges?: (ranges: readonly IpRange[]) => Promise<string>;
  /** Called when what says where this node is has changed. */
  readonly onPlace?: (input: ViewInput) => void;
}

export interface ProxyAttachment {
  /** Imports and slices were listed once, and what says where this node is was asked for. */
  whenSynced(): Promise<void>;
  hasSynced(): boolean;
  /** Since when the home fails us, by its monotonic clock; undefined while it does not. */
  staleSinceMs(): number | undefined;
  stop(): void;
}

/** A home that lets us not read these is served without them. */
const placeMsMax = 5000;
const rangesRetryMs = 10_000;

export function attachProxy(options: AttachProxyOptions): ProxyAttachment {
  const { client, world, log, state } = options;
  let input = options.view;
  let isSynced = false;

  const follow = <T extends KubernetesObject>(
    type: ResourceType,
    where: { readonly namespace?: string; readonly name: string },
    read: (object: T | undefined) => Partial<ViewInput>,
  ): Informer<T> => {
    const fieldSelector = `metadata.name=${where.name}`;
    const informer = createInformer<T>({ client, world, log, type, namespace: where.namespace, fieldSelector });
    informer.on((_key, next) => {
      input = { ...input, ...read(next) };
      state.setView(viewOf(input));
      options.onPlace?.(input);
    });
    return informer;
  };
  const ranges = new RangesInUse(options, (used) => {
    input = { ...input, ranges: used };
    state.setView(viewOf(input));
  });
  const places: Informer<never>[] = [
    follow<ConfigMap>(configMapType, { namespace: systemNamespace, name: clusterSetDnsName }, (object) => {
      ranges.want(rangesAtHome(object));
      state.addresses.setRanges(allocatedRanges(object ?? {}));
      const access = readAccess(object);
      const place = { locality: readLocality(object ?? {}), networks: readNetworks(object ?? {}) };
      return access === undefined ? place : { ...place, access, callers: readCallers(object) };
    }),
  ] as Informer<never>[];
  if (options.view.cluster === '')
    places.push(
      follow<ClusterProperty>(clusterPropertyType, { name: clusterIdProperty }, (object) => ({
        cluster: object?.spec?.value ?? '',
      })) as Informer<never>,
    );
  if (options.node !== undefined)
    places.push(follow<Node>(nodeType, { name: options.node }, (node) => ({ node })) as Informer<never>);

  const services = options.view.carriesServices ? state.own : undefined;
  const imports = followImports({ client, world, log, facts: state.facts, addresses: state.addresses, services });
  for (const informer of places) informer.start();
  imports.start();
  const stopping = new AbortController();
  const whenSynced = (async () => {
    await imports.whenListed;
    const placed = Promise.all(places.map((informer) => informer.whenSynced(stopping.signal)));
    const enough = new AbortController();
    const patience = sleep(world.timers, placeMsMax, enough.signal);
    await Promise.race([placed, patience]).catch(() => {});
    enough.abort();
    patience.catch(() => {});
    await ranges.whenUsed();
    isSynced = true;
  })();
  return {
    whenSynced: () => whenSynced,
    hasSynced: () => isSynced,
    staleSinceMs: imports.staleSinceMs,
    stop: () => {
      stopping.abort();
      ranges.stop();
      imports.stop();
      for (const informer of places) informer.stop();
    },
  };
}

/** Hands the set's ranges on one at a time; those that cannot be used are tried again, while those before stay. */
class RangesInUse {
  readonly #options: AttachProxyOptions;
  readonly #onUsed: (ranges: readonly IpRange[]) => void;
  #wanted: readonly IpRange[] | undefined;
  #tried: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #isStopped = false;
  #setUsed: () => void = () => {};
  readonly #used = new Promise<void>((resolve) => {
    this.#setUsed = resolve;
  });

  constructor(options: AttachProxyOptions, onUsed: (ranges: readonly IpRange[]) => void) {
    this.#options = options;
    this.#onUsed = onUsed;
  }

  want(ranges: readonly IpRange[]): void {
    if (this.#options.useRanges === undefined) return;
    if (this.#wanted !== undefined && areSameRanges(this.#wanted, ranges)) return;
    this.#wanted = ranges;
    this.#enqueue();
  }

  /** A home that has none, or does not let us read them, has the default ones. */
  whenUsed(): Promise<void> {
    if (this.#options.useRanges === undefined) return Promise.resolve();
    if (this.#wanted === undefined) this.want(rangesAtHome(undefined));
    return this.#used;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #enqueue(): void {
    this.#timer?.cancel();
    this.#tried = this.#tried.then(() => this.#try());
  }

  async #try(): Promise<void> {
    const ranges = this.#wanted!;
    const problem = await this.#options.useRanges!(ranges).catch(errorText);
    // Others are wanted by now: those are tried next.
    if (ranges !== this.#wanted || this.#isStopped) return;
    if (problem === '') {
      this.#onUsed(ranges);
      this.#setUsed();
      return;
    }
    this.#options.log.warn("the clusterset's ranges cannot be served, those before stay", { problem });
    this.#timer = this.#options.world.timers.after(rangesRetryMs, () => this.#enqueue());
  }
}
