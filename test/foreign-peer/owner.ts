// A foreign owner: sends its catalog one message at a time, waits for each answer, knows no nonces and no end of a
// snapshot.

import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { deframe, type Fields, type ForeignService, fieldsOf, frame, response, text, url } from './wire.ts';

export interface ForeignOwner {
  readonly port: number;
  /** What consumers said: `register`, `ack`, `nack 3 san: …`. */
  readonly heard: string[];
  /** Metadata of each stream that was opened. */
  readonly headers: http2.IncomingHttpHeaders[];
  put(service: ForeignService): void;
  /** With nothing but its id. */
  remove(id: string): void;
  /** Ends every stream. */
  breakStreams(): void;
  close(): Promise<void>;
}

export interface ForeignOwnerOptions {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export async function startForeignOwner(options: ForeignOwnerOptions): Promise<ForeignOwner> {
  const catalog = new Map<string, ForeignService>();
  const heard: string[] = [];
  const headersSeen: http2.IncomingHttpHeaders[] = [];
  const streams = new Map<http2.ServerHttp2Stream, (message: Buffer) => void>();
  const server = http2.createSecureServer({ ...options, requestCert: true, rejectUnauthorized: true });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    headersSeen.push(headers);
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    const queue: Buffer[] = [];
    let isWaiting = false;
    const next = () => {
      const message = queue[0];
      if (isWaiting || message === undefined) return;
      isWaiting = true;
      queue.shift();
      stream.write(frame(message));
    };
    const send = (message: Buffer) => {
      queue.push(message);
      next();
    };
    const onMessage = (bytes: Buffer) => {
      const request = fieldsOf(bytes);
      if (!request.has(3)) {
        heard.push(text(request, 1) === url ? 'register' : 'register with a wrong url');
        streams.set(stream, send);
        for (const service of catalog.values()) send(response(1, service));
        return;
      }
      heard.push(answerText(fieldsOf(request.get(3)?.[0] as Buffer)));
      isWaiting = false;
      next();
    };
    stream.on('data', deframe(onMessage));
    stream.on('close', () => streams.delete(stream));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const tell = (message: Buffer) => {
    for (const send of streams.values()) send(message);
  };
  return {
    port: (server.address() as AddressInfo).port,
    heard,
    headers: headersSeen,
    put: (service) => {
      const operation = catalog.has(service.id) ? 2 : 1;
      catalog.set(service.id, service);
      tell(response(operation, service));
    },
    remove: (id) => {
      catalog.delete(id);
      tell(response(3, { id }));
    },
    breakStreams: () => {
      for (const session of sessions) session.destroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
}

function answerText(status: Fields): string {
  const code = Number(status.get(1)?.[0] ?? 0);
  return code === 0 ? 'ack' : `nack ${code} ${text(status, 2)}`;
}
