// Renews the token by which an authority reads the broker: at its start and whenever a third of the token's life has passed, by
// TokenRequest of its own account. The new token is stored for the next start. One that an admin stored meanwhile is used
// without a restart.

import { errorText, type Log } from '../base/log.ts';
import type { Timer, World } from '../base/world.ts';
import { requestToken } from '../kube/client/account-token.ts';
import type { Client } from '../kube/client/client.ts';

export interface AuthorityTokenOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly account: { readonly namespace: string; readonly name: string };
  /** The token as it is stored now; undefined if there is none. */
  readonly read: () => Promise<string | undefined>;
  /** Stores a new one in its place. */
  readonly store: (token: string) => Promise<void>;
}

export interface AuthorityToken {
  /** For each request to the broker. */
  current(): Promise<string | undefined>;
  /** With a client that uses `current`. */
  renewWith(broker: Client): void;
  stop(): void;
}

/** A stored token that was replaced is noticed within this time. */
const lookMs = 60_000;

export async function keepAuthorityToken(options: AuthorityTokenOptions): Promise<AuthorityToken> {
  const { world, log, account } = options;
  let token = await options.read();
  let isUnused = true;
  let unstored: string | undefined;
  let timer: Timer | undefined;
  let isStopped = false;

  async function look(broker: Client): Promise<void> {
    // Its file may be gone; the token that we hold is as good as before.
    const stored = await options.read().catch(() => undefined);
    if (endOf(stored) > endOf(token)) token = stored;
    try {
      if (token !== undefined && isOf(account, token) && isDue(token)) await renew(broker, token);
      if (unstored !== undefined) await options.store(unstored);
      unstored = undefined;
    } catch (error) {
      const what = unstored === undefined ? 'not renewed' : 'renewed, but not stored for the next start';
      log.warn(`token at the broker ${what}`, { ends: endText(token), error: errorText(error) });
    }
    if (!isStopped) timer = world.timers.after(lookMs, () => void look(broker));
  }

  /** At the start too: a process that may not renew it finds out at once, not when it ends. */
  function isDue(held: string): boolean {
    const { iat = 0, exp = 0 } = claimsOf(held);
    return isUnused || world.clock.wallMs() / 1000 > iat + (exp - iat) / 3;
  }

  async function renew(broker: Client, old: string): Promise<void> {
    const { iat = 0, exp = 0 } = claimsOf(old);
    const issued = await requestToken(broker, { ...account, lifetimeMs: (exp - iat) * 1000 });
    token = unstored = issued.token;
    isUnused = false;
    log.info('token at the broker renewed', { ends: issued.expiresAt });
  }

  return {
    current: async () => token,
    renewWith: (broker) => void look(broker),
    stop: () => {
      isStopped = true;
      timer?.cancel();
    },
  };
}

interface Claims {
  readonly sub?: string;
  /** RFC 7519: seconds since 1970. */
  readonly iat?: number;
  readonly exp?: number;
}

function claimsOf(token: string): Claims {
  try {
    return (JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? {}) as Claims;
  } catch {
    return {};
  }
}

/** Other credentials, such as those of an admin, are left as they are. */
function isOf({ namespace, name }: AuthorityTokenOptions['account'], token: string): boolean {
  const { sub, iat, exp } = claimsOf(token);
  return sub === `system:serviceaccount:${namespace}:${name}` && Number.isFinite(iat) && Number.isFinite(exp);
}

function endOf(token: string | undefined): number {
  return (token === undefined ? undefined : claimsOf(token).exp) ?? 0;
}

function endText(token: string | undefined): string {
  return new Date(endOf(token) * 1000).toISOString();
}
