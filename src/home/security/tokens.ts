// Tokens of service accounts: JSON Web Tokens signed with ES256 (RFC 7519, RFC 7518 section 3.4). Signing and checking
// are synchronous, so that a simulated process can do both. Whether the account still exists is not known here.

import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: readonly string[];
  /** Seconds since 1970, as in all three. */
  readonly exp: number;
  readonly iat: number;
  readonly nbf: number;
  readonly jti: string;
  readonly 'kubernetes.io': {
    readonly namespace: string;
    readonly serviceaccount: NamedObject;
    readonly pod?: NamedObject;
    readonly secret?: NamedObject;
  };
}

export interface NamedObject {
  readonly name: string;
  readonly uid: string;
}

export class TokenError extends Error {}

const tokenLengthMax = 16 * 1024;
/** Clocks of two homes with one key may differ, and a wall clock may be set back (RFC 7519 section 4.1.5). */
const leewaySeconds = 60;

export class TokenKey {
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #header: string;
  readonly #kid: string;

  constructor(privateKeyPem: string) {
    this.#privateKey = createPrivateKey(privateKeyPem);
    this.#publicKey = createPublicKey(this.#privateKey);
    const spki = this.#publicKey.export({ type: 'spki', format: 'der' });
    this.#kid = createHash('sha256').update(spki).digest('base64url');
    this.#header = encodePart({ alg: 'ES256', kid: this.#kid });
  }

  /** The public key as a JSON Web Key (RFC 7517). */
  get jwk(): object {
    return { ...this.#publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256', kid: this.#kid };
  }

  sign(claims: TokenClaims): string {
    const signedPart = `${this.#header}.${encodePart(claims)}`;
    const signature = sign('sha256', Buffer.from(signedPart), { key: this.#privateKey, dsaEncoding: 'ieee-p1363' });
    return `${signedPart}.${signature.toString('base64url')}`;
  }

  /** The claims of a token that this key signed and that is in force. Throws TokenError for any other. */
  verify(token: string, nowMs: number): TokenClaims {
    const claims = this.#verifySignature(token);
    const nowSeconds = nowMs / 1000;
    if (!(nowSeconds < claims.exp)) throw new TokenError('token has expired');
    if (nowSeconds + leewaySeconds < claims.nbf) throw new TokenError('token is not valid yet');
    return claims;
  }

  // The header has one value only: a token with another algorithm or key is not ours.
  #verifySignature(token: string): TokenClaims {
    if (token.length > tokenLengthMax) throw new TokenError('token is too long');
    const [header, payload, signature, ...rest] = token.split('.');
    if (payload === undefined || signature === undefined || rest.length > 0) throw new TokenError('token is no JWT');
    if (header !== this.#header) throw new TokenError('token was not signed by this server');
    const isGenuine = verify(
      'sha256',
      Buffer.from(`${header}.${payload}`),
      { key: this.#publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    if (!isGenuine) throw new TokenError('token signature is wrong');
    return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as TokenClaims;
  }
}

function encodePart(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
