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

export interface Attachment {
  /** Resolves when every wanted zone can be answered. */
  whenSynced(): Promise<void>;
  stop(): void;
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

export function attachCatalog(options: AttachOptions): Attachment {
  const { catalog, pods, zones: wanted = ['services', 'imports'] } = options;
  const { facts } = catalog;
  const all: readonly Source[] = [
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
  const sources = all.filter((source) => source.zones.some((zone) => wanted.includes(zone)));
  // Slices of the cluster's own services are nine in ten: who does not need them does not ask.
  const importedOnly = wanted.includes('services') ? {} : { labelSelector: importedServiceNameLabel };
  const synced = new Set<Source>();
  const failing = new Set<Source>();
  const opened = new Set<ZoneSource>();
  const ready = new Set<ZoneSource>();
  const waiters: (() => void)[] = [];
  /** The home has answered that it has none, or none for us: names of imports go on waiting, others do not. */
  let areImportsUnreadable = false;
  let isStopped = false;

  /** A name of the cluster may lead to an import: names of services wait for imports too, unless there are none to read. */
  function isInFor(zone: ZoneSource, source: Source): boolean {
    if (source.zones.includes(zone)) return synced.has(source);
    return source.type !== serviceImportType || synced.has(source) || areImportsUnreadable;
  }

  function openWhatIsIn(): void {
    for (const zone of wanted) if (sources.every((source) => isInFor(zone, source))) void open(zone);
  }

  function onListed(source: Source): void {
    synced.add(source);
    openWhatIsIn();
  }

  /** Makes the zone's names, letting queries through in between, and has it answered from then on. */
  async function open(zone: ZoneSource): Promise<void> {
    if (opened.has(zone)) return;
    opened.add(zone);
    for (const _ of catalog.fill(zone)) {
      await sleep(options.world.timers, 0);
      if (isStopped) return;
    }
    catalog.setSynced(zone);
    ready.add(zone);
    if (ready.size === wanted.length) for (const waiter of waiters.splice(0)) waiter();
  }

  function onState(source: Source, reflector: Reflector): void {
    const status = reflector.status();
    const isFailing = status.staleSinceMs !== undefined && !(source.type === addressClaimType && areUnreadable(status));
    if (isFailing) failing.add(source);
    else failing.delete(source);
    for (const zone of source.zones) {
      catalog.setStale(
        zone,
        [...failing].some((other) => other.zones.includes(zone)),
      );
    }
  }

  const reflectors = sources.map((source) => {
    if (source.type === addressClaimType)
      return followClaims({
        ...options,
        to: source,
        onListed: () => catalog.setClaimsListed(),
        onSettled: () => onListed(source),
        onState: (each) => onState(source, each),
      });
    const reflector: Reflector = new Reflector<KubernetesObject>({
      ...options,
      log: options.log.with({ watch: source.type.plural }),
      type: source.type,
      ...(source.type === endpointSliceType ? { ...importedOnly, decodeList: createSliceListReader() } : {}),
      ...(source.type === serviceImportType ? { decodeList: createImportListReader() } : {}),
      sink: new ForwardingSink(source, () => onListed(source)),
      onState: () => {
        onState(source, reflector);
        if (source.type !== serviceImportType || areImportsUnreadable || !areUnreadable(reflector.status())) return;
        areImportsUnreadable = true;
        openWhatIsIn();
      },
    });
    return reflector;
  });
  // Waited for by nothing: all that would be missing is the name of a namespace without services.
  if (wanted.includes('services')) {
    const names = {
      upsert: ({ metadata }: Namespace) => catalog.upsertNamespace(metadata.name),
      remove: (key: string) => catalog.removeNamespace(key),
      keys: () => catalog.namespaces(),
    };
    reflectors.push(
      new Reflector<Namespace>({
        ...options,
        log: options.log.with({ watch: namespaceType.plural }),
        type: namespaceType,
        sink: new ForwardingSink(names, () => {}),
        onState: () => {},
      }),
    );
  }
  for (const reflector of reflectors) reflector.start();
  return {
    whenSynced: () =>
      ready.size === wanted.length ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve)),
    stop: () => {
      isStopped = true;
      for (const reflector of reflectors) reflector.stop();
    },
  };
}
