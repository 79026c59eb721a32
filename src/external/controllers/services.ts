// Keeps the external services of a cluster: holds a virtual IP for each of their names and writes their status. A change is
// worked on together with the services that share a name or a range with it, and with no others; a change of the context
// (place, ranges, zones, generators) concerns all.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { Allocator, claimsByOwner } from '../../addresses/allocator.ts';
import type { AddressOwner } from '../../addresses/candidates.ts';
import { ownerKey } from '../../addresses/claim.ts';
import { isSameJson } from '../../base/json.ts';
import type { Log } from '../../base/log.ts';
import type { IpRange } from '../../base/net/ip.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { runController } from '../../kube/controller/loop.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, withConditions } from '../../kube/objects/conditions.ts';
import { externalNamespace } from '../../kube/objects/ours.ts';
import type { DataPlane } from '../../kube/objects/reports/data-plane.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type HostnameGenerator, hostnameGeneratorType } from '../kinds/hostname-generator.ts';
import { type MeshExternalService, meshExternalServiceType } from '../kinds/mesh-external-service.ts';
import type { Plugins } from '../plugins/plugin.ts';
import type { NameOwner } from '../rules/hostnames.ts';
import type { Pool } from '../rules/overlaps.ts';
import { type HeldAddresses, ServiceIndex } from '../rules/service-index.ts';
import { generatorCondition, isCounting, type WantedStatus } from '../rules/service-status.ts';
import type { Place } from '../rules/visibility.ts';
import { OverlapLog } from './overlap-log.ts';

export interface ExternalServicesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly namespace: string;
  readonly place: () => Place;
  readonly plugins: Plugins;
  /** Those of other kinds that claim a name. */
  readonly othersAt: (hostname: string) => readonly NameOwner[];
  readonly context: () => ExternalContext;
  /** Nothing is decided before place and context are known: names would be given up for a moment. */
  readonly whenKnown: (signal?: AbortSignal) => Promise<void>;
  /** The Envoys that carry connections to them. */
  readonly plane: () => DataPlane;
  /** Called when names may have come to external services, or left them. */
  readonly onNames?: (hostnames: Iterable<string>) => void;
}

/** The names and addresses that the cluster leaves to external services. */
export interface ExternalContext {
  /** Ranges of virtual IPs, at most one of each family. */
  readonly ranges: readonly IpRange[];
  /** Zones in which external services have no names. */
  readonly zones: readonly string[];
  /** Ranges of other virtual IPs. */
  readonly pools: readonly Pool[];
}

/** Certificates run out without an event. */
const lookAgainMs = 600_000;
/** Addresses come free without an event that names us. */
const exhaustedRetryMs = 60_000;
const allKey = 'all';
const generatorsKey = 'generators';
/** Before a hostname that may have to give its address back. */
const releasePrefix = 'release ';

export class ExternalServicesController {
  readonly #options: ExternalServicesOptions;
  readonly #log;
  readonly #at;
  readonly #services;
  readonly #generators;
  readonly #secrets;
  readonly #claims;
  readonly #allocator;
  readonly #overlapLog;
  /** Undefined until the first look, and when the context has changed. */
  #index: ServiceIndex | undefined;
  /** Services that the index has not taken in yet. */
  readonly #pending = new Set<string>();
  readonly #gate;
  readonly #sources;
  readonly #controller;
  readonly #informers: Informer<never>[];

  constructor(options: ExternalServicesOptions) {
    this.#options = options;
    this.#log = this.#options.log.with({ part: 'external services' });
    this.#at = {
      client: this.#options.home,
      world: this.#options.world,
      log: this.#log,
      namespace: this.#options.namespace,
    };
    this.#services = createInformer<MeshExternalService>({ ...this.#at, type: meshExternalServiceType });
    this.#generators = createInformer<HostnameGenerator>({ ...this.#at, type: hostnameGeneratorType });
    this.#secrets = createInformer<Secret>({ ...this.#at, namespace: externalNamespace, type: secretType });
    this.#claims = createInformer<AddressClaim>({
      ...{ client: this.#options.home, world: this.#options.world, log: this.#log, type: addressClaimType },
      indexes: { [claimsByOwner]: (claim) => [ownerKey(claim.spec.owner)] },
    });
    this.#allocator = new Allocator({
      home: this.#options.home,
      world: this.#options.world,
      log: this.#log,
      claims: this.#claims,
    });
    this.#overlapLog = new OverlapLog(this.#log, this.#options.world);
    this.#gate = { informer: { on: () => () => {}, whenSynced: this.#options.whenKnown } };
    this.#sources = [
      this.#gate,
      { informer: this.#services, keysOf: (key: string) => this.#again([key]) },
      {
        informer: this.#generators,
        keysOf: (_key: string, next?: HostnameGenerator, previous?: HostnameGenerator) =>
          isSameJson(next?.spec, previous?.spec) &&
          isSameJson(next?.metadata.annotations, previous?.metadata.annotations)
            ? [generatorsKey]
            : this.#everything(),
      },
      {
        informer: this.#secrets,
        keysOf: (key: string) => this.#again(this.#index?.naming(key.slice(externalNamespace.length + 1)) ?? []),
      },
      {
        informer: this.#claims,
        keysOf: (_key: string, next?: AddressClaim, previous?: AddressClaim) => {
          const { owner } = (next ?? previous)!.spec;
          return isOurs(owner) ? [...(this.#index?.claimants(owner.name) ?? []), `${releasePrefix}${owner.name}`] : [];
        },
      },
    ];
    this.#controller = runController({
      name: 'external-services',
      world: this.#options.world,
      log: this.#log,
      sources: this.#sources,
      reconcile: (key) => this.#reconcile(key),
      concurrency: 1,
    });
    this.#informers = [this.#services, this.#generators, this.#secrets, this.#claims] as never;
    for (const informer of this.#informers) informer.start();
    this.#controller.queue.add(allKey);
  }

  /** The place of this cluster or its context may have changed. */
  nudge(): void {
    for (const key of this.#everything()) this.#controller.queue.add(key);
  }

  /** The Envoys of this cluster have come or gone. */
  planeChanged(): void {
    for (const key of this.#services.keys()) this.#controller.queue.add(key);
  }

  /** Somebody of another kind claims these names, or no longer does. */
  othersChanged(hostnames: Iterable<string>): void {
    for (const hostname of hostnames) {
      const claimants = this.#index?.claimants(hostname) ?? new Set();
      for (const key of claimants) this.#controller.queue.add(key);
      if (claimants.size > 0) this.#controller.queue.add(`${releasePrefix}${hostname}`);
    }
  }

  /** The external service that has a name, for people; undefined if none has it. */
  holderOf(hostname: string): string | undefined {
    return this.#index?.names.holder(hostname);
  }

  async stop(): Promise<void> {
    for (const informer of this.#informers) informer.stop();
    await this.#controller.stop();
  }

  #newIndex(): ServiceIndex {
    const { ranges, zones, pools } = this.#options.context();
    const own = ranges.map((range) => ({ whose: 'external services', range }));
    const made = new ServiceIndex({
      generators: [...this.#generators.values()].filter(isCounting),
      ...{ zones, pools: [...own, ...pools], othersAt: this.#options.othersAt },
      ...{ place: this.#options.place(), plugins: this.#options.plugins },
      secrets: (name, key) => this.#secrets.get(`${externalNamespace}/${name}`)?.data?.[key],
    });
    this.#pending.clear();
    const hostnames = new Set<string>();
    for (const [key, object] of entriesOf(this.#services)) {
      for (const name of made.set(key, object).hostnames) hostnames.add(name);
      this.#controller.queue.add(key);
    }
    for (const { spec } of this.#claims.values()) if (isOurs(spec.owner)) hostnames.add(spec.owner.name);
    this.#namesChanged(hostnames);
    return made;
  }

  /** With all that has happened so far. */
  #currentIndex(): ServiceIndex {
    this.#index ??= this.#newIndex();
    for (const key of this.#pending) {
      this.#pending.delete(key);
      const { services: others, hostnames } = this.#index.set(key, this.#services.get(key));
      for (const other of others) this.#controller.queue.add(other);
      this.#namesChanged(hostnames);
    }
    return this.#index;
  }

  #namesChanged(hostnames: ReadonlySet<string>): void {
    if (hostnames.size === 0) return;
    for (const hostname of hostnames) this.#controller.queue.add(`${releasePrefix}${hostname}`);
    this.#controller.queue.add(generatorsKey);
    this.#options.onNames?.(hostnames);
  }

  async #reconcile(key: string): Promise<{ requeueAfterMs: number } | undefined> {
    const current = this.#currentIndex();
    if (key === allKey) return undefined;
    if (key === generatorsKey) return this.#writeGenerators(current);
    if (key.startsWith(releasePrefix)) return this.#release(current, key.slice(releasePrefix.length));
    const held = await this.#hold(current, key);
    // Something happened meanwhile: look at it first.
    if (this.#index !== current || this.#pending.size > 0) {
      this.#controller.queue.add(key);
      return undefined;
    }
    for (const other of current.hold(key, held)) this.#controller.queue.add(other);
    const object = current.object(key);
    const status = current.statusOf(key, held, {
      nowMs: this.#options.world.clock.wallMs(),
      plane: this.#options.plane(),
    });
    this.#overlapLog.set(key, status?.overlaps ?? []);
    if (object === undefined || status === undefined) return undefined;
    await this.#writeStatus(object, status);
    if (held.exhausted.size > 0) return { requeueAfterMs: exhaustedRetryMs };
    return current.hasCertificates(key) ? { requeueAfterMs: lookAgainMs } : undefined;
  }

  async #hold(current: ServiceIndex, key: string): Promise<HeldAddresses> {
    const { ranges } = this.#options.context();
    const ips = new Map<string, string[]>();
    const exhausted = new Map<string, string>();
    for (const { hostname, status } of current.addressesOf(key)) {
      if (status !== 'Available' || ips.has(hostname)) continue;
      const own: string[] = [];
      for (const range of ranges) {
        const held = await this.#allocator.hold({ owner: ownerOfName(hostname), range, present: [], wishes: [] });
        if (held.kind === 'held') own.push(held.address);
        else exhausted.set(hostname, `no ${range.family} address is left for external services`);
      }
      ips.set(hostname, own);
    }
    return { ips, exhausted };
  }

  async #release(current: ServiceIndex, hostname: string): Promise<undefined> {
    const owner = ownerOfName(hostname);
    const isHeld = this.#claims
      .byIndex(claimsByOwner, ownerKey(owner))
      .some(({ spec }) => spec.releasedAt === undefined);
    if (isHeld && current.names.holder(hostname) === undefined) await this.#allocator.release(owner);
  }

  async #writeStatus(object: MeshExternalService, { conditions: found, ...rest }: WantedStatus): Promise<void> {
    const conditions = withConditions(object.status?.conditions, found, this.#stampOf(object));
    const present = object.status ?? {};
    const isSame =
      conditions === present.conditions &&
      Object.entries(rest).every(([field, value]) => isSameJson(value, present[field as keyof typeof rest] ?? []));
    if (isSame) return;
    const status = { ...present, ...rest, conditions } as MeshExternalService['status'];
    await this.#options.home
      .updateStatus(meshExternalServiceType, { ...object, status } as MeshExternalService)
      .catch(ignoreGone);
  }

  async #writeGenerators(current: ServiceIndex): Promise<undefined> {
    for (const generator of [...this.#generators.values()].sort(byName)) {
      const selected = isCounting(generator) ? current.names.selected(generator) : 0;
      const condition = generatorCondition(generator, selected);
      const conditions = withConditions(generator.status?.conditions, [condition], this.#stampOf(generator));
      if (conditions === generator.status?.conditions && generator.status?.selected === selected) continue;
      const next = { ...generator, status: { ...generator.status, selected, conditions: [...conditions] } };
      await this.#options.home.updateStatus(hostnameGeneratorType, next).catch(ignoreGone);
    }
  }

  #stampOf({ metadata }: { readonly metadata: { readonly generation?: number } }) {
    const { generation } = metadata;
    return {
      now: formatTime(this.#options.world.clock.wallMs()),
      observedGeneration: generation,
    };
  }

  #again(keys: Iterable<string>): string[] {
    const list = [...keys];
    for (const key of list) this.#pending.add(key);
    return list;
  }

  #everything(): string[] {
    this.#index = undefined;
    return [allKey, generatorsKey];
  }
}

function byName(one: HostnameGenerator, other: HostnameGenerator): number {
  return one.metadata.name < other.metadata.name ? -1 : 1;
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/** The owner is the name itself: whatever the number of resources that share it, and the same in every cluster. */
function ownerOfName(hostname: string): AddressOwner {
  return { kind: meshExternalServiceType.kind, namespace: '', name: hostname };
}

function isOurs({ kind }: { readonly kind: string }): boolean {
  return kind === meshExternalServiceType.kind;
}

/** In one order, so that addresses are taken in it. */
function entriesOf(services: Informer<MeshExternalService>): [string, MeshExternalService][] {
  return [...services.keys()].sort().map((key) => [key, services.get(key)!]);
}
