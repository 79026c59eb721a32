// Unknown names go upstream, for clients that ask for recursion.

import { classIn } from '../../base/dns/codes.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Later, Step } from '../message/handler.ts';
import type { Query } from '../message/wire.ts';
import type { Forwarder } from '../upstream/forwarder.ts';

export function forwardHandler(options: { readonly forwarder: Forwarder }): Handler {
  return {
    name: 'forward',
    handle(query: Query, answer: Answer): Step | Later {
      if (!query.isRecursionDesired || query.class !== classIn) return 'next';
      answer.handler = 'forward';
      return options.forwarder.handle(query, answer);
    },
  };
}
