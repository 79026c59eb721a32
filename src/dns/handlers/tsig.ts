// A signed query is checked before its question is read. A good signature makes the peer known and the answer signed;
// a bad one is answered with NOTAUTH and says why (RFC 8945 section 5.2).

import { rcode } from '../../base/dns/codes.ts';
import { type TsigKey, tsigErrorRecord, verifyMessage } from '../../base/dns/tsig.ts';
import type { Clock } from '../../base/world.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { extendedError, type Query } from '../message/wire.ts';

export function tsigHandler(options: { readonly keys: () => readonly TsigKey[]; readonly clock: Clock }): Handler {
  const { clock } = options;
  return {
    name: 'tsig',
    handle(query: Query, answer: Answer): Step {
      if (query.tsigAt === 0) return 'next';
      const keys = options.keys();
      const timeSeconds = Math.floor(clock.wallMs() / 1000);
      const verdict = verifyMessage(query.packet.subarray(0, query.length), { keys, timeSeconds });
      if (verdict.kind === 'good') {
        query.tsigKey = verdict.key.name;
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
