// Trusted peers: the roots of each peer are valid for that peer's trust domain alone. Pure, with time passed in.
//
// A caller that is not trusted gets Unauthenticated, which it does not retry; one that may be served later, Unavailable.

import type { X509Certificate } from 'node:crypto';
import type { Refusal, Verdict } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import { whatIsWrongWithChain } from '../../base/x509/chain.ts';
import { isProxyIdentity } from '../kinds/proxy-identity.ts';
import { trustDomainOf } from '../kinds/shared-service.ts';

export interface TrustedPeer {
  readonly peer: string;
  /** The trust domain of its roots, and no other. */
  readonly domain: string;
  /** The SPIFFE identities of which its certificate must carry one; empty allows any of its domain. */
  readonly identities: readonly string[];
  readonly roots: readonly X509Certificate[];
  /** Why nothing can be exchanged with it at the moment, in words that it may see; it may come back later. */
  readonly unavailable?: string;
}

export interface PeerCaller {
  readonly peer: string;
  readonly identity: string;
}

/** A refusal claims the peer whose trust domain the certificate names, if there is one. */
export type PeerVerdict = Verdict<PeerCaller>;

/** `presented` is what the other side sent: its own certificate first, then any intermediates. */
export function judgeCertificate(
  presented: readonly X509Certificate[],
  peers: Iterable<TrustedPeer>,
  nowMs: number,
): PeerVerdict {
  const leaf = presented[0];
  if (leaf === undefined) return refused('no certificate was presented');
  const identities = identitiesOf(leaf);
  if (identities.length !== 1)
    return refused(`the certificate carries ${identities.length} SPIFFE identities, one is needed`);
  const identity = identities[0] as string;
  let verdict: PeerVerdict = refused(`no peer has the identity ${identity}`);
  for (const peer of peers) {
    const judged = judgeAs(peer, { presented, identity, nowMs });
    if (judged?.kind === 'trusted') return judged;
    if (!isUnavailable(verdict)) verdict = judged ?? verdict;
  }
  return verdict;
}

interface Caller {
  readonly presented: readonly X509Certificate[];
  readonly identity: string;
  readonly nowMs: number;
}

/** Undefined if it claims nothing of this peer. */
function judgeAs(peer: TrustedPeer, { presented, identity, nowMs }: Caller): PeerVerdict | undefined {
  if (trustDomainOf(identity) !== peer.domain) return undefined;
  const claimed = peer.peer;
  if (isProxyIdentity(identity))
    return { ...refused(`${identity} is the identity of a proxy, which may call services and nothing else`), claimed };
  if (!mayBe(identity, peer)) return { ...refused(`no peer has the identity ${identity}`), claimed };
  const { unavailable } = peer;
  // Without its roots it cannot be judged; every caller gets "come back later", and nothing else.
  const isJudgeable = unavailable === undefined || peer.roots.length > 0;
  const wrong = isJudgeable
    ? whatIsWrongWithChain({ presented, roots: peer.roots, nowMs, purpose: 'client' })
    : undefined;
  if (wrong !== undefined) return { ...refused(`${identity}: ${wrong}`), claimed };
  return unavailable === undefined
    ? { kind: 'trusted', caller: { peer: peer.peer, identity } }
    : { kind: 'refused', code: codes.unavailable, reason: unavailable, claimed };
}

export function mayBe(identity: string, peer: Pick<TrustedPeer, 'domain' | 'identities'>): boolean {
  if (trustDomainOf(identity) !== peer.domain || isProxyIdentity(identity)) return false;
  return peer.identities.length === 0 || peer.identities.includes(identity);
}

export function identitiesOf(certificate: X509Certificate): string[] {
  const names = certificate.subjectAltName ?? '';
  return names
    .split(', ')
    .filter((name) => name.startsWith('URI:spiffe://'))
    .map((name) => name.slice('URI:'.length));
}

function isUnavailable(verdict: PeerVerdict): boolean {
  return verdict.kind === 'refused' && verdict.code === codes.unavailable;
}

function refused(reason: string): Refusal {
  return { kind: 'refused', code: codes.unauthenticated, reason };
}
