// Keeps the resources of clusterset services current, from the facts of imports and from where clusters are. A change of one
// endpoint makes the resources of its service anew, once for each place that has proxies.

import { formatAddress } from '../../base/net/ip.ts';
import { ServedAddresses } from '../../catalog/claims/served-addresses.ts';
import { FactIndex } from '../../catalog/facts/fact-index.ts';
import { virtualAddressesIn } from '../../catalog/facts/facts.ts';
import { followImports } from '../../catalog/follow-imports.ts';
import { allocatedRanges } from '../../clusterset/rules/address-plan.ts';
import type { Place } from '../../clusterset/rules/choice/locality.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import { type Callers, noCallers, readCallers } from '../../clusterset/rules/exports/callers.ts';
import { readLocality, type SetLocality, unknownLocality } from '../../clusterset/rules/locality.ts';
import { oneNetwork, readNetworks, type SetNetworks } from '../../clusterset/rules/networks/networks.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { clustersetEndpoints, clustersetListeners, clustersetResources } from '../clusterset/generate.ts';
import { type ClustersetService, clustersetServiceOf } from '../clusterset/service.ts';
import { type NamedWay, namedWaysOf } from '../gateways/named-ways.ts';
import { type NamedUdpWay, udpWaysOf } from '../gateways/udp-near-side.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import { Batch } from './batch.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

const optionsKey = '';

export class ClustersetSource implements XdsSource {
  readonly #options: SourceOptions;
  readonly #log;
  readonly #facts;
  /** Those that have resources. */
  readonly #served = new Set<string>();
  #domain = 'clusterset.local';
  #locality = unknownLocality;
  #networks = oneNetwork;
  #callers = noCallers;
  readonly #serviceListeners = new Set<(key: string) => void>();
  readonly #optionListeners = new Set<() => void>();
  readonly #callerListeners = new Set<(namespaces: ReadonlySet<string> | undefined) => void>();
  readonly #fieldSelector = `metadata.name=${clusterSetDnsName}`;
  readonly #config;
  readonly #addresses;
  readonly #batch;
  readonly #imports;
  readonly #source;

  constructor(options: SourceOptions) {
    this.#options = options;
    this.#log = this.#options.log.with({ source: 'clusterset' });
    this.#facts = new FactIndex({ clock: this.#options.world.clock, holdsTraffic: true });
    this.#config = createInformer<ConfigMap>({
      ...{
        client: this.#options.client,
        world: this.#options.world,
        log: this.#log,
        type: configMapType,
        namespace: systemNamespace,
        fieldSelector: this.#fieldSelector,
      },
    });
    this.#addresses = new ServedAddresses((key) => this.#batch.add(key));
    this.#batch = new Batch(this.#options.world.timers, (keys) => {
      if (keys.has(optionsKey)) return this.#follow();
      for (const key of keys) this.#renew(key);
    });
    this.#options.views.onPlace((place, set) => {
      this.#batch.flush();
      for (const key of this.#served) this.#fill(place, set, key, this.#serviceOf(key));
    });
    this.#facts.onTouch((ownerKey) => {
      if (ownerKey[0] === 'i') this.#batch.add(ownerKey.slice(2));
    });
    this.#config.on((_key, next) => {
      const before = JSON.stringify([this.#domain, [...this.#networks.clusters]]);
      this.#locality = readLocality(next ?? {});
      this.#networks = readNetworks(next ?? {});
      this.#domain = readDnsOptions(next ?? {}).zone;
      if (JSON.stringify([this.#domain, [...this.#networks.clusters]]) !== before)
        for (const listener of this.#optionListeners) listener();
      const said = readCallers(next);
      const namespaces = this.#callers.differs(said);
      this.#callers = said;
      if (namespaces?.size !== 0) for (const listener of this.#callerListeners) listener(namespaces);
      this.#addresses.setRanges(allocatedRanges(next ?? {}));
      this.#batch.add(optionsKey);
    });
    this.#imports = followImports({
      client: this.#options.client,
      world: this.#options.world,
      log: this.#log,
      facts: this.#facts,
      addresses: this.#addresses,
    });
    this.#source = sourceOf([this.#config] as unknown as Informer<never>[], () => {
      this.#imports.stop();
      this.#batch.stop();
    });
    this.#imports.start();
  }

  stop() {
    return this.#source.stop();
  }

  async whenSynced() {
    await Promise.all([this.#source.whenSynced(), this.#imports.whenListed]);
    this.#batch.flush();
  }

  staleSinceMs() {
    const since = [this.#imports.staleSinceMs(), this.#source.staleSinceMs()].filter((ms) => ms !== undefined);
    return since.length === 0 ? undefined : Math.min(...since);
  }

  /** Where the clusters of the set are. */
  locality(): SetLocality {
    return this.#locality;
  }

  /** Which of them lie in other networks. */
  networks(): SetNetworks {
    return this.#networks;
  }

  /** Who may call exported services, as ServiceAccessPolicies have it. */
  callers(): Callers {
    return this.#callers;
  }

  /** The zone of clusterset names. */
  domain(): string {
    return this.#domain;
  }

  /** The service at an address that is its own. */
  serviceAt(address: string): string | undefined {
    return this.#addresses.holderOf(address);
  }

  /** An import by `namespace/name`, with the addresses that are its own; undefined if there is none. */
  service(key: string): ClustersetService | undefined {
    const service = this.#serviceOf(key);
    return service && this.#ownAddresses(key, service);
  }

  /** Where gateways have to be asked for an import by name, at addresses that are its own. */
  namedWays(key: string): readonly NamedWay[] {
    if (this.#networks.clusters.size === 0) return [];
    const owner = this.#facts.ownerOf(`i/${key}`);
    if (!owner.isPresent) return [];
    const ways = namedWaysOf({ key, owner, slices: this.#facts.slicesOf(`i/${key}`, owner), domain: this.#domain });
    return ways.filter(({ address }) => this.#addresses.problemOf(address, key) === undefined);
  }

  /** Which UDP ports of an import are carried to which cluster. */
  udpWays(key: string): readonly NamedUdpWay[] {
    if (this.#networks.clusters.size === 0) return [];
    const owner = this.#facts.ownerOf(`i/${key}`);
    return owner.isPresent ? udpWaysOf(key, owner, this.#domain) : [];
  }

  /** Called with the key of an import that may have changed. */
  onService(listener: (key: string) => void): () => void {
    this.#serviceListeners.add(listener);
    return () => this.#serviceListeners.delete(listener);
  }

  /** Called when networks or the zone have changed. */
  onOptions(listener: () => void): () => void {
    this.#optionListeners.add(listener);
    return () => this.#optionListeners.delete(listener);
  }

  /** Called when policies have changed, with their namespaces; undefined is any. */
  onCallers(listener: (namespaces: ReadonlySet<string> | undefined) => void): () => void {
    this.#callerListeners.add(listener);
    return () => this.#callerListeners.delete(listener);
  }

  #follow(): void {
    for (const key of new Set([...this.#served, ...this.#facts.keys('imports')])) this.#renew(key);
  }

  #serviceOf(key: string): ClustersetService | undefined {
    const owner = this.#facts.ownerOf(`i/${key}`);
    return owner.isPresent ? clustersetServiceOf(key, owner, this.#facts.slicesOf(`i/${key}`, owner)) : undefined;
  }

  /** Of endpoints of a headless service in other networks. */
  #virtualAddressesOf(key: string): string[] {
    const owner = this.#facts.ownerOf(`i/${key}`);
    if (owner.kind !== 'Headless' || this.#networks.clusters.size === 0) return [];
    return virtualAddressesIn(this.#facts.slicesOf(`i/${key}`, owner)).map((ip) => formatAddress(ip));
  }

  #renew(key: string): void {
    const service = this.#serviceOf(key);
    if (service === undefined) this.#served.delete(key);
    else this.#served.add(key);
    this.#addresses.use(key, service ? [...service.ips, ...this.#virtualAddressesOf(key)] : []);
    replaceSafely(
      this.#options.views.clusterset,
      key,
      () => (service ? clustersetResources(service, this.#domain) : []),
      this.#log,
    );
    for (const { place, set } of this.#options.views.places()) this.#fill(place, set, key, service);
    const make = () => (service ? clustersetListeners(this.#ownAddresses(key, service), this.#domain) : []);
    replaceSafely(this.#options.views.clustersetListeners, key, make, this.#log);
    for (const listener of this.#serviceListeners) listener(key);
  }

  #ownAddresses(key: string, service: ClustersetService): ClustersetService {
    return { ...service, ips: service.ips.filter((ip) => this.#addresses.problemOf(ip, key) === undefined) };
  }

  #fill(from: Place, set: ResourceSet, key: string, service: ClustersetService | undefined): void {
    const make = () =>
      service
        ? clustersetEndpoints(service, this.#domain, { from, locality: this.#locality, networks: this.#networks })
        : [];
    replaceSafely(set, key, make, this.#log);
  }
}
