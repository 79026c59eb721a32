// Follows the certificate authority of an embedded broker: during a rotation the broker publishes both, over a
// connection authenticated by the old one, and the caller keeps them. A Kubernetes has no such path; there the admin joins the
// cluster again.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type MembershipRecord, membershipData, membershipSecretName } from '../membership/membership.ts';

export interface AuthorityRenewalOptions {
  readonly broker: Client;
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  /** PEM of what is trusted now; undefined or empty if the broker is trusted through the system's authorities. */
  readonly current: () => string | undefined;
  readonly keep: (certificates: string) => Promise<void>;
}

const path = '/.well-known/portolan-ca';
/** The admin waits for it between the steps of a rotation; the answer costs the broker next to nothing. */
const lookMs = 20_000;
/** Two certificates take three kilobytes. */
const certificatesLengthMax = 64 * 1024;

export function startAuthorityRenewal(options: AuthorityRenewalOptions): { stop(): void } {
  const { world, log } = options;
  let timer: Timer | undefined;
  let isStopped = false;
  const look = async () => {
    try {
      await follow(options);
    } catch (error) {
      log.warn('the certificate authority of the broker could not be looked at', { error: errorText(error) });
    }
    if (!isStopped) timer = world.timers.after(lookMs, () => void look());
  };
  timer = world.timers.after(0, () => void look());
  return {
    stop: () => {
      isStopped = true;
      timer?.cancel();
    },
  };
}

async function follow({ broker, log, current, keep }: AuthorityRenewalOptions): Promise<void> {
  const known = current();
  // A home that is trusted through the system's authorities stays so.
  if (known === undefined || known === '') return;
  const certificates = await trustedBy(broker);
  if (certificates === undefined || certificates === known) return;
  await keep(certificates);
  log.info('the certificate authorities of the broker have changed');
}

/** Stores them with the membership of a cluster. */
export async function keepWithMembership(home: Client, current: MembershipRecord, certificates: string): Promise<void> {
  const { 'ca.crt': data } = membershipData({ ...current, certificateAuthority: certificates });
  const ref = { namespace: systemNamespace, name: membershipSecretName };
  await home.patch(secretType, ref, { kind: 'merge', body: { data: { 'ca.crt': data } } });
}

async function trustedBy(broker: Client): Promise<string | undefined> {
  try {
    const { certificates } = await broker.getPath<{ certificates?: unknown }>(path);
    const isPem = typeof certificates === 'string' && certificates.includes('-----BEGIN CERTIFICATE-----');
    return isPem && certificates.length <= certificatesLengthMax ? certificates : undefined;
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return undefined;
    throw error;
  }
}
