// Keeps the resources of peers' services current, for the proxies of their consumers: PeerServices, where the names of their
// ingresses lead, the roots of their peers, and for each proxy the certificate that it shows to them.

import type { LookUp } from '../../base/net/followed-names.ts';
import { repeat } from '../../base/repeat.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import { type PeerService, peerServiceType, reachOf } from '../../peering/kinds/peer-service.ts';
import { proxyIdentity } from '../../peering/kinds/proxy-identity.ts';
import type { Reserved } from '../../peering/rules/link-config.ts';
import { formatNodeId, type ProxyIdentity } from '../identity/proxy-identity.ts';
import { identityResource, peerServiceResources, trustResource } from '../peers/generate.ts';
import type { Cause, XdsResource } from '../resource.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import type { WithheldList } from '../withheld.ts';
import { Batch } from './batch.ts';
import { bundleOf } from './home-secrets.ts';
import { IngressNames } from './ingress-names.ts';
import type { MeshSource } from './mesh.ts';
import { MeshCertificates, ofProxies } from './mesh-certificates.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface PeersSourceOptions extends SourceOptions {
  readonly namespace: string;
  /** Namespace of the Secrets that Peers name. */
  readonly secretsNamespace: string;
  readonly secrets: Informer<Secret>;
  readonly mesh: MeshSource;
  readonly withheld: WithheldList;
  readonly isBound: boolean;
  readonly lookUp: LookUp;
  /** Names and addresses of this cluster, to which no peer may lead our proxies. */
  readonly reserved: () => Reserved;
}

/** Certificates that are due are issued anew this often. */
const renewMs = 3_600_000;
/** How long the first configuration waits for names. */
const namesMsMax = 3000;

export class PeersSource implements XdsSource {
  readonly #options: PeersSourceOptions;
  readonly #log;
  readonly #where;
  readonly #services;
  readonly #peers;
  readonly #certificates;
  #hadIdentity;
  readonly #names;
  readonly #batch;
  readonly #stopRenewing;
  readonly #offs;
  readonly #source;

  constructor(options: PeersSourceOptions) {
    this.#options = options;
    this.#log = this.#options.log.with({ source: 'peers' });
    this.#where = {
      client: this.#options.client,
      world: this.#options.world,
      log: this.#log,
      namespace: this.#options.namespace,
    };
    this.#services = createInformer<PeerService>({
      ...this.#where,
      type: peerServiceType,
      indexes: { peer: ({ spec }) => [spec.peer] },
    });
    this.#peers = createInformer<Peer>({ ...this.#where, type: peerType });
    this.#certificates = new MeshCertificates(this.#options.world, ofProxies);
    this.#hadIdentity = this.#hasIdentity();
    this.#names = new IngressNames({
      ...{ world: this.#options.world, log: this.#log, lookUp: this.#options.lookUp, reserved: this.#options.reserved },
      onChange: (keys) => {
        for (const key of keys) this.#batch.add(`service ${key}`);
      },
    });
    this.#batch = new Batch(this.#options.world.timers, (keys) => {
      for (const key of keys) {
        const [kind = '', name = ''] = key.split(' ', 2);
        if (kind === 'peer') this.#renewPeer(name);
        else if (kind === 'service') this.#renewService(name);
        else this.#renewIdentities();
      }
    });
    this.#stopRenewing = repeat(this.#options.world.timers, { everyMs: renewMs }, () => this.#batch.add('identity'));
    this.#options.views.onProxy((proxy, set) => this.#giveIdentity(proxy, set));
    this.#offs = [
      this.#options.mesh.onChange(() => this.#batch.add('identity')),
      this.#services.on((key) => this.#batch.add(`service ${key}`)),
      this.#peers.on((_key, next, previous) => this.#batch.add(`peer ${(next ?? previous)!.metadata.name}`)),
      this.#options.secrets.on((key) => {
        for (const { metadata, spec } of this.#peers.values()) {
          if (spec.trust?.bundleSecret && `${this.#options.secretsNamespace}/${spec.trust.bundleSecret.name}` === key)
            this.#batch.add(`peer ${metadata.name}`);
        }
      }),
    ];
    this.#source = sourceOf([this.#services, this.#peers] as unknown as Informer<never>[], () => {
      this.#batch.stop();
      this.#names.stop();
      this.#stopRenewing();
      for (const off of this.#offs) off();
    });
  }

  staleSinceMs() {
    return this.#source.staleSinceMs();
  }

  stop() {
    return this.#source.stop();
  }

  /** Where ingresses may lead has to be judged anew. */
  reservedChanged(): void {
    for (const { metadata } of this.#services.values())
      this.#batch.add(`service ${metadata.namespace}/${metadata.name}`);
  }

  async whenSynced() {
    await Promise.all([this.#source.whenSynced(), this.#options.mesh.whenSynced()]);
    this.#batch.flush();
    await this.#names.whenAsked(namesMsMax);
    this.#batch.add('identity');
    this.#batch.flush();
  }

  #hasIdentity() {
    return this.#options.mesh.authority() !== undefined && this.#options.mesh.defaults() !== undefined;
  }

  #bundle(name: string) {
    const peer = this.#peers.get(`${this.#options.namespace}/${name}`);
    return peer === undefined ? '' : bundleOf(peer, this.#options.secrets, this.#options.secretsNamespace);
  }

  #renewPeer(name: string): void {
    const pem = this.#bundle(name);
    const make = () => (pem === '' ? [] : [trustResource({ name, namespace: this.#options.namespace, bundle: pem })]);
    replaceSafely(this.#options.views.peers, `trust ${name}`, make, this.#log);
    for (const { metadata } of this.#services.byIndex('peer', name))
      this.#renewService(`${metadata.namespace}/${metadata.name}`);
  }

  #identityOf(proxy: ProxyIdentity): XdsResource[] {
    const [authority, domain] = [this.#options.mesh.authority(), this.#options.mesh.defaults()?.trustDomain];
    if (authority === undefined || domain === undefined) return [];
    return [identityResource(this.#certificates.of(proxyIdentity(domain, proxy), authority, formatNodeId(proxy)))];
  }

  #giveIdentity(proxy: ProxyIdentity, set: ResourceSet) {
    return replaceSafely(set, 'identity', () => this.#identityOf(proxy), this.#log);
  }

  #renewIdentities(): void {
    for (const { proxy, set } of this.#options.views.proxies()) this.#giveIdentity(proxy, set);
    const isGiven = this.#hasIdentity();
    if (isGiven === this.#hadIdentity) return;
    this.#hadIdentity = isGiven;
    for (const { metadata } of this.#services.values()) this.#renewService(`${metadata.namespace}/${metadata.name}`);
  }

  #renewService(key: string): void {
    const service = this.#services.get(key);
    const [home = '', name = ''] = key.split('/', 2);
    const cause: Cause = { at: 'home', kind: 'PeerService', namespace: home, name };
    const peer = service?.spec.peer ?? '';
    this.#names.follow(key, peer, service === undefined ? [] : reachOf(service).ingress);
    const outcome =
      service &&
      peerServiceResources(service, {
        hasTrust: (one) => this.#bundle(one) !== '',
        hasIdentity: this.#hasIdentity(),
        isBound: this.#options.isBound,
        addressesOf: (name) =>
          this.#names.addressesOf(name, peer, this.#peers.get(`${this.#options.namespace}/${peer}`)?.spec),
      });
    replaceSafely(
      this.#options.views.peers,
      `service ${key}`,
      () => (outcome?.kind === 'served' ? outcome.resources : []),
      this.#log,
    );
    this.#options.withheld.set(`peers ${key}`, outcome?.kind === 'withheld' ? [{ cause, reason: outcome.reason }] : []);
  }
}
