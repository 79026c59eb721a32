// Types that are no data (RFC 6895 section 3.1) have no place in a question, but for transfers, which nobody gets here: neither
// answered nor passed on. ANY is data enough and left to the others.

import { recordType } from '../../catalog/answers.ts';
import type { Answer } from '../answer.ts';
import type { Handler, Step } from '../handler.ts';
import { extendedError, type Query, rcode } from '../wire.ts';

const firstMeta = 249;

export function metaHandler(): Handler {
  return {
    name: 'meta',
    handle({ type }: Query, answer: Answer): Step {
      if (type !== 0 && type !== recordType.OPT && (type < firstMeta || type >= recordType.ANY)) return 'next';
      if (type === recordType.AXFR || type === recordType.IXFR) {
        answer.fail(rcode.REFUSED, extendedError.prohibited, 'zones are not transferred from here');
      } else if (type > recordType.AXFR) {
        answer.fail(rcode.NOTIMP, extendedError.notSupported, `type ${type} is obsolete`);
      } else {
        answer.fail(rcode.FORMERR, extendedError.other, `type ${type} cannot be asked for`);
      }
      return 'done';
    },
  };
}
