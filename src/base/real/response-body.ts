// A response's bytes as they come. A slow reader holds the sender back; a reader that stops ends the stream; a stream
// that was cut off throws, so that half an answer is never taken for a whole one.

import type { Readable } from 'node:stream';

export interface BodySource {
  readonly stream: Readable;
  /** Asked at the end of the bytes: were they all there? */
  readonly wasCutOff: () => boolean;
  readonly cancel: () => void;
  readonly describe: (cause: unknown) => Error;
}

const cutOff = 'the stream was cut off before its end';

export function responseBody(source: BodySource): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]: () => {
      const chunks = chunksOf(source.stream);
      return {
        next: async () => {
          try {
            const next = await chunks.next();
            if (next.done && source.wasCutOff()) throw new Error(cutOff);
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

/**
 * Not the stream's own iterator: an HTTP/2 stream counts as closed after its last frame, and an iteration that begins
 * only then throws "premature close", though all its bytes are there to be read.
 */
async function* chunksOf(stream: Readable): AsyncGenerator<Uint8Array> {
  let wake = () => {};
  for (const event of ['readable', 'end', 'close', 'error']) stream.on(event, () => wake());
  for (;;) {
    if (stream.errored) throw stream.errored;
    const chunk = stream.read() as Uint8Array | null;
    if (chunk !== null) {
      yield chunk;
      continue;
    }
    if (stream.readableEnded) return;
    if (stream.destroyed) throw new Error(cutOff);
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}
