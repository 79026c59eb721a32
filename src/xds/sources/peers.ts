// Keeps the resources of peers' services current, for the proxies of their consumers: PeerServices, the roots of their
// peers, and the certificate that we show them.

import { pairIn } from '../../kube/client/kept-authority.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import { type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import { certificateSecret } from '../../peering/kinds/secrets.ts';
import { identityResource, peerServiceResources, trustResource } from '../peers/generate.ts';
import type { Cause } from '../resource.ts';
import type { WithheldBook } from '../withheld.ts';
import { Batch } from './batch.ts';
import { bundleOf } from './home-secrets.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface PeersSourceOptions extends SourceOptions {
  readonly namespace: string;
  readonly secrets: Informer<Secret>;
  readonly withheld: WithheldBook;
  readonly isBound: boolean;
}

export function startPeersSource(options: PeersSourceOptions): XdsSource {
  const { client, world, book, namespace, secrets, withheld } = options;
  const log = options.log.with({ source: 'peers' });
  const where = { client, world, log, namespace };
  const services = createInformer<PeerService>({
    ...where,
    type: peerServiceType,
    indexes: { peer: ({ spec }) => [spec.peer] },
  });
  const peers = createInformer<Peer>({ ...where, type: peerType });

  const bundle = (name: string) => {
    const peer = peers.get(`${namespace}/${name}`);
    return peer === undefined ? '' : bundleOf(peer, secrets, namespace);
  };

  const batch = new Batch(world.timers, (keys) => {
    for (const key of keys) {
      const [kind = '', name = ''] = key.split(' ', 2);
      if (kind === 'peer') renewPeer(name);
      else if (kind === 'service') renewService(name);
      else renewIdentity();
    }
  });

  function renewPeer(name: string): void {
    const pem = bundle(name);
    const make = () => (pem === '' ? [] : [trustResource({ name, namespace, bundle: pem })]);
    replaceSafely(book.peers, `trust ${name}`, make, log);
    for (const { metadata } of services.byIndex('peer', name)) renewService(`${metadata.namespace}/${metadata.name}`);
  }

  function renewIdentity(): void {
    const pair = pairIn(secrets.get(`${namespace}/${certificateSecret}`));
    replaceSafely(book.peers, 'identity', () => (pair === undefined ? [] : [identityResource(pair)]), log);
  }

  function renewService(key: string): void {
    const service = services.get(key);
    const [home = '', name = ''] = key.split('/', 2);
    const cause: Cause = { at: 'home', kind: 'PeerService', namespace: home, name };
    const outcome =
      service && peerServiceResources(service, { hasTrust: (peer) => bundle(peer) !== '', isBound: options.isBound });
    replaceSafely(book.peers, `service ${key}`, () => (outcome?.kind === 'served' ? outcome.resources : []), log);
    withheld.set(`peers ${key}`, outcome?.kind === 'withheld' ? [{ cause, reason: outcome.reason }] : []);
  }

  const offs = [
    services.on((key) => batch.add(`service ${key}`)),
    peers.on((_key, next, previous) => batch.add(`peer ${(next ?? previous)!.metadata.name}`)),
    secrets.on((key) => {
      if (key === `${namespace}/${certificateSecret}`) batch.add('identity');
      for (const { metadata, spec } of peers.values()) {
        if (spec.trust?.bundleSecret && `${namespace}/${spec.trust.bundleSecret.name}` === key)
          batch.add(`peer ${metadata.name}`);
      }
    }),
  ];
  const source = sourceOf([services, peers] as unknown as Informer<never>[], () => {
    batch.stop();
    for (const off of offs) off();
  });
  return {
    ...source,
    whenSynced: async () => {
      await source.whenSynced();
      batch.flush();
    },
  };
}
