// Requests on one HTTP/1.1 connection, written by hand and read strictly: one after the other, or all at once.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type Http1Answer, readHttp1Answers } from '../../src/home/edge/testing/http1-answers.ts';

export interface Http1Request {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const patienceMs = 30_000;

/** Answers in order; bytes that belong to none, and an end before the last one, are errors. */
export async function askHttp1(
  socket: Socket,
  requests: readonly Http1Request[],
  { isPipelined }: { readonly isPipelined: boolean },
): Promise<Http1Answer[]> {
  const methods = requests.map(({ method }) => method);
  let bytes: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
  };
  socket.on('data', onData);
  const signal = AbortSignal.timeout(patienceMs);
  const untilAnswered = async (count: number) => {
    while (readHttp1Answers(bytes, methods.slice(0, count)).length < count) {
      if (socket.destroyed) throw new Error(`closed after ${bytes.length} bytes, before answer ${count}`);
      await news(socket, signal);
    }
  };
  if (isPipelined) socket.write(requests.map(textOf).join(''));
  for (const [index, request] of requests.entries()) {
    if (!isPipelined) socket.write(textOf(request));
    await untilAnswered(isPipelined ? requests.length : index + 1);
  }
  // Bytes behind the last answer would come now.
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.off('data', onData);
  return readHttp1Answers(bytes, methods);
}

async function news(socket: Socket, signal: AbortSignal): Promise<void> {
  const either = new AbortController();
  const both = AbortSignal.any([signal, either.signal]);
  const waits = ['data', 'close'].map((event) => once(socket, event, { signal: both }));
  try {
    await Promise.race(waits);
  } finally {
    either.abort();
    await Promise.allSettled(waits);
  }
}

function textOf({ method, path, headers = {}, body }: Http1Request): string {
  const all = {
    host: 'localhost',
    ...headers,
    ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}
