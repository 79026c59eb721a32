// HTTPS for the stub-zone endpoint: asks every client for a certificate and hands on whose it is.

import { createServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { readBody } from '../base/http.ts';
import type { Federations } from './federations.ts';
import { identityOf } from './server-stream.ts';
import type { Listening } from './server-udp.ts';

export interface FederationsServerOptions {
  readonly federations: Federations;
  readonly host: string;
  readonly port: number;
  readonly certificate: string;
  readonly key: string;
  /** Signs the certificates of those who may post. */
  readonly clientAuthority: string;
}

const bodyBytesMax = 16_384;
const requestMsMax = 10_000;

export async function listenFederations(options: FederationsServerOptions): Promise<Listening> {
  const server = createServer(
    {
      cert: options.certificate,
      key: options.key,
      ca: options.clientAuthority,
      requestCert: true,
      // Refused by name afterwards, so that the caller learns why.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      requestTimeout: requestMsMax,
    },
    async (request, response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      request.on('error', () => {});
      for await (const chunk of request as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size <= bodyBytesMax + 1) chunks.push(chunk);
      }
      const { method = 'GET', url = '/' } = request;
      const identity = identityOf(request.socket as TLSSocket);
      const answer = await options.federations
        .handle({ method, path: url, headers: {}, body: Buffer.concat(chunks) }, identity)
        .catch((error: Error) => ({ status: 500, headers: {}, body: Buffer.from(`${error.message}\n`) }));
      response.writeHead(answer.status, answer.headers);
      response.end(await readBody(answer.body));
    },
  );
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => resolve());
  });
  return {
    port: (server.address() as { port: number }).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
