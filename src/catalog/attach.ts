// Ties a catalog to a home: four watches, their objects handed on one by one and not kept. A re-list removes what it did
// not bring; until every watch a zone needs has listed once, the zone is not ready; while one is failing, it is stale.

import { type AddressClaim, addressClaimType } from '../addresses/address-claim.ts';
import type { Log } from '../base/log.ts';
import { sleep, type World } from '../base/world.ts';
import { type ServiceImport, serviceImportType } from '../clusterset/kinds/service-import.ts';
import type { Client } from '../kube/client/client.ts';
import { ForwardingSink } from '../kube/controller/forwarding-sink.ts';
import { Reflector } from '../kube/controller/reflector.ts';
import { type EndpointSlice, endpointSliceType, importedServiceNameLabel } from '../kube/objects/endpoint-slice.ts';
import { type Namespace, namespaceType } from '../kube/objects/namespace.ts';
import type { KubernetesObject, ResourceType } from '../kube/objects/object.ts';
import { type Pod, podType } from '../kube/objects/pod.ts';
import { type Service, serviceType } from '../kube/objects/service.ts';
import type { Catalog } from './catalog.ts';
import { areUnreadable, followClaims } from './claims/follow-claims.ts';
import { createImportListReader } from './lists/import-list.ts';
import { createSliceListReader } from './lists/slice-list.ts';
import type { PodNames } from './names/pod-names.ts';
import type { ZoneSource } from './names/zones.ts';

export interface AttachOptions {
  readonly catalog: Catalog;
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Which of the catalog's zones are wanted; both if absent. */
  readonly zones?: readonly ZoneSource[];
  /** Names of Pods, if they are wanted. */
  readonly pods?: PodNames;
}

interface Source {
  readonly type: ResourceType;
  readonly zones: readonly ZoneSource[];
  readonly upsert: (object: never) => void;
  readonly remove: (key: string) => void;
  /** Keys of this kind in the catalog. */
  readonly keys: () => IterableIterator<string>;
}

function podSource(pods: PodNames): Source {
  return {
    type: podType,
    zones: ['services'],
    upsert: (pod: Pod) => pods.upsert(pod),
    remove: (key) => pods.remove(key),
    keys: () => pods.keys(),
  };
}

function sourcesOf({ catalog, pods }: AttachOptions): readonly Source[] {
  const { facts } = catalog;
  return [
    {
      type: serviceType,
      zones: ['services'],
      upsert: (service: Service) => facts.upsertService(service),
      remove: (key) => facts.removeService(key),
      keys: () => facts.keys('services'),
    },
    {
      type: serviceImportType,
      zones: ['imports'],
      upsert: (object: ServiceImport) => facts.upsertServiceImport(object),
      remove: (key) => facts.removeServiceImport(key),
      keys: () => facts.keys('imports'),
    },
    {
      type: endpointSliceType,
      zones: ['services', 'imports'],
      upsert: (slice: EndpointSlice) => facts.upsertEndpointSlice(slice),
      remove: (key) => facts.removeEndpointSlice(key),
      keys: () => facts.keys('slices'),
    },
    {
      type: addressClaimType,
      zones: ['imports'],
      upsert: (claim: AddressClaim) => catalog.upsertAddressClaim(claim),
      remove: (name) => catalog.removeAddressClaim(name),
      keys: () => catalog.claimNames(),
    },
    ...(pods ? [podSource(pods)] : []),
  ];
}

export class Attachment {
  readonly #options: AttachOptions;
  readonly #wanted: readonly ZoneSource[];
  readonly #sources: readonly Source[];
  readonly #synced = new Set<Source>();
  readonly #failing = new Set<Source>();
  readonly #opened = new Set<ZoneSource>();
  readonly #ready = new Set<ZoneSource>();
  readonly #waiters: (() => void)[] = [];
  readonly #watches: readonly { start(): void; stop(): void }[];
  /** The home has answered that it has none, or none for us: names of imports go on waiting, others do not. */
  #areImportsUnreadable = false;
  #isStopped = false;

  constructor(options: AttachOptions) {
    this.#options = options;
    this.#wanted = options.zones ?? ['services', 'imports'];
    this.#sources = sourcesOf(options).filter((source) => source.zones.some((zone) => this.#wanted.includes(zone)));
    const hasNamespaces = this.#wanted.includes('services');
    this.#watches = [
      ...this.#sources.map((source) => (source.type === addressClaimType ? this.#claims(source) : this.#watch(source))),
      ...(hasNamespaces ? [this.#namespaces()] : []),
    ];
    for (const watch of this.#watches) watch.start();
  }

  /** Resolves when every wanted zone can be answered. */
  whenSynced(): Promise<void> {
    return this.#ready.size === this.#wanted.length
      ? Promise.resolve()
      : new Promise((resolve) => this.#waiters.push(resolve));
  }

  stop(): void {
    this.#isStopped = true;
    for (const watch of this.#watches) watch.stop();
  }

  /** A name of the cluster may lead to an import: names of services wait for imports too, unless there are none to read. */
  #isInFor(zone: ZoneSource, source: Source): boolean {
    if (source.zones.includes(zone)) return this.#synced.has(source);
    return source.type !== serviceImportType || this.#synced.has(source) || this.#areImportsUnreadable;
  }

  #openWhatIsIn(): void {
    for (const zone of this.#wanted)
      if (this.#sources.every((source) => this.#isInFor(zone, source))) void this.#open(zone);
  }

  #onListed(source: Source): void {
    this.#synced.add(source);
    this.#openWhatIsIn();
  }

  /** Makes the zone's names, letting queries through in between, and has it answered from then on. */
  async #open(zone: ZoneSource): Promise<void> {
    if (this.#opened.has(zone)) return;
    this.#opened.add(zone);
    for (const _ of this.#options.catalog.fill(zone)) {
      await sleep(this.#options.world.timers, 0);
      if (this.#isStopped) return;
    }
    this.#options.catalog.setSynced(zone);
    this.#ready.add(zone);
    if (this.#ready.size === this.#wanted.length) for (const waiter of this.#waiters.splice(0)) waiter();
  }

  #onState(source: Source, reflector: Reflector): void {
    const status = reflector.status();
    const isFailing = status.staleSinceMs !== undefined && !(source.type === addressClaimType && areUnreadable(status));
    if (isFailing) this.#failing.add(source);
    else this.#failing.delete(source);
    for (const zone of source.zones) {
      this.#options.catalog.setStale(
        zone,
        [...this.#failing].some((other) => other.zones.includes(zone)),
      );
    }
  }

  #watch(source: Source): Reflector {
    // Slices of the cluster's own services are nine in ten: who does not need them does not ask.
    const importedOnly = this.#wanted.includes('services') ? {} : { labelSelector: importedServiceNameLabel };
    const reflector: Reflector = new Reflector<KubernetesObject>({
      ...this.#options,
      log: this.#options.log.with({ watch: source.type.plural }),
      type: source.type,
      ...(source.type === endpointSliceType ? { ...importedOnly, decodeList: createSliceListReader() } : {}),
      ...(source.type === serviceImportType ? { decodeList: createImportListReader() } : {}),
      sink: new ForwardingSink(source, () => this.#onListed(source)),
      onState: () => {
        this.#onState(source, reflector);
        if (source.type !== serviceImportType || this.#areImportsUnreadable || !areUnreadable(reflector.status()))
          return;
        this.#areImportsUnreadable = true;
        this.#openWhatIsIn();
      },
    });
    return reflector;
  }

  #claims(source: Source) {
    return followClaims({
      ...this.#options,
      to: source,
      onListed: () => this.#options.catalog.setClaimsListed(),
      onSettled: () => this.#onListed(source),
      onState: (each) => this.#onState(source, each),
    });
  }

  /** Waited for by nothing: all that would be missing is the name of a namespace without services. */
  #namespaces(): Reflector<Namespace> {
    const { catalog, log } = this.#options;
    const names = {
      upsert: ({ metadata }: Namespace) => catalog.upsertNamespace(metadata.name),
      remove: (key: string) => catalog.removeNamespace(key),
      keys: () => catalog.namespaces(),
    };
    return new Reflector<Namespace>({
      ...this.#options,
      log: log.with({ watch: namespaceType.plural }),
      type: namespaceType,
      sink: new ForwardingSink(names, () => {}),
      onState: () => {},
    });
  }
}
