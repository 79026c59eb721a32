// A foreign consumer: registers, keeps services in a map, and answers each message without a resource URL, and
// optionally without a nonce.

import http2 from 'node:http2';
import { ack, deframe, fieldsOf, frame, nack, path, registerConsumer, text, url } from './wire.ts';

export interface ForeignConsumer {
  /** Id to FQDN. */
  readonly held: Map<string, string>;
  /** `CREATE db.example`, `DELETE db.example`: as they came. */
  readonly heard: string[];
  readonly ended: Promise<{ readonly status: string; readonly message: string }>;
  /** Gives the oldest answer that a slow one still owes. */
  answer(): void;
  /** Half-closes. */
  deregister(): void;
  close(): void;
}

export interface ForeignConsumerOptions {
  readonly port: number;
  readonly cert?: string;
  readonly key?: string;
  readonly ca: string;
  readonly hasNonces?: boolean;
  /** Services with this in their id are refused. */
  readonly refuses?: string;
  readonly firstMessage?: Buffer;
  /** Answers only on demand. */
  readonly isSlow?: boolean;
}

const operations = ['UNKNOWN', 'CREATE', 'UPDATE', 'DELETE'];

export function startForeignConsumer(options: ForeignConsumerOptions): ForeignConsumer {
  const held = new Map<string, string>();
  const heard: string[] = [];
  const session = http2.connect(`https://127.0.0.1:${options.port}`, {
    ca: options.ca,
    cert: options.cert,
    key: options.key,
    checkServerIdentity: () => undefined,
  });
  session.on('error', () => {});
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc+proto',
    te: 'trailers',
  });
  stream.on('error', () => {});
  const owed: Buffer[] = [];
  const say = (answer: Buffer) => {
    if (options.isSlow) owed.push(answer);
    else stream.write(frame(answer));
  };
  const onMessage = (bytes: Buffer) => {
    const message = fieldsOf(bytes);
    const any = fieldsOf(message.get(3)?.[0] as Buffer);
    const service = fieldsOf(any.get(2)?.[0] as Buffer);
    const id = text(service, 6);
    const operation = operations[Number(message.get(4)?.[0] ?? 0)];
    const nonce = options.hasNonces === false ? '' : text(message, 1);
    heard.push(`${operation} ${id}`);
    if (text(any, 1) !== url || text(message, 2) !== url) heard.push(`wrong url ${text(any, 1)} ${text(message, 2)}`);
    if (options.refuses !== undefined && id.includes(options.refuses)) {
      say(nack(nonce, 3, 'we do not want it'));
      return;
    }
    if (operation === 'DELETE') held.delete(id);
    else held.set(id, text(service, 5));
    say(ack(nonce));
  };
  stream.on('data', deframe(onMessage));
  stream.write(frame(options.firstMessage ?? registerConsumer()));
  const ended = new Promise<{ status: string; message: string }>((resolve) => {
    const take = (headers: http2.IncomingHttpHeaders) => {
      if (headers['grpc-status'] === undefined) return;
      const message = decodeURIComponent(String(headers['grpc-message'] ?? ''));
      resolve({ status: String(headers['grpc-status']), message });
    };
    stream.on('response', take);
    stream.on('trailers', take);
    stream.on('close', () => resolve({ status: 'none', message: '' }));
  });
  const answer = () => {
    const oldest = owed.shift();
    if (oldest !== undefined) stream.write(frame(oldest));
  };
  return { held, heard, ended, answer, deregister: () => stream.end(), close: () => session.destroy() };
}
