// A served edge with a scripted API behind it, and the clients that try it: well-behaved ones and raw sockets.

import { mkdtempSync, rmSync } from 'node:fs';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  type IncomingHttpHeaders,
} from 'node:http2';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { HttpResponse } from '../../../base/http.ts';
import { silentLog } from '../../../base/log.ts';
import { createRealWorld } from '../../../base/real/world.ts';
import type { Credentials } from '../../../base/x509/certificates.ts';
import type { ApiRequest } from '../../model/access.ts';
import { openPki, type Pki, servingHosts } from '../../security/pki.ts';
import { type ApiServer, type ServeOptions, serve } from '../server.ts';

export interface Bench {
  readonly server: ApiServer;
  readonly pki: Pki;
  /** Every request that reached the API, in order. */
  readonly seen: ApiRequest[];
  http2(credentials?: Partial<Credentials>): ClientHttp2Session;
  http1(request?: Http1Request): Promise<Answer>;
  raw(options?: ConnectionOptions): Promise<TLSSocket>;
  close(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Http1Request extends Partial<Credentials> {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array | string;
}

export type Script = (request: ApiRequest) => Promise<HttpResponse> | HttpResponse;

export async function openTestPki(): Promise<{ pki: Pki; directory: string; remove(): void }> {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-edge-'));
  const hosts = servingHosts({ host: '127.0.0.1', hostname: 'here.example' });
  const pki = await openPki({ world: createRealWorld(), directory, hosts, log: silentLog });
  return {
    pki,
    directory,
    remove: () => {
      pki.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export async function openBench(pki: Pki, script: Script, options: Partial<ServeOptions> = {}): Promise<Bench> {
  const seen: ApiRequest[] = [];
  const server = await serve({
    world: createRealWorld(),
    log: silentLog,
    pki,
    listen: { host: '127.0.0.1', port: 0 },
    api: {
      handle: async (request) => {
        await request.receiveBody?.();
        seen.push(request);
        return script(request);
      },
    },
    ...options,
  });
  const { port } = server.address;
  const sessions: ClientHttp2Session[] = [];
  const sockets: TLSSocket[] = [];
  const trust = { ca: pki.clientCa };
  return {
    server,
    pki,
    seen,
    http2: (credentials = {}) => {
      const session = connectHttp2(`https://127.0.0.1:${port}`, { ...trust, ...tlsOf(credentials) });
      session.on('error', () => {});
      sessions.push(session);
      return session;
    },
    http1: (request = {}) => sendHttp1({ host: '127.0.0.1', port, ...trust, ...tlsOf(request) }, request),
    raw: async (tls = {}) => {
      const socket = connectTls({ host: '127.0.0.1', port, ...trust, ...tls });
      socket.on('error', () => {});
      sockets.push(socket);
      await new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve);
        socket.once('close', () => reject(new Error('the connection was refused')));
      });
      return socket;
    },
    close: async () => {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
      await server.close();
    },
  };
}

function tlsOf({ certificate, key }: Partial<Credentials>) {
  return { cert: certificate, key };
}

function sendHttp1(target: RequestOptions, { method = 'GET', path = '/', headers = {}, body }: Http1Request) {
  const agent = new Agent({ keepAlive: false });
  return new Promise<Answer>((resolve, reject) => {
    const request = httpsRequest({ ...target, method, path, headers, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

export interface Http2Request {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array | string;
}

export async function sendHttp2(session: ClientHttp2Session, request: Http2Request = {}): Promise<Answer> {
  const { method = 'GET', path = '/', headers = {}, body } = request;
  const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return await readAnswer(stream);
}

export function readAnswer(stream: ClientHttp2Stream): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let headers: IncomingHttpHeaders = {};
    stream.on('response', (head) => (headers = head));
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      if (stream.rstCode !== 0) return reject(new Error(`the stream was reset with code ${stream.rstCode}`));
      resolve({ status: Number(headers[':status']), headers, body: Buffer.concat(chunks).toString() });
    });
  });
}

export function closed(emitter: {
  once(event: 'close', listener: () => void): unknown;
  destroyed: boolean;
}): Promise<void> {
  return new Promise((resolve) => {
    if (emitter.destroyed) resolve();
    else emitter.once('close', () => resolve());
  });
}

/** Everything a socket receives until it is closed. */
export async function drain(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (data: Buffer) => chunks.push(data));
  await closed(socket);
  return Buffer.concat(chunks).toString('latin1');
}

/** A body whose chunks the test hands out one by one. */
export class Spout implements AsyncIterable<Uint8Array> {
  #ready: Uint8Array[] = [];
  #waiting: ((step: IteratorResult<Uint8Array>) => void) | undefined;
  #isOver = false;
  pulls = 0;
  readonly returned: Promise<void>;
  #onReturn: () => void = () => {};

  constructor() {
    this.returned = new Promise((resolve) => (this.#onReturn = resolve));
  }

  push(...texts: string[]): void {
    this.#ready.push(...texts.map((text) => Buffer.from(text)));
    this.#serve();
  }

  end(): void {
    this.#isOver = true;
    this.#serve();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => {
        this.pulls++;
        return new Promise((resolve) => {
          this.#waiting = resolve;
          this.#serve();
        });
      },
      return: async () => {
        this.#onReturn();
        this.end();
        return { done: true, value: undefined };
      },
    };
  }

  #serve(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const value = this.#ready.shift();
    if (value === undefined && !this.#isOver) return;
    this.#waiting = undefined;
    waiting(value === undefined ? { done: true, value: undefined } : { done: false, value });
  }
}

export function text(body: string, status = 200): HttpResponse {
  return { status, headers: { 'content-type': 'text/plain' }, body: Buffer.from(body) };
}

export function stream(body: AsyncIterable<Uint8Array>, isEndless = true): HttpResponse {
  return { status: 200, headers: { 'content-type': 'application/json' }, body, isEndless };
}

/** Waits until it is so; the test's own time limit is the bound. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}
