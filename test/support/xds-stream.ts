// A proxy reduced to its gRPC stream: sends delta requests, receives responses one by one.

import http2 from 'node:http2';
import { createConnection } from 'node:net';
import { FrameReader, frameOf } from '../../src/base/grpc/frames.ts';
import { decodeMessage } from '../../src/base/protobuf/decode.ts';
import { encodeMessage } from '../../src/base/protobuf/encode.ts';
import { WireReader } from '../../src/base/protobuf/wire-reader.ts';
import { envoySchema, typeUrlOf } from '../../src/xds/envoy-schema.ts';

const service = 'envoy.service.discovery.v3';
const ads = `/${service}.AggregatedDiscoveryService/DeltaAggregatedResources`;

export interface Stream {
  send(fields: Record<string, unknown>): void;
  next(): Promise<Record<string, unknown>>;
  /** The status the call ended with. */
  readonly ended: Promise<{ code: number; message: string }>;
  close(): void;
}

export function connect(target: string, options: http2.SecureClientSessionOptions, path = ads): Stream {
  const session = http2.connect(target, options);
  session.on('error', () => {});
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const reader = new FrameReader({ messageBytesMax: 1 << 20 });
  const arrived: Record<string, unknown>[] = [];
  const waiting: ((message: Record<string, unknown>) => void)[] = [];
  stream.on('data', (chunk: Buffer) => {
    for (const bytes of reader.read(chunk)) {
      const message = decodeMessage(envoySchema, `${service}.DeltaDiscoveryResponse`, new WireReader(bytes));
      const waiter = waiting.shift();
      if (waiter === undefined) arrived.push(message);
      else waiter(message);
    }
  });
  stream.on('error', () => {});
  const ended = new Promise<{ code: number; message: string }>((resolve) => {
    const end = (headers: http2.IncomingHttpHeaders) => {
      if (headers['grpc-status'] === undefined) return;
      const message = decodeURIComponent(String(headers['grpc-message'] ?? ''));
      resolve({ code: Number(headers['grpc-status']), message });
    };
    stream.on('response', end);
    stream.on('trailers', end);
  });
  return {
    ended,
    close: () => session.destroy(),
    send: (fields) => stream.write(frameOf(encodeMessage(envoySchema, `${service}.DeltaDiscoveryRequest`, fields))),
    next: () => {
      const message = arrived.shift();
      return message === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(message);
    },
  };
}

/** Over the unix socket of a server. */
export function local(socket: string, path?: string): Stream {
  return connect('http://localhost', { createConnection: () => createConnection(socket) } as never, path);
}

export const node = (id: string) => ({ node: { id, user_agent_name: 'envoy', metadata: { clusterset: 'proxied' } } });
export const clusters = { type_url: typeUrlOf('cluster') };
