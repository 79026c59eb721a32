// A foreign owner: sends its catalog one message at a time, waits for each answer, knows no nonces and no end of a
// snapshot.

import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { deframe, type Fields, type ForeignService, fieldsOf, frame, response, text, url } from './wire.ts';

export interface ForeignOwner {
  readonly port: number;
  /** Answers of the consumers: `register`, `ack`, `nack 3 san: …`. */
  readonly heard: string[];
  /** Notes beside an ack, which still is one. */
  readonly notes: string[];
  /** Id to description of what a consumer acknowledged last; taken off when it acknowledged that it is gone. */
  readonly acknowledged: Map<string, string>;
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
  /** Sends its headers only with its first message, as grpc-go does. */
  readonly isLazy?: boolean;
  /** Any port of the loopback if absent. */
  readonly listen?: { readonly host: string; readonly port: number };
}

interface Told {
  readonly message: Buffer;
  /** Without an FQDN when it was taken back. */
  readonly service: ForeignService;
}

export async function startForeignOwner(options: ForeignOwnerOptions): Promise<ForeignOwner> {
  const catalog = new Map<string, ForeignService>();
  const heard: string[] = [];
  const notes: string[] = [];
  const acknowledged = new Map<string, string>();
  const headersSeen: http2.IncomingHttpHeaders[] = [];
  const streams = new Map<http2.ServerHttp2Stream, (told: Told) => void>();
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
    const respond = () => {
      if (!stream.headersSent)
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    };
    if (!options.isLazy) respond();
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    const queue: Told[] = [];
    let waitingFor: Told | undefined;
    const next = () => {
      if (waitingFor !== undefined || queue[0] === undefined) return;
      waitingFor = queue.shift();
      respond();
      stream.write(frame((waitingFor as Told).message));
    };
    const send = (told: Told) => {
      queue.push(told);
      next();
    };
    const onMessage = (bytes: Buffer) => {
      const request = fieldsOf(bytes);
      if (!request.has(3)) {
        heard.push(text(request, 1) === url ? 'register' : 'register with a wrong url');
        streams.set(stream, send);
        for (const service of catalog.values()) send({ message: response(1, service), service });
        return;
      }
      const status = fieldsOf(request.get(3)?.[0] as Buffer);
      const answer = answerText(status);
      if (answer === 'ack' && status.has(2)) notes.push(text(status, 2));
      heard.push(answer);
      if (answer === 'ack' && waitingFor !== undefined) {
        const { id, fqdn, description = '' } = waitingFor.service;
        if (fqdn === undefined) acknowledged.delete(id);
        else acknowledged.set(id, description);
      }
      waitingFor = undefined;
      next();
    };
    stream.on('data', deframe(onMessage));
    stream.on('close', () => streams.delete(stream));
  });
  const { host, port } = options.listen ?? { host: '127.0.0.1', port: 0 };
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const tell = (told: Told) => {
    for (const send of streams.values()) send(told);
  };
  return {
    port: (server.address() as AddressInfo).port,
    heard,
    notes,
    acknowledged,
    headers: headersSeen,
    put: (service) => {
      const operation = catalog.has(service.id) ? 2 : 1;
      catalog.set(service.id, service);
      tell({ message: response(operation, service), service });
    },
    remove: (id) => {
      catalog.delete(id);
      tell({ message: response(3, { id }), service: { id } });
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
