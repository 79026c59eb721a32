// The part of a test that runs inside a network namespace: backends, and a client. Takes orders as lines of JSON and answers
// each with a line of JSON.

import { createSocket as createUdpSocket, type Socket as UdpSocket } from 'node:dgram';
import { Agent, createServer, get, type Server } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import { connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net';
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
  /** A UDP server that says its name and how many bytes it got, or sends as many as it is told. */
  | { readonly do: 'serveUdp'; readonly name: string; readonly address: string; readonly port: number }
  /** One datagram from a socket that is kept under this name: the answer, or `none`. */
  | {
      readonly do: 'askUdp';
      readonly name: string;
      readonly address: string;
      readonly port: number;
      readonly text: string;
    }
  /** So many sockets send a datagram each, a hundred at a time, and stay: how many were answered. */
  | { readonly do: 'manyUdp'; readonly address: string; readonly port: number; readonly count: number }
  /** The same without TLS. */
  | { readonly do: 'holdPlain'; readonly name: string; readonly address: string; readonly port: number }
  /** Closes a connection that is held. */
  | { readonly do: 'letGo'; readonly name: string }
  /** Asks for something by HTTP CONNECT over mutual TLS, and says the status. */
  | {
      readonly do: 'connect';
      readonly address: string;
      readonly port: number;
      readonly sni: string;
      readonly authority: string;
      readonly certificate?: string;
      readonly key?: string;
      /** By extended CONNECT, for this protocol, and with this target in the path instead of the authority. */
      readonly protocol?: string;
      readonly target?: string;
    }
  /** Opens so many streams by HTTP CONNECT, a thousand on each connection, and keeps them: how many got which status, or none yet. */
  | {
      readonly do: 'flood';
      readonly address: string;
      readonly port: number;
      readonly sni: string;
      readonly authority: string;
      readonly certificate: string;
      readonly key: string;
      readonly streams: number;
    }
  | { readonly do: 'endFlood' }
  /** Sends these bytes, over TLS if there is a certificate, and nothing more: after how many ms the connection is closed. */
  | {
      readonly do: 'silent';
      readonly address: string;
      readonly port: number;
      readonly sni?: string;
      readonly certificate?: string;
      readonly key?: string;
      readonly hex: string;
      readonly giveUpMs: number;
    }
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
  | { readonly do: 'get' | 'post'; readonly to: string }
  /** Asks again and again until `until`: each time on a new connection, or on several that are kept. */
  | { readonly do: 'repeat'; readonly to: string; readonly isKept?: boolean }
  | { readonly do: 'until' }
  /**
   * Requests, several at a time, until `loaded`: how many, who answered, and when which failed. Each on a new connection, or on
   * connections that are kept for `keptMs`.
   */
  | {
      readonly do: 'load';
      readonly to: string;
      readonly lanes: number;
      readonly name?: string;
      readonly keptMs?: number;
    }
  | { readonly do: 'loaded'; readonly name?: string }
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
const udpAnswerMs = 1000;
const servers: Server[] = [];
let repeating: { isOver: boolean; done: Promise<object> } | undefined;

function ask(to: string, agent: Agent | false = false, method = 'GET'): Promise<string> {
  return new Promise((resolve) => {
    const request = get(to, { agent, method, timeout: timeoutMs }, (response) => {
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
const letGo = new Map<string, () => unknown>();
const echoEveryMs = 50;

type Held = Extract<Order, { do: 'hold' | 'holdPlain' }>;

function open(order: Held, onOpen: () => void): Socket {
  const { address: host, port } = order;
  if (order.do === 'holdPlain') return connectTcp({ host, port }, onOpen);
  const { sni, certificate, key } = order;
  return connect({ host, port, servername: sni, rejectUnauthorized: false, cert: certificate, key }, onOpen);
}

function hold(order: Held): Promise<string> {
  const state = { echoes: 0, isClosed: false };
  return new Promise((resolve) => {
    const socket = open(order, () => socket.write('.'));
    held.set(order.name, state);
    letGo.set(order.name, () => socket.destroy());
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

function connectBy(order: Extract<Order, { do: 'connect' }>): Promise<string> {
  const { address, port, sni, authority, certificate: cert, key, protocol, target } = order;
  return new Promise((resolve) => {
    const session = connectHttp2(`https://${address}:${port}`, {
      ...{ cert, key, servername: sni, rejectUnauthorized: false },
    });
    const end = (text: string) => {
      resolve(text);
      session.destroy();
    };
    session.on('error', (error: NodeJS.ErrnoException) => end(`refused: ${error.code}`));
    session.on('close', () => end('refused: closed'));
    session.setTimeout(timeoutMs, () => end('timeout'));
    // An Envoy goes by the target in the path.
    const path = `/.well-known/masque/udp/${(target ?? authority).replace(/:(\d+)$/, '/$1')}/`;
    const extended = { ':protocol': protocol, ':scheme': 'https', ':path': path, 'capsule-protocol': '?1' };
    const more = protocol === undefined ? {} : extended;
    const ask = () => {
      const stream = session.request({ ':method': 'CONNECT', ':authority': authority, ...more });
      stream.on('error', () => end('refused: stream'));
      stream.on('response', (headers) => end(String(headers[':status'])));
    };
    // Whether it takes extended CONNECT the server says first; one that refuses us says nothing.
    if (protocol === undefined) ask();
    else session.once('remoteSettings', ask);
  });
}

const udpSockets = new Map<string, Promise<UdpSocket>>();

function udpSocket(): Promise<UdpSocket> {
  const socket = createUdpSocket('udp4');
  socket.on('error', () => {});
  return new Promise((resolve) => socket.bind(0, () => resolve(socket)));
}

function sendUdp(socket: UdpSocket, text: string, to: { address: string; port: number }): Promise<string> {
  return new Promise((resolve) => {
    const end = (answer: string) => {
      clearTimeout(timer);
      socket.removeAllListeners('message');
      resolve(answer);
    };
    const timer = setTimeout(() => end('none'), udpAnswerMs);
    socket.once('message', (message) => end(String(message)));
    socket.send(text, to.port, to.address);
  });
}

async function askUdp({ name, text, ...to }: Extract<Order, { do: 'askUdp' }>): Promise<string> {
  if (!udpSockets.has(name)) udpSockets.set(name, udpSocket());
  return sendUdp((await udpSockets.get(name))!, text, to);
}

async function manyUdp({ count, ...to }: Extract<Order, { do: 'manyUdp' }>): Promise<number> {
  let answered = 0;
  for (let left = count; left > 0; left -= 100) {
    const sockets = await Promise.all(Array.from({ length: Math.min(left, 100) }, udpSocket));
    const answers = await Promise.all(sockets.map((socket) => sendUdp(socket, 'hello', to)));
    answered += answers.filter((answer) => answer !== 'none').length;
  }
  return answered;
}

function serveUdp({ name, address, port }: Extract<Order, { do: 'serveUdp' }>): Promise<string> {
  const server = createUdpSocket('udp4');
  server.on('message', (message, from) => {
    const wanted = Number(/^send (\d+)$/.exec(String(message))?.[1] ?? 0);
    const answer = wanted > 0 ? 'x'.repeat(wanted) : `${name} ${message.length}`;
    server.send(answer, from.port, from.address);
  });
  return new Promise((resolve) => server.bind(port, address, () => resolve('ready')));
}

const flooding: ClientHttp2Session[] = [];
const streamsOfOne = 1000;

async function flood(order: Extract<Order, { do: 'flood' }>): Promise<Record<string, number>> {
  const { address, port, sni, authority, certificate: cert, key, streams } = order;
  const seen: Record<string, number> = {};
  const count = (what: string) => (seen[what] = (seen[what] ?? 0) + 1);
  for (let left = streams; left > 0; left -= streamsOfOne) {
    const session = connectHttp2(`https://${address}:${port}`, {
      ...{ cert, key, servername: sni, rejectUnauthorized: false },
    });
    flooding.push(session);
    session.on('error', () => {});
    const open = () =>
      new Promise<void>((resolve) => {
        const stream = session.request({ ':method': 'CONNECT', ':authority': authority });
        const end = (what: string) => {
          clearTimeout(timer);
          stream.removeAllListeners('response').removeAllListeners('close');
          count(what);
          resolve();
        };
        const timer = setTimeout(() => end('waiting'), timeoutMs);
        stream.on('error', () => {});
        stream.on('response', (headers) => end(String(headers[':status'])));
        stream.on('close', () => end('closed'));
      });
    await Promise.all(Array.from({ length: Math.min(left, streamsOfOne) }, open));
  }
  return seen;
}

function endFlood(): string {
  for (const session of flooding.splice(0)) session.destroy();
  return 'ended';
}

function beSilent(order: Extract<Order, { do: 'silent' }>): Promise<number | string> {
  const { address: host, port, sni: servername, certificate: cert, key, hex, giveUpMs } = order;
  return new Promise((resolve) => {
    const startMs = performance.now();
    const send = () => void (hex !== '' && socket.write(Buffer.from(hex, 'hex')));
    const socket = cert
      ? connect({ host, port, servername, cert, key, rejectUnauthorized: false, ALPNProtocols: ['h2'] }, send)
      : connectTcp({ host, port }, send);
    const timer = setTimeout(() => {
      resolve('open');
      socket.destroy();
    }, giveUpMs);
    socket.on('data', () => {});
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(performance.now() - startMs);
    });
  });
}

export interface Loaded {
  readonly count: number;
  readonly slowestMs: number;
  readonly answers: Readonly<Record<string, number>>;
  /** By the wall clock, when each was sent and when it had failed. */
  readonly failures: readonly { readonly atMs: number; readonly endMs: number; readonly error: string }[];
  /** When the slow ones were sent, and how long they took. */
  readonly slow: readonly { readonly atMs: number; readonly tookMs: number }[];
}

interface Load {
  isOver: boolean;
  count: number;
  slowestMs: number;
  readonly answers: Record<string, number>;
  readonly failures: Loaded['failures'][number][];
  readonly slow: Loaded['slow'][number][];
}

const loads = new Map<string, Load & { readonly done: Promise<unknown> }>();
const slowMs = 1000;
const listedMax = 10_000;

function startLoad({ to, lanes, name = '', keptMs }: Extract<Order, { do: 'load' }>): string {
  const state: Load = { isOver: false, count: 0, slowestMs: 0, answers: {}, failures: [], slow: [] };
  const lane = async () => {
    let agent: Agent | false = false;
    let sinceMs = 0;
    while (!state.isOver) {
      const atMs = Date.now();
      if (keptMs !== undefined && atMs - sinceMs > keptMs) {
        if (agent) agent.destroy();
        agent = new Agent({ keepAlive: true, maxSockets: 1 });
        sinceMs = atMs;
      }
      const answer = await ask(to, agent);
      const endMs = Date.now();
      state.count += 1;
      state.slowestMs = Math.max(state.slowestMs, endMs - atMs);
      if (endMs - atMs > slowMs && state.slow.length < listedMax) state.slow.push({ atMs, tookMs: endMs - atMs });
      if (!answer.startsWith('failed')) state.answers[answer] = (state.answers[answer] ?? 0) + 1;
      else if (state.failures.length < listedMax) state.failures.push({ atMs, endMs, error: answer });
      if (keptMs !== undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    if (agent) agent.destroy();
  };
  loads.set(name, Object.assign(state, { done: Promise.all(Array.from({ length: lanes }, lane)) }));
  return 'ready';
}

async function endLoad(name = ''): Promise<Loaded> {
  const load = loads.get(name)!;
  load.isOver = true;
  await load.done;
  const { count, slowestMs, answers, failures, slow } = load;
  return { count, slowestMs, answers, failures, slow };
}

async function follow(order: Order): Promise<unknown> {
  if (order.do === 'get' || order.do === 'post') return ask(order.to, false, order.do.toUpperCase());
  if (order.do === 'tls') return tls(order);
  if (order.do === 'serveUdp') return serveUdp(order);
  if (order.do === 'askUdp') return askUdp(order);
  if (order.do === 'manyUdp') return manyUdp(order);
  if (order.do === 'hold' || order.do === 'holdPlain') return hold(order);
  if (order.do === 'letGo') return void letGo.get(order.name)?.();
  if (order.do === 'connect') return connectBy(order);
  if (order.do === 'flood') return flood(order);
  if (order.do === 'endFlood') return endFlood();
  if (order.do === 'silent') return beSilent(order);
  if (order.do === 'load') return startLoad(order);
  if (order.do === 'loaded') return endLoad(order.name);
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
