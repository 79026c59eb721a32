// RFC 6891 section 6.1.3: a version we do not speak is refused with BADVERS, whatever is asked.

import type { Answer } from '../answer.ts';
import type { Handler, Step } from '../handler.ts';
import { type Query, rcode } from '../wire.ts';

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
