// Whether any home accepts a token, before anything is watched with it: one small request to each home. Tokens that have
// expired by their own claims, and those that were refused a moment ago, cost none. Tries are limited by address and in all,
// so that invented tokens reach the homes at a bounded rate.

import { BoundedCache } from '../base/bounded-cache.ts';
import { readBody } from '../base/http.ts';
import { TryLimits } from '../base/try-limits.ts';
import type { World } from '../base/world.ts';
import type { DashboardHome } from './homes/home-watch.ts';
import { readClaims, type SignIn } from './sign-in.ts';

export interface TokenCheckOptions {
  readonly world: World;
  readonly homes: readonly DashboardHome[];
}

export type TokenVerdict =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused'; readonly why: string }
  /** Too many tries. */
  | { readonly kind: 'later' };

const pace = { perAddress: { burst: 20, everyMs: 2_000 }, inAll: { burst: 100, everyMs: 200 } };
const rememberedMs = 60_000;
const rememberedMax = 10_000;
const patienceMs = 3_000;

export class TokenCheck {
  readonly #options: TokenCheckOptions;
  readonly #tries: TryLimits;
  /** When those that were refused are asked about again, by digest. */
  readonly #refusedUntilMs = new BoundedCache<number>(rememberedMax);

  constructor(options: TokenCheckOptions) {
    this.#options = options;
    this.#tries = new TryLimits(options.world.clock, pace);
  }

  async judge(
    signIn: SignIn,
    { id, address }: { readonly id: string; readonly address: string },
  ): Promise<TokenVerdict> {
    const { world, homes } = this.#options;
    const given = homes.flatMap((home) => {
      const token = signIn.tokenFor(home.name);
      return token === undefined ? [] : [{ home, token }];
    });
    if (given.length === 0) return { kind: 'refused', why: 'it names none of the homes' };
    const isOver = (token: string) => (readClaims(token).expiresMs ?? Number.POSITIVE_INFINITY) <= world.clock.wallMs();
    if (given.every(({ token }) => isOver(token))) return { kind: 'refused', why: 'it has expired' };
    const nowMs = world.clock.monotonicMs();
    if ((this.#refusedUntilMs.get(id) ?? 0) > nowMs)
      return { kind: 'refused', why: 'it was refused less than a minute ago' };
    if (!this.#tries.mayTry(address)) return { kind: 'later' };
    const answers = await Promise.all(given.map(({ home, token }) => this.#ask(home, token)));
    // A home that does not answer may accept it: the session finds out, and says why not.
    if (answers.some((status) => status !== 401)) return { kind: 'accepted' };
    this.#refusedUntilMs.set(id, nowMs + rememberedMs);
    return { kind: 'refused', why: given.map(({ home }) => `${home.name}: 401`).join('; ') };
  }

  /** The status; 0 if there was no answer. */
  async #ask({ access }: DashboardHome, token: string): Promise<number> {
    const { world } = this.#options;
    const late = new AbortController();
    const timer = world.timers.after(patienceMs, () => late.abort(new Error('no answer')));
    const transport = world.network.http({ ...access, bearerToken: async () => token });
    try {
      const response = await transport.send({ method: 'GET', path: '/version', headers: {}, signal: late.signal });
      await readBody(response.body);
      return response.status;
    } catch {
      return 0;
    } finally {
      timer.cancel();
      transport.close();
    }
  }
}
