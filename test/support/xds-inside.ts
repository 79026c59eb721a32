// The part of a test that runs inside a network namespace: backends, and a client. Takes orders as lines of JSON and answers
// each with a line of JSON.

import { Agent, createServer, get, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { createInterface } from 'node:readline';
import { connect, type TLSSocket } from 'node:tls';

export type Order =
  /** An HTTP server that says its name. */
  | { readonly do: 'serve'; readonly name: string; readonly address: string; readonly port: number }
  /** A TLS server that asks for a client certificate and says its name. */
  | {
      readonly do: 'serveTls';
      readonly name: string;
      readonly address: string;
      readonly port: number;
      readonly certificate: string;
      readonly key: string;
    }
  /** Sends back what it gets. */
  | { readonly do: 'echo'; readonly address: string; readonly port: number }
  /** Opens a TLS connection to such a server, and sends and reads until it is closed. */
  | {
      readonly do: 'hold';
      readonly name: string;
      readonly address: string;
      readonly port: number;
      readonly sni: string;
      readonly certificate: string;
      readonly key: string;
    }
  /** How many echoes a held connection has read, and whether it is closed. */
  | { readonly do: 'held'; readonly name: string }
  | { readonly do: 'get'; readonly to: string }
  /** Asks again and again until `until`: each time on a new connection, or on several that are kept. */
  | { readonly do: 'repeat'; readonly to: string; readonly isKept?: boolean }
  | { readonly do: 'until' }
  /** A TLS handshake and one HTTP request over it. */
  | {
      readonly do: 'tls';
      readonly address: string;
      readonly port: number;
      readonly sni: string;
      readonly certificate?: string;
      readonly key?: string;
    };

const timeoutMs = 5000;
const servers: Server[] = [];
let repeating: { isOver: boolean; done: Promise<object> } | undefined;

function ask(to: string, agent: Agent | false = false): Promise<string> {
  return new Promise((resolve) => {
    const request = get(to, { agent, timeout: timeoutMs }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve(response.statusCode === 200 ? text : `failed: ${response.statusCode}`));
      response.on('error', (error) => resolve(`failed: ${error.message}`));
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', (error) => resolve(`failed: ${error.message}`));
  });
}

async function repeat(to: string, state: { isOver: boolean }): Promise<object> {
  const answers: Record<string, number> = {};
  while (!state.isOver) {
    const answer = await ask(to);
    answers[answer] = (answers[answer] ?? 0) + 1;
  }
  return answers;
}

const keptConnections = 8;

async function repeatKept(to: string, state: { isOver: boolean }): Promise<object> {
  const agent = new Agent({ keepAlive: true, maxSockets: keptConnections });
  const answers: Record<string, number> = {};
  const one = async () => {
    while (!state.isOver) {
      const answer = await ask(to, agent);
      answers[answer] = (answers[answer] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await Promise.all(Array.from({ length: keptConnections }, one));
  agent.destroy();
  return answers;
}

function tls({ address, port, sni, certificate, key }: Extract<Order, { do: 'tls' }>): Promise<string> {
  return new Promise((resolve) => {
    const options = { host: address, port, servername: sni, rejectUnauthorized: false, cert: certificate, key };
    let text = '';
    const socket = connect(options, () => socket.write(`GET / HTTP/1.1\r\nhost: ${sni}\r\nconnection: close\r\n\r\n`));
    socket.setTimeout(timeoutMs, () => socket.destroy());
    socket.on('data', (chunk) => (text += chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(`refused: ${error.code}`));
    socket.on('close', () => resolve(text === '' ? 'refused: closed' : (text.split('\r\n\r\n')[1] ?? text)));
  });
}

const held = new Map<string, { echoes: number; isClosed: boolean }>();
const echoEveryMs = 50;

function hold({ name, address, port, sni, certificate, key }: Extract<Order, { do: 'hold' }>): Promise<string> {
  const state = { echoes: 0, isClosed: false };
  held.set(name, state);
  return new Promise((resolve) => {
    const options = { host: address, port, servername: sni, rejectUnauthorized: false, cert: certificate, key };
    const socket = connect(options, () => socket.write('.'));
    const timer = setInterval(() => socket.write('.'), echoEveryMs);
    socket.on('data', () => {
      state.echoes += 1;
      resolve('open');
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearInterval(timer);
      state.isClosed = true;
      resolve('refused');
    });
  });
}

async function follow(order: Order): Promise<unknown> {
  if (order.do === 'get') return ask(order.to);
  if (order.do === 'tls') return tls(order);
  if (order.do === 'hold') return hold(order);
  if (order.do === 'held') return held.get(order.name);
  if (order.do === 'echo') {
    const server = createTcpServer((socket) => socket.on('error', () => {}).pipe(socket));
    return new Promise((resolve) => server.listen(order.port, order.address, () => resolve('ready')));
  }
  if (order.do === 'serve') {
    const server = createServer((_request, response) => response.end(order.name));
    servers.push(server);
    return new Promise((resolve) => server.listen(order.port, order.address, () => resolve('ready')));
  }
  if (order.do === 'serveTls') {
    const { certificate: cert, key, name } = order;
    const server = createTlsServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (request, response) => {
      const { subjectaltname = 'nobody' } = (request.socket as TLSSocket).getPeerCertificate();
      response.end(`${name} for ${subjectaltname}`);
    });
    servers.push(server);
    return new Promise((resolve) => server.listen(order.port, order.address, () => resolve('ready')));
  }
  if (order.do === 'repeat') {
    const state = { isOver: false, done: Promise.resolve({}) as Promise<object> };
    state.done = order.isKept ? repeatKept(order.to, state) : repeat(order.to, state);
    repeating = state;
    return 'ready';
  }
  repeating!.isOver = true;
  return repeating!.done;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, order } = JSON.parse(line) as { id: number; order: Order };
  void follow(order).then((answer) => process.stdout.write(`${JSON.stringify({ id, answer })}\n`));
}
