// Unknown names go upstream, for clients that ask for recursion.

import { classIn } from '../../base/dns/codes.ts';
import type { Answer } from '../answer.ts';
import type { Handler, Later, Step } from '../handler.ts';
import type { Forwarder } from '../upstream/forwarder.ts';
import type { Query } from '../wire.ts';

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
