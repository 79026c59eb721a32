// HTTPS for the stub-zone endpoint: asks every client for a certificate and hands on whose it is. Connections are limited in
// number and in time, from the moment they are accepted, and one that breaks off harms only itself.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { readBody } from '../../base/http.ts';
import type { StubCertificates, StubEndpoint } from '../config/config.ts';
import type { Federations } from '../stub-zones/federations.ts';
import { OpenConnections } from './open-connections.ts';
import { identityOf } from './server-stream.ts';
import type { Listening } from './server-udp.ts';

export interface FederationsServerOptions extends StubCertificates, Pick<StubEndpoint, 'host' | 'port' | 'onRenewed'> {
  readonly federations: Federations;
  /** Listens beside another server of the same user. */
  readonly takesOver?: boolean;
  readonly connectionsMax?: number;
  readonly handshakeMs?: number;
}

const bodyBytesMax = 16_384;
const requestMsMax = 10_000;
const defaultConnectionsMax = 100;
const defaultHandshakeMs = 3000;

/** The server that takes over shares the port: a stranger that would share it too is found by one exclusive try. */
async function listen(server: Server, { host, port, takesOver }: FederationsServerOptions): Promise<void> {
  const listening = (one: Server, reusePort: boolean) =>
    new Promise<void>((resolve, reject) => {
      one.once('error', reject);
      one.listen({ host, port, reusePort }, () => resolve());
    });
  if (port !== 0 && !takesOver) {
    const claim = createTcpServer();
    await listening(claim, false);
    await new Promise((resolve) => claim.close(resolve));
  }
  await listening(server, port !== 0);
}

export async function listenFederations(options: FederationsServerOptions): Promise<Omit<Listening, 'drain'>> {
  const answer = answerInOrder(options.federations);
  const server = createServer(
    {
      cert: options.certificate,
      key: options.key,
      ca: options.clientAuthority,
      requestCert: true,
      // Refused by name afterwards, so that the caller learns why.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      handshakeTimeout: options.handshakeMs ?? defaultHandshakeMs,
      requestTimeout: requestMsMax,
      headersTimeout: requestMsMax,
      connectionsCheckingInterval: 1000,
    },
    answer,
  );
  const off = options.onRenewed?.(({ certificate, key, clientAuthority }) =>
    server.setSecureContext({ cert: certificate, key, ca: clientAuthority, minVersion: 'TLSv1.2' }),
  );
  const open = new OpenConnections(options.connectionsMax ?? defaultConnectionsMax);
  server.prependListener('connection', (socket: Socket) => open.add(socket));
  server.on('secureConnection', (socket) => open.touch(socket));
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  await listen(server, options);
  return {
    port: (server.address() as { port: number }).port,
    close: () =>
      new Promise((resolve) => {
        off?.();
        server.close(() => resolve());
        server.closeAllConnections();
        open.destroyAll();
      }),
  };
}

/** Pipelined requests run one after the other: a read shows the write before it. */
function answerInOrder(federations: Federations): RequestListener {
  const last = new WeakMap<Socket, Promise<void>>();
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const sent = await bodyOf(request);
    if (sent === undefined) return;
    const { method = 'GET', url = '/' } = request;
    const identity = identityOf(request.socket as TLSSocket);
    const { status, headers, body } = await federations
      .handle({ method, path: url, headers: {}, body: sent }, identity)
      .catch((error: Error) => ({ status: 500, headers: {}, body: Buffer.from(`${error.message}\n`) }));
    response.writeHead(status, headers);
    response.end(await readBody(body));
  };
  return (request, response) => {
    const before = last.get(request.socket) ?? Promise.resolve();
    last.set(
      request.socket,
      before.then(() => answer(request, response)).catch(() => void request.destroy()),
    );
  };
}

/** Undefined if its sender broke off. A longer body is cut one byte behind the limit, and then refused as too long. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size - chunk.length <= bodyBytesMax) chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}
