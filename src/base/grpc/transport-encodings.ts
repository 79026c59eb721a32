// Compression of gRPC messages: gzip is accepted, in either direction, and never sent. Bounded: a message that grows beyond
// the limit when it is unpacked is an error, before it has taken more memory than the limit. An edge: zlib.

import { gunzipSync } from 'node:zlib';
import { errorText } from '../log.ts';

/** Tells the other side what it may send. */
export const acceptedEncodings = { 'grpc-accept-encoding': 'identity,gzip' } as const;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export function isGzip(headers: Headers): boolean {
  return headers['grpc-encoding'] === 'gzip';
}

export function unpack(message: Buffer, messageBytesMax: number): Buffer {
  try {
    return gunzipSync(message, { maxOutputLength: messageBytesMax });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new Error(`a compressed message is larger than the ${messageBytesMax} bytes allowed`, { cause: error });
    throw new Error(`a compressed message cannot be unpacked: ${errorText(error)}`, { cause: error });
  }
}
