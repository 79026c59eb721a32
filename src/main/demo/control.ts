// How `portolan demo break` and `heal` reach the running demo: a small HTTP endpoint on loopback whose secret lies in the
// demo's folder, readable by its owner alone.

import type { AddressInfo } from 'node:net';
import { createServer, request } from '../../base/real/node-http.ts';

export interface ControlAddress {
  readonly port: number;
  readonly secret: string;
}

export interface ControlServer extends ControlAddress {
  stop(): Promise<void>;
}

/** Answers with what was done, or rejects with what is wrong with the order. */
export type ControlHandler = (verb: string, cluster: string) => Promise<string>;

export function startControl({
  secret,
  handle,
}: {
  readonly secret: string;
  readonly handle: ControlHandler;
}): Promise<ControlServer> {
  const server = createServer((incoming, outgoing) => {
    const [, verb = '', cluster = ''] = (incoming.url ?? '').split('/');
    const answer = (status: number, text: string) =>
      outgoing.writeHead(status, { 'content-type': 'text/plain' }).end(text);
    if (incoming.method !== 'POST' || incoming.headers.authorization !== `Bearer ${secret}`)
      return answer(403, 'not for you');
    handle(verb, decodeURIComponent(cluster)).then(
      (text) => answer(200, text),
      (error: Error) => answer(400, error.message),
    );
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      const stop = () => new Promise<void>((done) => server.close(() => done()));
      resolve({ port, secret, stop });
    });
  });
}

export function sendControl({ port, secret }: ControlAddress, verb: string, cluster: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const path = `/${verb}/${encodeURIComponent(cluster)}`;
    const outgoing = request(
      { host: '127.0.0.1', port, path, method: 'POST', headers: { authorization: `Bearer ${secret}` } },
      (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        incoming.on('end', () => (incoming.statusCode === 200 ? resolve(text) : reject(new Error(text))));
      },
    );
    outgoing.on('error', (cause) =>
      reject(new Error('no demo runs in that folder; start one with portolan demo', { cause })),
    );
    outgoing.end();
  });
}
