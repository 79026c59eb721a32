// A response's bytes as they come. Whoever does not read holds the sender back; whoever stops reading ends the stream;
// a stream that was cut off throws, so that half an answer is never taken for a whole one.

import type { Readable } from 'node:stream';

export interface BodySource {
  readonly stream: Readable;
  /** Asked at the end of the bytes: were they all there? */
  readonly wasCutOff: () => boolean;
  readonly cancel: () => void;
  readonly describe: (cause: unknown) => Error;
}

export function responseBody(source: BodySource): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]: () => {
      const chunks = source.stream[Symbol.asyncIterator]();
      return {
        next: async () => {
          try {
            const next = await chunks.next();
            if (next.done && source.wasCutOff()) throw new Error('the stream was cut off before its end');
            return next;
          } catch (error) {
            throw source.describe(error);
          }
        },
        return: async () => {
          source.cancel();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
