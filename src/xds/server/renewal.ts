// Renews the certificates of proxies: a caller whose certificate is still good gets another for the same name and for a key
// that stays with it. Few at a time of one proxy, because each costs a signature.

import { BoundedCache } from '../../base/bounded-cache.ts';
import type { PlainAnswer, PlainRequest, PlainRoute } from '../../base/grpc/server-options.ts';
import { valueIn } from '../../base/json.ts';
import type { Clock } from '../../base/world.ts';
import { renewalPath } from '../identity/proxy-files.ts';
import { formatNodeId, type ProxyCaller, type ProxyIdentity } from '../identity/proxy-identity.ts';
import { messageAnswer, publicKeyOf } from './plain-answers.ts';

export interface RenewalOptions {
  readonly clock: Clock;
  /** A certificate for the public key, both PEM. */
  readonly certify: (identity: ProxyIdentity, publicKey: string) => string;
  readonly onRenewed: (identity: ProxyIdentity, certificate: string) => void;
}

const everyMsMin = 1000;
const remembered = 10_000;

export class Renewal {
  readonly #options: RenewalOptions;
  /** When a proxy was last given one. */
  readonly #givenMs = new BoundedCache<number>(remembered);

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  route({ path, verdict }: PlainRequest<ProxyCaller>): PlainRoute | undefined {
    if (path !== renewalPath) return undefined;
    if (verdict.kind === 'refused') return messageAnswer(401, verdict.reason);
    const { identity } = verdict.caller;
    if (identity === undefined) return messageAnswer(401, 'only a caller with a certificate can renew one');
    return { withBody: async (body) => this.#renew(identity, body) };
  }

  #renew(identity: ProxyIdentity, body: Buffer): PlainAnswer {
    const publicKey = publicKeyOf(valueIn(body.toString('utf8'), []));
    if (publicKey === undefined) return messageAnswer(400, 'expected {"publicKey": "…"} with a P-256 key in PEM');
    const { clock, certify, onRenewed } = this.#options;
    const id = formatNodeId(identity);
    const nowMs = clock.monotonicMs();
    if (nowMs - (this.#givenMs.get(id) ?? -everyMsMin) < everyMsMin)
      return messageAnswer(429, `${id} renewed its certificate less than a second ago`);
    this.#givenMs.set(id, nowMs);
    const certificate = certify(identity, publicKey);
    onRenewed(identity, certificate);
    return { status: 200, body: JSON.stringify({ certificate }) };
  }
}
