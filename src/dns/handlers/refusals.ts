// The handlers that only refuse: an EDNS version we do not speak, types that are not data, and, at the end of the
// chain, names outside all zones.

import { rcode, recordType } from '../../base/dns/codes.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { extendedError, type Query } from '../message/wire.ts';

export function refuseHandler(): Handler {
  return {
    name: 'refuse',
    handle(_query: Query, answer: Answer): Step {
      answer.fail(rcode.REFUSED, extendedError.prohibited, 'this server neither holds this zone nor forwards');
      return 'done';
    },
  };
}

export function ednsHandler(): Handler {
  return {
    name: 'edns',
    handle(query: Query, answer: Answer): Step {
      if (query.ednsVersion === 0) return 'next';
      answer.fail(rcode.BADVERS);
      return 'done';
    },
  };
}

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
