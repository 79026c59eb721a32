// Keeps the resources of peers' services current, for the proxies of their consumers: PeerServices, where the names of their
// ingresses lead, the roots of their peers, and for each proxy the certificate that it shows to them.

import type { LookUp } from '../../base/net/followed-names.ts';
import { repeat } from '../../base/repeat.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import { type PeerService, peerServiceType, reachOf } from '../../peering/kinds/peer-service.ts';
import { proxyIdentity } from '../../peering/kinds/proxy-identity.ts';
import type { OwnGround } from '../../peering/rules/link-config.ts';
import { formatNodeId, type ProxyIdentity } from '../identity/proxy-identity.ts';
import { identityResource, peerServiceResources, trustResource } from '../peers/generate.ts';
import type { Cause, XdsResource } from '../resource.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import type { WithheldBook } from '../withheld.ts';
import { Batch } from './batch.ts';
import { bundleOf } from './home-secrets.ts';
import { IngressNames } from './ingress-names.ts';
import type { MeshSource } from './mesh.ts';
import { MeshCertificates, ofProxies } from './mesh-certificates.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface PeersSourceOptions extends SourceOptions {
  readonly namespace: string;
  /** Of the Secrets that Peers name. */
  readonly secretsNamespace: string;
  readonly secrets: Informer<Secret>;
  readonly mesh: MeshSource;
  readonly withheld: WithheldBook;
  readonly isBound: boolean;
  readonly lookUp: LookUp;
  /** Names and addresses of this cluster, to which no peer may lead our proxies. */
  readonly ground: () => OwnGround;
}

export interface PeersSource extends XdsSource {
  /** Where ingresses may lead has to be judged anew. */
  groundChanged(): void;
}

/** Certificates that are due are issued anew this often. */
const renewMs = 3_600_000;
/** How long the first configuration waits for names. */
const namesMsMax = 3000;

export function startPeersSource(options: PeersSourceOptions): PeersSource {
  const { client, world, book, namespace, secretsNamespace, secrets, mesh, withheld } = options;
  const log = options.log.with({ source: 'peers' });
  const where = { client, world, log, namespace };
  const services = createInformer<PeerService>({
    ...where,
    type: peerServiceType,
    indexes: { peer: ({ spec }) => [spec.peer] },
  });
  const peers = createInformer<Peer>({ ...where, type: peerType });

  const certificates = new MeshCertificates(world, ofProxies);
  const hasIdentity = () => mesh.authority() !== undefined && mesh.defaults() !== undefined;
  let hadIdentity = hasIdentity();

  const bundle = (name: string) => {
    const peer = peers.get(`${namespace}/${name}`);
    return peer === undefined ? '' : bundleOf(peer, secrets, secretsNamespace);
  };

  const names = new IngressNames({
    ...{ world, log, lookUp: options.lookUp, ground: options.ground },
    onChange: (keys) => {
      for (const key of keys) batch.add(`service ${key}`);
    },
  });

  const batch = new Batch(world.timers, (keys) => {
    for (const key of keys) {
      const [kind = '', name = ''] = key.split(' ', 2);
      if (kind === 'peer') renewPeer(name);
      else if (kind === 'service') renewService(name);
      else renewIdentities();
    }
  });

  function renewPeer(name: string): void {
    const pem = bundle(name);
    const make = () => (pem === '' ? [] : [trustResource({ name, namespace, bundle: pem })]);
    replaceSafely(book.peers, `trust ${name}`, make, log);
    for (const { metadata } of services.byIndex('peer', name)) renewService(`${metadata.namespace}/${metadata.name}`);
  }

  function identityOf(proxy: ProxyIdentity): XdsResource[] {
    const [authority, domain] = [mesh.authority(), mesh.defaults()?.trustDomain];
    if (authority === undefined || domain === undefined) return [];
    return [identityResource(certificates.of(proxyIdentity(domain, proxy), authority, formatNodeId(proxy)))];
  }

  const giveIdentity = (proxy: ProxyIdentity, set: ResourceSet) =>
    replaceSafely(set, 'identity', () => identityOf(proxy), log);

  function renewIdentities(): void {
    for (const { proxy, set } of book.proxies()) giveIdentity(proxy, set);
    const isGiven = hasIdentity();
    if (isGiven === hadIdentity) return;
    hadIdentity = isGiven;
    for (const { metadata } of services.values()) renewService(`${metadata.namespace}/${metadata.name}`);
  }

  function renewService(key: string): void {
    const service = services.get(key);
    const [home = '', name = ''] = key.split('/', 2);
    const cause: Cause = { at: 'home', kind: 'PeerService', namespace: home, name };
    const peer = service?.spec.peer ?? '';
    names.follow(key, peer, service === undefined ? [] : reachOf(service).ingress);
    const outcome =
      service &&
      peerServiceResources(service, {
        hasTrust: (one) => bundle(one) !== '',
        hasIdentity: hasIdentity(),
        isBound: options.isBound,
        addressesOf: (name) => names.addressesOf(name, peer, peers.get(`${namespace}/${peer}`)?.spec),
      });
    replaceSafely(book.peers, `service ${key}`, () => (outcome?.kind === 'served' ? outcome.resources : []), log);
    withheld.set(`peers ${key}`, outcome?.kind === 'withheld' ? [{ cause, reason: outcome.reason }] : []);
  }

  const stopRenewing = repeat(world.timers, { everyMs: renewMs }, () => batch.add('identity'));
  book.onProxy(giveIdentity);
  const offs = [
    mesh.onChange(() => batch.add('identity')),
    services.on((key) => batch.add(`service ${key}`)),
    peers.on((_key, next, previous) => batch.add(`peer ${(next ?? previous)!.metadata.name}`)),
    secrets.on((key) => {
      for (const { metadata, spec } of peers.values()) {
        if (spec.trust?.bundleSecret && `${secretsNamespace}/${spec.trust.bundleSecret.name}` === key)
          batch.add(`peer ${metadata.name}`);
      }
    }),
  ];
  const source = sourceOf([services, peers] as unknown as Informer<never>[], () => {
    batch.stop();
    names.stop();
    stopRenewing();
    for (const off of offs) off();
  });
  return {
    ...source,
    groundChanged: () => {
      for (const { metadata } of services.values()) batch.add(`service ${metadata.namespace}/${metadata.name}`);
    },
    whenSynced: async () => {
      await Promise.all([source.whenSynced(), mesh.whenSynced()]);
      batch.flush();
      await names.whenAsked(namesMsMax);
      batch.add('identity');
      batch.flush();
    },
  };
}
