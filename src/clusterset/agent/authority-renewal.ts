// Follows the certificate authority of an embedded broker: during a rotation the broker publishes both, over a
// connection authenticated by the old one, and this cluster stores them with its membership. A Kubernetes has no such
// path; there the admin joins the cluster again.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type MembershipRecord, membershipData, membershipSecretName } from '../membership/membership.ts';

export interface AuthorityRenewalOptions {
  readonly home: Client;
  readonly broker: Client;
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly membership: () => MembershipRecord | undefined;
}

const path = '/.well-known/portolan-ca';
const lookMs = 600_000;
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

async function follow({ home, broker, log, membership }: AuthorityRenewalOptions): Promise<void> {
  const current = membership();
  // A home that is trusted through the system's authorities stays so.
  if (current === undefined || current.certificateAuthority === '') return;
  const certificateAuthority = await trustedBy(broker);
  if (certificateAuthority === undefined || certificateAuthority === current.certificateAuthority) return;
  const { 'ca.crt': certificates } = membershipData({ ...current, certificateAuthority });
  const ref = { namespace: systemNamespace, name: membershipSecretName };
  await home.patch(secretType, ref, { kind: 'merge', body: { data: { 'ca.crt': certificates } } });
  log.info('the certificate authorities of the broker have changed');
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
