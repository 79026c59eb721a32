// The world outside, inside a network namespace: servers of every kind, and a client that takes orders as lines of JSON and
// answers in lines of JSON. Told by JSON in its argument where certificates and sockets are.

import { createSocket } from 'node:dgram';
import { readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createConnection, createServer as createTcpServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { verifySignature } from './aws-signature.ts';

export interface WorldTask {
  readonly ca: string;
  /** Folder with `<name>.pem` and `<name>.key`. */
  readonly pairs: string;
  readonly socket: string;
}

export type Order =
  | {
      readonly do: 'http';
      readonly to: string;
      readonly host?: string;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly do: 'http2'; readonly to: string; readonly host: string; readonly isGrpc?: boolean }
  | { readonly do: 'tls'; readonly to: string; readonly sni: string }
  | { readonly do: 'tcp'; readonly to: string; readonly send?: string }
  /** Opens a connection that stays; `say` sends a line over it and waits for its echo. */
  | { readonly do: 'open'; readonly to: string; readonly name: string; readonly sni?: string }
  | { readonly do: 'say'; readonly name: string; readonly text: string }
  /** Asks again and again until `until`; answers how often, and what failed. */
  | { readonly do: 'repeat'; readonly to: string; readonly host: string; readonly name: string }
  | { readonly do: 'until'; readonly name: string };

const task = JSON.parse(process.argv[2] ?? '{}') as WorldTask;
const timeoutMs = 8000;
const pair = (name: string) => ({
  cert: readFileSync(`${task.pairs}/${name}.pem`),
  key: readFileSync(`${task.pairs}/${name}.key`),
});
const listening: Promise<void>[] = [];
const open = new Map<string, Socket>();
const repeating = new Map<string, { isOver: boolean; done: Promise<unknown> }>();

function listen(
  server: { listen(options: object, done: () => void): unknown },
  to: { host?: string; port?: number; path?: string },
) {
  listening.push(new Promise((resolve) => server.listen(to, resolve)));
}

function web(name: string): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, response) => {
    const { host, 'x-portolan-rule': rule = 'none' } = incoming.headers;
    // Everything that arrived but what concerns one connection alone.
    const { connection: _hop, ...arrived } = incoming.headers;
    if (host === 'echo.test') return void response.end(JSON.stringify(arrived));
    const client = (incoming.socket as TLSSocket).getPeerCertificate?.()?.subject?.CN ?? 'none';
    response.end(`${name} host=${host} rule=${rule} client=${client} http=${incoming.httpVersion}`);
  };
}

listen(createHttpServer(web('web1')), { host: '10.50.0.1', port: 80 });
listen(createHttpServer(web('web2')), { host: '10.50.0.2', port: 80 });
rmSync(task.socket, { force: true });
listen(createHttpServer(web('socket')), { path: task.socket });
const http2 = createHttp2Server();
http2.on('stream', (stream, headers) => {
  const isGrpc = headers['content-type'] === 'application/grpc';
  stream.respond(
    { ':status': 200, ...(isGrpc ? { 'content-type': 'application/grpc' } : {}) },
    { waitForTrailers: isGrpc },
  );
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(`h2 host=${headers[':authority']}`);
});
listen(http2, { host: '10.50.0.3', port: 80 });
for (const [address, name] of [
  ['10.50.0.4', 'api'],
  ['10.50.0.5', 'wild'],
] as const) {
  const server = createTlsServer(pair(name), (socket) => {
    socket.on('error', () => {});
    socket.write(`${name} sni=${socket.servername}\n`);
    socket.pipe(socket);
  });
  listen(server, { host: address, port: 443 });
}
const backend = createHttpsServer(
  { ...pair('backend'), ca: task.ca, requestCert: true, rejectUnauthorized: false },
  web('backend'),
);
listen(backend, { host: '10.50.0.6', port: 8443 });
listen(
  createTcpServer((socket) => void socket.on('error', () => {}).pipe(socket)),
  { host: '10.50.0.7', port: 9000 },
);
const banner = createTcpServer((socket) => void socket.on('error', () => {}).end('5.7 ready for you\n'));
listen(banner, { host: '10.50.0.8', port: 3306 });
const lambda = createHttpsServer(pair('lambda'), (incoming, response) => {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.on('end', () => {
    const verdict = verifySignature(incoming, Buffer.concat(chunks));
    response.statusCode = verdict === 'good' ? 200 : 403;
    response.end(`signature=${verdict} path=${incoming.url} body=${Buffer.concat(chunks).toString()}`);
  });
});
listen(lambda, { host: '10.50.0.9', port: 8444 });
// The resolver of the namespace: it never answers, which holds a client up longer than a refusal.
listening.push(new Promise((resolve) => createSocket('udp4').bind(53, '127.0.0.1', resolve)));

function split(to: string): { host: string; port: number } {
  const colon = to.lastIndexOf(':');
  return { host: to.slice(0, colon), port: Number(to.slice(colon + 1)) };
}

function http({ to, host, body, headers: given }: Extract<Order, { do: 'http' }>): Promise<string> {
  return new Promise((resolve) => {
    const headers = { ...(host === undefined ? {} : { host }), 'x-portolan-rule': 'forged', ...given };
    const asked = request({
      ...split(to),
      headers,
      method: body === undefined ? 'GET' : 'POST',
      timeout: timeoutMs,
      agent: false,
    });
    asked.on('response', (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve(`${response.statusCode} ${text}`));
    });
    asked.on('timeout', () => asked.destroy(new Error('timeout')));
    asked.on('error', (error) => resolve(`error ${error.message}`));
    asked.end(body);
  });
}

function askHttp2({ to, host, isGrpc }: Extract<Order, { do: 'http2' }>): Promise<string> {
  return new Promise((resolve) => {
    const session: ClientHttp2Session = connectHttp2(`http://${to}`);
    const end = (text: string) => {
      session.destroy();
      resolve(text);
    };
    session.on('error', (error: Error) => end(`error ${error.message}`));
    const grpc = isGrpc ? { 'content-type': 'application/grpc', te: 'trailers' } : {};
    const stream = session.request({
      ':path': '/a.B/C',
      ':authority': host,
      ':method': isGrpc ? 'POST' : 'GET',
      ...grpc,
    });
    let text = '';
    let trailers = '';
    stream.setTimeout(timeoutMs, () => end('error timeout'));
    stream.on('response', (headers) => (text += `${headers[':status']} `));
    stream.on('data', (chunk) => (text += chunk));
    stream.on('trailers', (headers) => (trailers = ` grpc-status=${headers['grpc-status']}`));
    stream.on('error', (error: Error) => end(`error ${error.message}`));
    stream.on('close', () => end(`${text}${trailers}`));
    stream.end();
  });
}

/** The first line of what the other side says. */
function firstLine(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('timeout')));
    socket.on('data', (chunk) => {
      text += chunk;
      if (text.includes('\n')) resolve(text.split('\n')[0]!);
    });
    socket.on('error', (error) => resolve(`error ${error.message}`));
    socket.on('close', () => resolve(text === '' ? 'closed' : text));
  });
}

async function obey(order: Order): Promise<string> {
  if (order.do === 'http') return http(order);
  if (order.do === 'http2') return askHttp2(order);
  if (order.do === 'say') {
    const socket = open.get(order.name)!;
    if (socket.destroyed) return 'closed';
    const line = firstLine(socket);
    socket.write(`${order.text}\n`);
    return line;
  }
  if (order.do === 'repeat') return startRepeating(order);
  if (order.do === 'until') {
    const one = repeating.get(order.name)!;
    one.isOver = true;
    return JSON.stringify(await one.done);
  }
  const plain = createConnection(split(order.to));
  const socket =
    order.do === 'tls' || (order.do === 'open' && order.sni !== undefined)
      ? connectTls({ socket: plain, servername: order.sni!, ca: task.ca, rejectUnauthorized: false })
      : plain;
  socket.on('error', () => {});
  if (order.do === 'open') {
    open.set(order.name, socket);
    await new Promise((resolve) => socket.once(order.sni === undefined ? 'connect' : 'data', resolve));
    return 'open';
  }
  const line = firstLine(socket);
  if (order.do === 'tcp' && order.send !== undefined) socket.write(`${order.send}\n`);
  const text = await line;
  socket.destroy();
  return text;
}

function startRepeating({ to, host, name }: Extract<Order, { do: 'repeat' }>): string {
  const one = { isOver: false, done: Promise.resolve<unknown>(undefined) };
  one.done = (async () => {
    const answers: Record<string, number> = {};
    while (!one.isOver) {
      const answer = await http({ do: 'http', to, host });
      const key = answer.split(' ').slice(0, 2).join(' ');
      answers[key] = (answers[key] ?? 0) + 1;
    }
    return answers;
  })();
  repeating.set(name, one);
  return 'repeating';
}

await Promise.all(listening);
process.stdout.write('"ready"\n');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, order } = JSON.parse(line) as { id: number; order: Order };
  obey(order).then(
    (answer) => process.stdout.write(`${JSON.stringify({ id, answer })}\n`),
    (error: unknown) => process.stdout.write(`${JSON.stringify({ id, answer: `error ${String(error)}` })}\n`),
  );
});
