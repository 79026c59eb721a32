// Which public key of a member counts: the one that it reports, that the admin of the set confirmed, and that this cluster
// has known since it first saw it. Pure.

import { createHash } from 'node:crypto';
import { publicKeyBytes } from '../../../base/keys/hpke.ts';
import type { Cluster } from '../../kinds/cluster.ts';

export type MemberKey =
  | { readonly kind: 'trusted'; readonly publicKey: Uint8Array; readonly fingerprint: string }
  | { readonly kind: 'untrusted'; readonly reason: UntrustedReason; readonly why: string };

type UntrustedReason = 'NoKey' | 'NotConfirmed' | 'KeyChanged';

/** For people to compare: as ssh shows it. */
export function fingerprintOf(publicKey: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(publicKey).digest('base64url')}`;
}

/** Undefined if it is none. */
export function readPublicKey(text: string | null | undefined): Uint8Array | undefined {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : undefined;
  return bytes?.length === publicKeyBytes ? bytes : undefined;
}

/** `pinned` is the fingerprint that this cluster saw first; undefined if it saw none yet. */
export function memberKey(cluster: Cluster | undefined, pinned: string | undefined): MemberKey {
  if (cluster === undefined) return untrusted('NoKey', 'is not a member of the clusterset');
  const id = cluster.metadata.name;
  const publicKey = readPublicKey(cluster.status?.sealingKey);
  const confirmed = cluster.spec.sealingKey;
  if (publicKey === undefined) return untrusted('NoKey', 'has published no key: its agent is older or has not started');
  const fingerprint = fingerprintOf(publicKey);
  if (confirmed !== fingerprint) {
    const what = confirmed === undefined ? 'is not confirmed' : 'is not the one that was confirmed';
    return untrusted('NotConfirmed', `its key ${what}: compare it, then portolan broker accept ${id}`);
  }
  if (pinned !== undefined && pinned !== fingerprint) {
    const how = `portolan sealing trust ${id} ${fingerprint}`;
    return untrusted('KeyChanged', `its key is another one than before: compare it there, then here ${how}`);
  }
  return { kind: 'trusted', publicKey, fingerprint };
}

function untrusted(reason: UntrustedReason, why: string): MemberKey {
  return { kind: 'untrusted', reason, why };
}
