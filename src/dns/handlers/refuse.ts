// The end of the chain: nobody here answers for this name, and nobody was told to ask for it.

import type { Answer } from '../answer.ts';
import type { Handler, Step } from '../handler.ts';
import { extendedError, type Query, rcode } from '../wire.ts';

export function refuseHandler(): Handler {
  return {
    name: 'refuse',
    handle(_query: Query, answer: Answer): Step {
      answer.fail(rcode.REFUSED, extendedError.prohibited, 'this server neither holds this zone nor forwards');
      return 'done';
    },
  };
}
