// DNS cookies (RFC 7873): a client that sends one gets it back with one of ours, by which it knows our later answers from
// forged ones. Ours is made as RFC 9018 lays it out, from the client's cookie and address, the time and a secret that all
// threads share; one that is right and not old is given back as it is.

import { createHmac } from 'node:crypto';
import { rcode } from '../../base/dns/codes.ts';
import type { Clock } from '../../base/world.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { clientCookieBytes, type Query, serverCookieBytes } from '../message/wire.ts';

const version = 1;
/** RFC 9018 section 4.3 */
const renewSeconds = 1800;
const futureSecondsMax = 300;
const hashBytes = 8;

export function cookieHandler(options: { readonly secret: string; readonly clock: Clock }): Handler {
  const { secret, clock } = options;

  function handle(query: Query, answer: Answer): Step {
    const { cookieLength: length, cookieAt } = query;
    if (length < 0) return 'next';
    // RFC 7873 section 5.2.2
    if (length !== clientCookieBytes && (length < 16 || length > 40)) {
      answer.fail(rcode.FORMERR);
      return 'done';
    }
    const sent = query.packet.subarray(cookieAt, cookieAt + length);
    const client = sent.subarray(0, clientCookieBytes);
    const nowSeconds = Math.floor(clock.wallMs() / 1000) >>> 0;
    const isGood = isRight(sent, query.clientAddress, nowSeconds);
    answer.cookie = isGood
      ? Buffer.from(sent)
      : Buffer.concat([client, serverCookie(client, query.clientAddress, nowSeconds)]);
    if (query.questionEnd > 0) return 'next';
    // RFC 7873 section 5.4: asked for a cookie, or whether the one it has is still good.
    if (!isGood && length > clientCookieBytes) answer.fail(rcode.BADCOOKIE);
    return 'done';
  }

  function isRight(sent: Uint8Array, address: string, nowSeconds: number): boolean {
    if (sent.length !== clientCookieBytes + serverCookieBytes || sent[clientCookieBytes] !== version) return false;
    const madeSeconds = new DataView(sent.buffer, sent.byteOffset).getUint32(clientCookieBytes + 4);
    // RFC 1982: the clock goes round.
    const ageSeconds = (nowSeconds - madeSeconds) | 0;
    if (ageSeconds > renewSeconds || ageSeconds < -futureSecondsMax) return false;
    const wanted = serverCookie(sent.subarray(0, clientCookieBytes), address, madeSeconds);
    return Buffer.compare(wanted, sent.subarray(clientCookieBytes)) === 0;
  }

  function serverCookie(client: Uint8Array, address: string, seconds: number): Uint8Array {
    const head = Buffer.alloc(serverCookieBytes - hashBytes);
    head[0] = version;
    head.writeUInt32BE(seconds, 4);
    const hash = createHmac('sha256', secret).update(client).update(head).update(address).digest();
    return Buffer.concat([head, hash.subarray(0, hashBytes)]);
  }

  return { name: 'cookies', handle };
}
