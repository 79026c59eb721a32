// Starts `portolan api` as a process of its own and speaks plain HTTP/2 to it, with nothing of the client in between.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { freePort } from './free-port.ts';

const portolan = fileURLToPath(new URL('../../bin/portolan', import.meta.url));

export interface ApiProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly kubeconfig: string;
  readonly readyMs: number;
  readonly port: number;
  /** Standard error of the process so far. */
  errors(): string;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface ApiProcessOptions {
  readonly data: string;
  readonly port?: number;
  readonly args?: readonly string[];
  /** A program and its arguments that run it, such as strace. */
  readonly under?: readonly string[];
  /** Until it must be ready; one that waits for another may take long. */
  readonly waitMs?: number;
  /** Kills it at once, also while it is not ready. */
  readonly signal?: AbortSignal;
}

export async function startApi(options: ApiProcessOptions): Promise<ApiProcess> {
  // Tests kill homes and start them again on the same port.
  const listen = `127.0.0.1:${options.port ?? (await freePort())}`;
  const startedAt = performance.now();
  const args = ['api', '--data', options.data, '--listen', listen, ...(options.args ?? [])];
  const [program, ...programArgs] = [...(options.under ?? []), portolan, ...args];
  const isUnder = options.under !== undefined;
  const child = spawn(program!, programArgs, { stdio: ['ignore', 'pipe', 'pipe'], detached: isUnder });
  // A process under another program is signalled as a group of its own.
  const signalAll = (signal: NodeJS.Signals) => process.kill(isUnder ? -child.pid! : child.pid!, signal);
  const onAbort = () => signalAll('SIGKILL');
  options.signal?.addEventListener('abort', onAbort);
  if (options.signal?.aborted) onAbort();
  let out = '';
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  void exited.then(() => options.signal?.removeEventListener('abort', onAbort));
  return new Promise((resolve, reject) => {
    const { waitMs = 60_000 } = options;
    const timer = setTimeout(() => {
      signalAll('SIGKILL');
      reject(new Error(`portolan api was not ready in ${waitMs / 1000} s: ${out}${errors}`));
    }, waitMs);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`portolan api exited with ${code} before it was ready: ${out}${errors}`));
    });
    child.stdout.on('data', (chunk) => {
      out += chunk;
      const ready = /ready\S*\s+https:\/\/\S+:(\d+)/.exec(out);
      if (ready === null) return;
      clearTimeout(timer);
      resolve({
        child,
        pid: child.pid as number,
        kubeconfig: `${options.data}/admin.kubeconfig`,
        readyMs: performance.now() - startedAt,
        port: Number(ready[1]),
        errors: () => errors,
        stop: (signal = 'SIGTERM') => {
          if (child.exitCode === null && child.signalCode === null) signalAll(signal);
          return exited;
        },
      });
    });
  });
}

interface Reply {
  readonly status: number;
  readonly body: Buffer;
}

export interface Connection {
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  stream(path: string): http2.ClientHttp2Stream;
  /** A POST whose body is still to be written. */
  post(path: string): http2.ClientHttp2Stream;
  close(): void;
}

/** One HTTP/2 session with the kubeconfig's client certificate. A small window lets little wait on our side. */
export function connect(kubeconfig: string, windowBytes = 1 << 24): Promise<Connection> {
  const config = parse(readFileSync(kubeconfig, 'utf8'));
  const cluster = config.clusters[0].cluster;
  const user = config.users[0].user;
  const pem = (text: string) => Buffer.from(text, 'base64');
  const session = http2.connect(cluster.server, {
    ca: pem(cluster['certificate-authority-data']),
    cert: pem(user['client-certificate-data']),
    key: pem(user['client-key-data']),
    settings: { initialWindowSize: windowBytes },
  });
  const connection: Connection = {
    request: (method, path, body, headers) => request(session, method, path, body, headers),
    stream: (path) => session.request({ ':path': path }),
    post: (path) => session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/json' }),
    close: () => session.destroy(),
  };
  return new Promise((resolve, reject) => {
    session.once('connect', () => resolve(connection));
    session.on('error', reject);
  });
}

function request(
  session: http2.ClientHttp2Session,
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const stream = session.request(
      {
        ':method': method,
        ':path': path,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      // Said outright: Node would end a DELETE before its body.
      { endStream: body === undefined },
    );
    const chunks: Buffer[] = [];
    let status = 0;
    stream.on('response', (response) => {
      status = Number(response[':status']);
    });
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('end', () => {
      if (status > 0) resolve({ status, body: Buffer.concat(chunks) });
    });
    stream.on('error', reject);
    stream.on('close', () => reject(new Error(`${method} ${path}: the stream closed without an answer`)));
    if (body !== undefined) stream.end(body instanceof Uint8Array ? body : JSON.stringify(body));
  });
}
