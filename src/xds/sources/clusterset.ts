// Keeps the resources of clusterset services current: ServiceImports, their slices, whose addresses they have, and where
// clusters are. A change of
// one endpoint makes the resources of its service anew, once for each place that has proxies.

import { areUnreadable, followClaims } from '../../catalog/claims/follow-claims.ts';
import { ServedAddresses } from '../../catalog/claims/served-addresses.ts';
import type { Place } from '../../catalog/routing/locality.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import { readLocality, type SetLocality, unknownLocality } from '../../clusterset/rules/locality.ts';
import { allocatedRanges } from '../../clusterset/rules/set-ground.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType, importedServiceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { clustersetEndpoints, clustersetListeners, clustersetResources } from '../clusterset/generate.ts';
import { type ClustersetService, clustersetServiceOf } from '../clusterset/service.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import { Batch } from './batch.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface ClustersetSource extends XdsSource {
  /** Where the clusters of the set are. */
  locality(): SetLocality;
}

const optionsKey = '';

export function startClustersetSource(options: SourceOptions): ClustersetSource {
  const { client, world, book } = options;
  const log = options.log.with({ source: 'clusterset' });
  const services = new Map<string, ClustersetService>();
  let domain = 'clusterset.local';
  let locality = unknownLocality;
  const imports = createInformer<ServiceImport>({ client, world, log, type: serviceImportType });
  const slices = createInformer<EndpointSlice>({
    ...{ client, world, log },
    type: endpointSliceType,
    labelSelector: importedServiceNameLabel,
    keep: trimmed,
    indexes: { service: (slice) => [serviceKeyOf(slice)] },
  });
  const fieldSelector = `metadata.name=${clusterSetDnsName}`;
  const config = createInformer<ConfigMap>({
    ...{ client, world, log, type: configMapType, namespace: systemNamespace, fieldSelector },
  });

  const addresses = new ServedAddresses((key) => batch.add(key));
  const batch = new Batch(world.timers, (keys) => {
    if (keys.has(optionsKey)) return follow();
    for (const key of keys) renew(key);
  });

  function follow(): void {
    for (const key of new Set([...services.keys(), ...imports.keys()])) renew(key);
  }

  function renew(key: string): void {
    const object = imports.get(key);
    const service = object && clustersetServiceOf(object, slices.byIndex('service', key));
    if (service === undefined) services.delete(key);
    else services.set(key, service);
    addresses.use(key, service?.ips ?? []);
    replaceSafely(book.clusterset, key, () => (service ? clustersetResources(service, domain) : []), log);
    for (const { place, set } of book.places()) fill(place, set, key);
    const served = service && { ...service, ips: service.ips.filter((ip) => isServed(ip, key)) };
    replaceSafely(book.clustersetListeners, key, () => (served ? clustersetListeners(served, domain) : []), log);
  }

  function isServed(ip: string, key: string): boolean {
    return addresses.problemOf(ip, key) === undefined;
  }

  function fill(from: Place, set: ResourceSet, key: string): void {
    const service = services.get(key);
    const make = () => (service ? clustersetEndpoints(service, domain, { from, locality }) : []);
    replaceSafely(set, key, make, log);
  }

  book.onPlace((place, set) => {
    batch.flush();
    for (const key of services.keys()) fill(place, set, key);
  });
  imports.on((key) => batch.add(key));
  slices.on((_key, next, previous) => {
    if (previous !== undefined) batch.add(serviceKeyOf(previous));
    if (next !== undefined) batch.add(serviceKeyOf(next));
  });
  config.on((_key, next) => {
    locality = readLocality(next ?? {});
    domain = readDnsOptions(next ?? {}).zone;
    addresses.setRanges(allocatedRanges(next ?? {}));
    batch.add(optionsKey);
  });
  const settled = Promise.withResolvers<void>();
  const claims = followClaims({
    ...{ client, world, log, onSettled: settled.resolve },
    to: {
      upsert: (claim) => addresses.upsertClaim(claim),
      remove: (name) => addresses.removeClaim(name),
      keys: () => addresses.claimKeys(),
    },
    onListed: () => addresses.setListed(),
  });
  const source = sourceOf([imports, slices, config] as unknown as Informer<never>[], () => {
    claims.stop();
    batch.stop();
  });
  claims.start();
  return {
    ...source,
    whenSynced: async () => {
      await Promise.all([source.whenSynced(), settled.promise]);
      batch.flush();
    },
    staleSinceMs: () => {
      const status = claims.status();
      const ofClaims = areUnreadable(status) ? undefined : status.staleSinceMs;
      const ofOthers = source.staleSinceMs();
      return ofClaims === undefined || ofOthers === undefined ? (ofClaims ?? ofOthers) : Math.min(ofClaims, ofOthers);
    },
    locality: () => locality,
  };
}

function serviceKeyOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace ?? ''}/${metadata.labels?.[importedServiceNameLabel] ?? ''}`;
}

// Keeps only the used part of metadata; a slice of a hundred endpoints is large enough.
function trimmed(slice: EndpointSlice): EndpointSlice {
  const { name, namespace, labels, uid, resourceVersion } = slice.metadata;
  return { ...slice, metadata: { name, namespace, labels, uid, resourceVersion } };
}
