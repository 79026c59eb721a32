// Keeps the imports of a home in a fact index for those who carry their traffic: one watch each for imports, their slices, the
// claims of addresses and, if they are wanted, Services. While the home is away, the last facts stay.

import type { Log } from '../base/log.ts';
import type { World } from '../base/world.ts';
import { type ServiceImport, serviceImportType } from '../clusterset/kinds/service-import.ts';
import type { Client } from '../kube/client/client.ts';
import { ForwardingSink } from '../kube/controller/forwarding-sink.ts';
import { Reflector } from '../kube/controller/reflector.ts';
import { type EndpointSlice, endpointSliceType, importedServiceNameLabel } from '../kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../kube/objects/service.ts';
import { areUnreadable, followClaims } from './claims/follow-claims.ts';
import type { ServedAddresses } from './claims/served-addresses.ts';
import type { FactIndex } from './facts/fact-index.ts';
import { createImportListReader } from './lists/import-list.ts';
import { createSliceListReader } from './lists/slice-list.ts';

/** Services of this cluster, one by one. */
interface ServiceSink {
  upsert(service: Service): void;
  remove(key: string): void;
  keys(): IterableIterator<string>;
}

export interface FollowImportsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly facts: FactIndex;
  readonly addresses: ServedAddresses;
  /** Own Services and all slices are followed too; absent if imports are all that is wanted. */
  readonly services?: ServiceSink;
}

export interface FollowedImports {
  start(): void;
  /** Resolves when everything was listed once. */
  readonly whenListed: Promise<void>;
  /** Since when the home fails us, on the monotonic clock; undefined while it does not. */
  staleSinceMs(): number | undefined;
  stop(): void;
}

export function followImports({ facts, addresses, services, ...options }: FollowImportsOptions): FollowedImports {
  const listed = Promise.withResolvers<void>();
  const waiting = new Set(['imports', 'slices', 'claims', ...(services === undefined ? [] : ['services'])]);
  const onListed = (what: string) => {
    waiting.delete(what);
    if (waiting.size > 0) return;
    facts.compact();
    listed.resolve();
  };
  const imports = new Reflector<ServiceImport>({
    ...options,
    log: options.log.with({ watch: serviceImportType.plural }),
    type: serviceImportType,
    decodeList: createImportListReader(),
    sink: new ForwardingSink(
      {
        upsert: (object: ServiceImport) => facts.upsertServiceImport(object),
        remove: (key) => facts.removeServiceImport(key),
        keys: () => facts.keys('imports'),
      },
      () => onListed('imports'),
    ),
    onState: () => {},
  });
  const slices = new Reflector<EndpointSlice>({
    ...options,
    log: options.log.with({ watch: endpointSliceType.plural }),
    type: endpointSliceType,
    labelSelector: services === undefined ? importedServiceNameLabel : undefined,
    decodeList: createSliceListReader(),
    sink: new ForwardingSink(
      {
        upsert: (slice: EndpointSlice) => facts.upsertEndpointSlice(slice),
        remove: (key) => facts.removeEndpointSlice(key),
        keys: () => facts.keys('slices'),
      },
      () => onListed('slices'),
    ),
    onState: () => {},
  });
  const claims = followClaims({
    ...options,
    to: {
      upsert: (claim) => addresses.upsertClaim(claim),
      remove: (name) => addresses.removeClaim(name),
      keys: () => addresses.claimKeys(),
    },
    onListed: () => addresses.setListed(),
    onSettled: () => onListed('claims'),
  });
  const own =
    services &&
    new Reflector<Service>({
      ...options,
      log: options.log.with({ watch: serviceType.plural }),
      type: serviceType,
      sink: new ForwardingSink(services, () => onListed('services')),
      onState: () => {},
    });
  const reflectors = [imports, slices, claims, ...(own === undefined ? [] : [own])];
  return {
    start: () => {
      for (const reflector of reflectors) reflector.start();
    },
    whenListed: listed.promise,
    staleSinceMs: () => {
      const since = reflectors
        .map((reflector) => reflector.status())
        .filter((status) => !areUnreadable(status))
        .flatMap(({ staleSinceMs }) => staleSinceMs ?? []);
      return since.length === 0 ? undefined : Math.min(...since);
    },
    stop: () => {
      for (const reflector of reflectors) reflector.stop();
    },
  };
}
