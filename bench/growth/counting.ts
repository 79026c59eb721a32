// A transport that counts what it receives: the bytes of all bodies, and the events of watches, which are lines.

import type { HttpTransport } from '../../src/base/http.ts';

export interface Received {
  bytes: number;
  events: number;
}

const newline = 10;

export function countingTransport(transport: HttpTransport, received: Received): HttpTransport {
  return {
    send: async (request) => {
      const response = await transport.send(request);
      if (!(response.body instanceof Uint8Array)) return { ...response, body: countedStream(response.body, received) };
      received.bytes += response.body.length;
      return response;
    },
    close: () => transport.close(),
  };
}

async function* countedStream(body: AsyncIterable<Uint8Array>, received: Received): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    received.bytes += chunk.length;
    for (const byte of chunk) if (byte === newline) received.events += 1;
    yield chunk;
  }
}
