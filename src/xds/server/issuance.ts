// Issues the first certificate of an Envoy in a Pod: its ServiceAccount token, made for discovery servers alone and bound to
// its Pod, says who it is. Anybody in the network may send texts here, so only plausible ones are asked about, few at a time.

import type { PlainAnswer, PlainRequest, PlainRoute } from '../../base/grpc/server-options.ts';
import { isObject } from '../../base/json.ts';
import { proxyTokenAudience } from '../../kube/objects/ours.ts';
import type { ProxyIdentity } from '../identity/proxy-identity.ts';
import { issuancePath, proxyOfToken, type TokenBearer } from '../identity/proxy-token.ts';
import { messageAnswer, publicKeyOf } from './plain-answers.ts';

export interface IssuanceOptions {
  readonly cluster: string;
  readonly sidecarAccounts: ReadonlySet<string>;
  /** Undefined for a token that is not valid for discovery servers. */
  readonly review: (token: string) => Promise<TokenBearer | undefined>;
  /** Audiences that a token claims, unchecked. */
  readonly claimedAudiences: (token: string) => readonly string[];
  /** A certificate for the public key, both PEM. */
  readonly certify: (identity: ProxyIdentity, publicKey: string) => string;
}

const tokenLengthMax = 8_192;
const askedAtOnceMax = 4;

export class Issuance {
  readonly #options: IssuanceOptions;
  #asked = 0;

  constructor(options: IssuanceOptions) {
    this.#options = options;
  }

  route({ path }: Pick<PlainRequest<unknown>, 'path'>): PlainRoute | undefined {
    return path === issuancePath ? { withBody: (body) => this.#issue(body) } : undefined;
  }

  async #issue(body: Buffer): Promise<PlainAnswer> {
    const { token, publicKey } = requestIn(body);
    if (token === undefined || publicKey === undefined)
      return messageAnswer(400, 'expected {"token": "…", "publicKey": "…"} with a P-256 key in PEM');
    const { claimedAudiences, review, certify } = this.#options;
    if (token.length > tokenLengthMax || !claimedAudiences(token).includes(proxyTokenAudience))
      return messageAnswer(401, `the token is not one for ${proxyTokenAudience}`);
    if (this.#asked >= askedAtOnceMax) return messageAnswer(429, 'too many tokens are being checked; try again later');
    this.#asked += 1;
    try {
      const bearer = await review(token);
      if (bearer === undefined) return messageAnswer(401, 'the token is not valid, or not any more');
      const proxy = proxyOfToken(bearer, this.#options);
      if ('reason' in proxy) return messageAnswer(403, proxy.reason);
      return { status: 200, body: JSON.stringify({ certificate: certify(proxy.identity, publicKey) }) };
    } catch {
      // The caller may be anybody: nothing of the home's own words goes to it.
      return messageAnswer(503, 'the token cannot be checked: the home does not answer');
    } finally {
      this.#asked -= 1;
    }
  }
}

function requestIn(body: Buffer): { readonly token?: string; readonly publicKey?: string } {
  try {
    const request: unknown = JSON.parse(body.toString('utf8'));
    const token = isObject(request) ? request['token'] : undefined;
    return { publicKey: publicKeyOf(request), ...(typeof token === 'string' ? { token } : {}) };
  } catch {
    return {};
  }
}
