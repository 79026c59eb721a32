// Renews a member's token at the broker by TokenRequest once a third of its life has passed, and keeps the new one at
// home, where standby agents find it. When to renew goes by this machine's clock alone: how long a token lives is read
// from the token, when it came was noted here.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { requestToken } from '../../kube/client/account-token.ts';
import type { Client } from '../../kube/client/client.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type MembershipRecord, membershipData, membershipSecretName } from '../membership/membership.ts';

export interface TokenRenewalOptions {
  readonly home: Client;
  readonly broker: Client;
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly membership: () => MembershipRecord | undefined;
}

const retryMs = 30_000;
/** Nothing waits longer, so that a clock that was set right is noticed. */
const lookMs = 600_000;

export function startTokenRenewal(options: TokenRenewalOptions): { stop(): void } {
  const { world, log } = options;
  let timer: Timer | undefined;
  let isStopped = false;

  function later(delayMs: number): void {
    if (!isStopped) timer = world.timers.after(delayMs, () => void look());
  }

  async function look(): Promise<void> {
    const membership = options.membership();
    const dueMs = membership === undefined ? lookMs : renewalDueMs(membership) - world.clock.wallMs();
    if (membership === undefined || dueMs > 0) return later(Math.min(dueMs, lookMs));
    try {
      await renew(options, membership);
      later(lookMs);
    } catch (error) {
      log.warn('token at the broker not renewed', { expires: membership.tokenExpiresAt, error: errorText(error) });
      later(retryMs);
    }
  }

  later(0);
  return {
    stop: () => {
      isStopped = true;
      timer?.cancel();
    },
  };
}

/** By the clock that noted when the token came. */
export function renewalDueMs(membership: MembershipRecord): number {
  return Date.parse(membership.tokenIssuedAt) + tokenLifetimeMs(membership) / 3;
}

async function renew(options: TokenRenewalOptions, membership: MembershipRecord): Promise<void> {
  const { home, broker, world, log } = options;
  const account = { namespace: membership.accountNamespace, name: membership.accountName };
  const issued = await requestToken(broker, { ...account, lifetimeMs: tokenLifetimeMs(membership) });
  const {
    token,
    'token-issued-at': issuedAt,
    'token-expires-at': expiresAt,
  } = membershipData({
    ...membership,
    token: issued.token,
    tokenIssuedAt: formatTime(world.clock.wallMs()),
    tokenExpiresAt: issued.expiresAt,
  });
  const data = { token, 'token-issued-at': issuedAt, 'token-expires-at': expiresAt };
  const ref = { namespace: systemNamespace, name: membershipSecretName };
  await home.patch(secretType, ref, { kind: 'merge', body: { data } });
  log.info('token at the broker renewed', { expires: issued.expiresAt });
}

/** Whole life of the token. RFC 7519: both times in the token are the broker's, so their difference is right whatever our clock says. */
export function tokenLifetimeMs(membership: MembershipRecord): number {
  const written = Date.parse(membership.tokenExpiresAt) - Date.parse(membership.tokenIssuedAt);
  try {
    const payload = Buffer.from(membership.token.split('.')[1] ?? '', 'base64url').toString('utf8');
    const { iat, exp } = JSON.parse(payload) as { iat?: number; exp?: number };
    return iat === undefined || exp === undefined ? written : (exp - iat) * 1000;
  } catch {
    return written;
  }
}
