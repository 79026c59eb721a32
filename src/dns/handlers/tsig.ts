// A signed query is checked before its question is read. A good signature makes the peer known and the answer signed;
// a bad one is answered with NOTAUTH and says why (RFC 8945 section 5.2).

import { rcode } from '../../base/dns/codes.ts';
import { type TsigKey, tsigErrorRecord, verifyMessage } from '../../base/dns/tsig.ts';
import type { Clock } from '../../base/world.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { extendedError, type Query } from '../message/wire.ts';

export interface TsigHandlerOptions {
  /** Keys of servers that may name the client's cluster. */
  readonly keys: () => readonly TsigKey[];
  /** Keys of secondaries. */
  readonly transferKeys: readonly TsigKey[];
  readonly clock: Clock;
}

export function tsigHandler(options: TsigHandlerOptions): Handler {
  const { clock, transferKeys } = options;
  return {
    name: 'tsig',
    handle(query: Query, answer: Answer): Step {
      if (query.tsigAt === 0) return 'next';
      const trusted = options.keys();
      const keys = [...trusted, ...transferKeys];
      const timeSeconds = Math.floor(clock.wallMs() / 1000);
      const verdict = verifyMessage(query.packet.subarray(0, query.length), { keys, timeSeconds });
      if (verdict.kind === 'good') {
        if (trusted.some((key) => isSame(key, verdict.key))) query.tsigKey = verdict.key.name;
        if (transferKeys.some((key) => isSame(key, verdict.key))) query.transferKey = verdict.key.name;
        answer.signature = { key: verdict.key, requestMac: verdict.mac, timeSeconds };
        return 'next';
      }
      const why = verdict.kind === 'bad' ? verdict.why : 'the signature is not where it should be';
      answer.fail(rcode.NOTAUTH, extendedError.prohibited, why);
      if (verdict.kind === 'bad')
        answer.trailer = tsigErrorRecord(query.packet, query.tsigAt, verdict.error, timeSeconds);
      return 'done';
    },
  };
}

function isSame(one: TsigKey, other: TsigKey): boolean {
  return one.name === other.name && one.algorithm === other.algorithm && Buffer.compare(one.secret, other.secret) === 0;
}
