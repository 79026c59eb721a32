// The Secrets of a namespace: what peering keeps in the system namespace, and what external services name in theirs.

import { X509Certificate } from 'node:crypto';
import { textIn } from '../../kube/client/kept-authority.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type Peer, splitPem } from '../../peering/kinds/peer.ts';
import type { SourceOptions } from './source.ts';

export function watchSecrets(options: SourceOptions & { readonly namespace: string }): Informer<Secret> {
  const { client, world, log, namespace } = options;
  return createInformer<Secret>({ client, world, log, namespace, type: secretType });
}

/** The roots of a peer in PEM; empty if they are not known. */
export function bundleOf({ spec }: Peer, secrets: Informer<Secret>, namespace: string): string {
  const { bundle = '', bundleSecret } = spec.trust ?? {};
  const secret = bundleSecret && secrets.get(`${namespace}/${bundleSecret.name}`);
  // Only certificates: Envoy refuses what is around them, and all peers' roots with one that it cannot read.
  return splitPem(bundle === '' ? textIn(secret, 'ca.crt') : bundle)
    .filter(isCertificate)
    .join('');
}

export function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
