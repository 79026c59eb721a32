// Authenticates the token of a service account, as long as the account and what the token is bound to exist.
// Checking a signature costs more than most requests, so tokens seen to be genuine are remembered, by hash.

import { createHash } from 'node:crypto';
import { BoundedCache } from '../../base/bounded-cache.ts';
import type { Clock, Random } from '../../base/world.ts';
import type { Credential, User } from '../model/access.ts';
import { keyPrefixOf } from '../model/kind.ts';
import { objectKey, textOf } from '../model/stored.ts';
import type { Store } from '../store/store.ts';
import { type NamedObject, type TokenClaims, TokenError, TokenKey } from './tokens.ts';

export interface ServiceAccountsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  /** PEM. */
  readonly signingKey: string;
  readonly issuer: string;
}

export interface TokenOrder {
  readonly namespace: string;
  readonly account: NamedObject;
  readonly audiences: readonly string[];
  readonly lifetimeMs: number;
  readonly boundTo?: { readonly kind: 'Pod' | 'Secret' } & NamedObject;
}

export interface IssuedToken {
  readonly token: string;
  readonly expiresMs: number;
}

interface Genuine {
  readonly claims: TokenClaims;
  readonly user: User;
}

const cachedTokensMax = 10_000;
const prefixes = {
  account: keyPrefixOf({ group: '', plural: 'serviceaccounts' }),
  pod: keyPrefixOf({ group: '', plural: 'pods' }),
  secret: keyPrefixOf({ group: '', plural: 'secrets' }),
};

/** Where the objects lie that a token may be bound to. */
export const boundPrefixes = [prefixes.pod, prefixes.secret];

export class ServiceAccounts {
  readonly #options: ServiceAccountsOptions;
  readonly #key: TokenKey;
  /** `namespace/name` to uid of every account. */
  readonly #uids = new Map<string, string>();
  readonly #genuine = new BoundedCache<Genuine>(cachedTokensMax);

  constructor(options: ServiceAccountsOptions) {
    this.#options = options;
    this.#key = new TokenKey(options.signingKey);
  }

  get publicKeys(): readonly object[] {
    return [this.#key.jwk];
  }

  set(namespace: string, name: string, uid: string): void {
    this.#uids.set(`${namespace}/${name}`, uid);
  }

  remove(namespace: string, name: string): void {
    this.#uids.delete(`${namespace}/${name}`);
  }

  issue(order: TokenOrder): IssuedToken {
    const { clock, random, issuer } = this.#options;
    const nowSeconds = Math.floor(clock.wallMs() / 1000);
    const exp = nowSeconds + Math.floor(order.lifetimeMs / 1000);
    const { namespace, account, boundTo } = order;
    const token = this.#key.sign({
      iss: issuer,
      sub: `system:serviceaccount:${namespace}:${account.name}`,
      aud: order.audiences,
      exp,
      iat: nowSeconds,
      nbf: nowSeconds,
      jti: random.uuid(),
      'kubernetes.io': {
        namespace,
        serviceaccount: { name: account.name, uid: account.uid },
        ...(boundTo?.kind === 'Pod' ? { pod: { name: boundTo.name, uid: boundTo.uid } } : {}),
        ...(boundTo?.kind === 'Secret' ? { secret: { name: boundTo.name, uid: boundTo.uid } } : {}),
      },
    });
    return { token, expiresMs: exp * 1000 };
  }

  /** Throws TokenError. Answers with the audiences that were asked for and that the token has. */
  async authenticate(token: string, audiences: readonly string[]): Promise<{ user: User; audiences: string[] }> {
    const { claims, user } = this.#verify(token);
    const shared = audiences.filter((audience) => claims.aud.includes(audience));
    if (shared.length === 0) {
      throw new TokenError(`token is for ${JSON.stringify(claims.aud)}, not for ${JSON.stringify(audiences)}`);
    }
    await this.#checkAlive(claims);
    return { user, audiences: shared };
  }

  /** Only for an authenticated token; any other is unknown. */
  credentialOf(token: string): Credential {
    try {
      const { exp, 'kubernetes.io': place } = this.#verify(token).claims;
      const bound = [
        place.pod && ([prefixes.pod, place.pod] as const),
        place.secret && ([prefixes.secret, place.secret] as const),
      ];
      const boundTo = bound.flatMap((one) => (one ? [objectKey(one[0], place.namespace, one[1].name)] : []));
      return { endsMs: exp * 1000, boundTo };
    } catch (error) {
      if (error instanceof TokenError) return {};
      throw error;
    }
  }

  #verify(token: string): Genuine {
    const nowMs = this.#options.clock.wallMs();
    const hash = createHash('sha256').update(token).digest('base64');
    const known = this.#genuine.get(hash);
    if (known !== undefined && nowMs < known.claims.exp * 1000) return known;
    this.#genuine.delete(hash);
    const claims = this.#key.verify(token, nowMs);
    if (claims.iss !== this.#options.issuer) throw new TokenError(`token is from issuer ${JSON.stringify(claims.iss)}`);
    const genuine = { claims, user: userOf(claims) };
    this.#genuine.set(hash, genuine);
    return genuine;
  }

  async #checkAlive(claims: TokenClaims): Promise<void> {
    const { namespace, serviceaccount, pod, secret } = claims['kubernetes.io'];
    const uid = this.#uids.get(`${namespace}/${serviceaccount.name}`);
    // An account made a moment ago may not be in the index yet.
    if (uid !== serviceaccount.uid) await this.#checkStored(prefixes.account, namespace, serviceaccount);
    if (pod !== undefined) await this.#checkStored(prefixes.pod, namespace, pod);
    if (secret !== undefined) await this.#checkStored(prefixes.secret, namespace, secret);
  }

  async #checkStored(prefix: string, namespace: string, wanted: NamedObject): Promise<void> {
    const entry = await this.#options.store.get(objectKey(prefix, namespace, wanted.name));
    const object = entry && (JSON.parse(textOf(entry.value)) as { metadata: { uid?: string } });
    if (object?.metadata.uid === wanted.uid) return;
    throw new TokenError(`token belongs to ${namespace}/${wanted.name}, which has been deleted`);
  }
}

function userOf(claims: TokenClaims): User {
  const { namespace, serviceaccount, pod } = claims['kubernetes.io'];
  return {
    name: claims.sub,
    uid: serviceaccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra: {
      'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti}`],
      ...(pod === undefined
        ? {}
        : {
            'authentication.kubernetes.io/pod-name': [pod.name],
            'authentication.kubernetes.io/pod-uid': [pod.uid],
          }),
    },
  };
}
