// Whether two Peers stand for one mesh: then each stream of it would be that of either, and both would flap. Pure.

import { type Peer, type PeerTrust, splitPem } from '../kinds/peer.ts';

export interface KnownTrust extends Pick<PeerTrust, 'domain' | 'identities'> {
  /** Its roots, in PEM. */
  readonly roots: readonly string[];
}

/** The same trust domain, a root in common, and an identity that either would take. */
export function isSameMesh(one: KnownTrust, other: KnownTrust): boolean {
  if (one.domain !== other.domain) return false;
  const identities = one.identities ?? [];
  const others = other.identities ?? [];
  const mayMeet =
    identities.length === 0 || others.length === 0 || identities.some((identity) => others.includes(identity));
  return mayMeet && one.roots.some((root) => other.roots.some((candidate) => body(root) === body(candidate)));
}

const body = (pem: string) => pem.replace(/\s/g, '');

/** The Peer that stands for this mesh already. Peers whose roots are in a Secret are left to the peering process. */
export function peerOfSameMesh(peers: readonly Peer[], wanted: KnownTrust): Peer | undefined {
  return peers.find(({ spec }) => isSameMesh({ ...spec.trust, roots: splitPem(spec.trust.bundle ?? '') }, wanted));
}
