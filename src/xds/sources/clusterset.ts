// Keeps the resources of clusterset services current, from the facts of imports and from where clusters are. A change of one
// endpoint makes the resources of its service anew, once for each place that has proxies.

import { formatAddress } from '../../base/net/ip.ts';
import { ServedAddresses } from '../../catalog/claims/served-addresses.ts';
import { FactBook } from '../../catalog/facts/fact-book.ts';
import { virtualAddressesIn } from '../../catalog/facts/facts.ts';
import { followImports } from '../../catalog/follow-imports.ts';
import type { Place } from '../../clusterset/rules/choice/locality.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import { type Callers, noCallers, readCallers } from '../../clusterset/rules/exports/callers.ts';
import { readLocality, type SetLocality, unknownLocality } from '../../clusterset/rules/locality.ts';
import { oneNetwork, readNetworks, type SetNetworks } from '../../clusterset/rules/networks/networks.ts';
import { allocatedRanges } from '../../clusterset/rules/set-ground.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { clustersetEndpoints, clustersetListeners, clustersetResources } from '../clusterset/generate.ts';
import { type ClustersetService, clustersetServiceOf } from '../clusterset/service.ts';
import { type NamedWay, namedWaysOf } from '../gateways/named-ways.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import { Batch } from './batch.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface ClustersetSource extends XdsSource {
  /** Where the clusters of the set are. */
  locality(): SetLocality;
  /** Which of them lie in other networks. */
  networks(): SetNetworks;
  /** Who may call exported services, as ServiceAccessPolicies have it. */
  callers(): Callers;
  /** The zone of clusterset names. */
  domain(): string;
  /** An import by `namespace/name`, with the addresses that are its own; undefined if there is none. */
  service(key: string): ClustersetService | undefined;
  /** Where gateways have to be asked for an import by name, at addresses that are its own. */
  namedWays(key: string): readonly NamedWay[];
  /** Called with the key of an import that may have changed. */
  onService(listener: (key: string) => void): () => void;
  /** Called when networks or the zone have changed. */
  onOptions(listener: () => void): () => void;
  /** Called when policies have changed, with their namespaces; undefined is any. */
  onCallers(listener: (namespaces: ReadonlySet<string> | undefined) => void): () => void;
}

const optionsKey = '';

export function startClustersetSource(options: SourceOptions): ClustersetSource {
  const { client, world, book } = options;
  const log = options.log.with({ source: 'clusterset' });
  const facts = new FactBook({ clock: world.clock, holdsTraffic: true });
  /** Those that have resources. */
  const served = new Set<string>();
  let domain = 'clusterset.local';
  let locality = unknownLocality;
  let networks = oneNetwork;
  let callers = noCallers;
  const serviceListeners = new Set<(key: string) => void>();
  const optionListeners = new Set<() => void>();
  const callerListeners = new Set<(namespaces: ReadonlySet<string> | undefined) => void>();
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
    for (const key of new Set([...served, ...facts.keys('imports')])) renew(key);
  }

  function serviceOf(key: string): ClustersetService | undefined {
    const owner = facts.ownerOf(`i/${key}`);
    return owner.isPresent ? clustersetServiceOf(key, owner, facts.slicesOf(`i/${key}`, owner)) : undefined;
  }

  /** Of endpoints of a headless service in other networks. */
  function virtualAddressesOf(key: string): string[] {
    const owner = facts.ownerOf(`i/${key}`);
    if (owner.kind !== 'Headless' || networks.clusters.size === 0) return [];
    return virtualAddressesIn(facts.slicesOf(`i/${key}`, owner)).map((ip) => formatAddress(ip));
  }

  function renew(key: string): void {
    const service = serviceOf(key);
    if (service === undefined) served.delete(key);
    else served.add(key);
    addresses.use(key, service ? [...service.ips, ...virtualAddressesOf(key)] : []);
    replaceSafely(book.clusterset, key, () => (service ? clustersetResources(service, domain) : []), log);
    for (const { place, set } of book.places()) fill(place, set, key, service);
    const make = () => (service ? clustersetListeners(ownAddresses(key, service), domain) : []);
    replaceSafely(book.clustersetListeners, key, make, log);
    for (const listener of serviceListeners) listener(key);
  }

  function ownAddresses(key: string, service: ClustersetService): ClustersetService {
    return { ...service, ips: service.ips.filter((ip) => addresses.problemOf(ip, key) === undefined) };
  }

  function fill(from: Place, set: ResourceSet, key: string, service: ClustersetService | undefined): void {
    const make = () => (service ? clustersetEndpoints(service, domain, { from, locality, networks }) : []);
    replaceSafely(set, key, make, log);
  }

  book.onPlace((place, set) => {
    batch.flush();
    for (const key of served) fill(place, set, key, serviceOf(key));
  });
  facts.onTouch((ownerKey) => {
    if (ownerKey[0] === 'i') batch.add(ownerKey.slice(2));
  });
  config.on((_key, next) => {
    const before = JSON.stringify([domain, [...networks.clusters]]);
    locality = readLocality(next ?? {});
    networks = readNetworks(next ?? {});
    domain = readDnsOptions(next ?? {}).zone;
    if (JSON.stringify([domain, [...networks.clusters]]) !== before) for (const listener of optionListeners) listener();
    const said = readCallers(next);
    const namespaces = callers.differs(said);
    callers = said;
    if (namespaces?.size !== 0) for (const listener of callerListeners) listener(namespaces);
    addresses.setRanges(allocatedRanges(next ?? {}));
    batch.add(optionsKey);
  });
  const imports = followImports({ client, world, log, facts, addresses });
  const source = sourceOf([config] as unknown as Informer<never>[], () => {
    imports.stop();
    batch.stop();
  });
  imports.start();
  return {
    ...source,
    whenSynced: async () => {
      await Promise.all([source.whenSynced(), imports.whenListed]);
      batch.flush();
    },
    staleSinceMs: () => {
      const since = [imports.staleSinceMs(), source.staleSinceMs()].filter((ms) => ms !== undefined);
      return since.length === 0 ? undefined : Math.min(...since);
    },
    locality: () => locality,
    networks: () => networks,
    callers: () => callers,
    domain: () => domain,
    service: (key) => {
      const service = serviceOf(key);
      return service && ownAddresses(key, service);
    },
    namedWays: (key) => {
      if (networks.clusters.size === 0) return [];
      const owner = facts.ownerOf(`i/${key}`);
      if (!owner.isPresent) return [];
      const ways = namedWaysOf({ key, owner, slices: facts.slicesOf(`i/${key}`, owner), domain });
      return ways.filter(({ address }) => addresses.problemOf(address, key) === undefined);
    },
    onService: (listener) => {
      serviceListeners.add(listener);
      return () => serviceListeners.delete(listener);
    },
    onOptions: (listener) => {
      optionListeners.add(listener);
      return () => optionListeners.delete(listener);
    },
    onCallers: (listener) => {
      callerListeners.add(listener);
      return () => callerListeners.delete(listener);
    },
  };
}
