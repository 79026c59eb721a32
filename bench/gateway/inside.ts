// The part of `bench:gateway` inside a network namespace: servers that say on which address they were reached, and clients that count.
// Takes orders as lines of JSON and answers each with a line of JSON, one after the other.

import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';

export interface Target {
  readonly address: string;
  readonly port: number;
  readonly isTls?: boolean;
}

export type Order =
  | ({ readonly do: 'serve' } & Omit<Target, 'isTls'> & { readonly certificate?: string; readonly key?: string })
  /** Requests on connections that are kept, or each on a new connection, or one answer without end. */
  | ({ readonly do: 'kept' | 'fresh' | 'bulk'; readonly lanes: number; readonly forMs: number } & Target)
  /** Asks on new connections until this is the answer; an empty one if the connection is closed without any. */
  | ({ readonly do: 'until'; readonly answer: string; readonly withinMs: number } & Target);

export interface Counted {
  readonly count: number;
  readonly failed: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Bulk {
  readonly megabytesPerSecond: number;
}

const request = Buffer.from('GET / HTTP/1.1\r\nhost: bench\r\n\r\n');
const bulkRequest = Buffer.from('GET /bulk HTTP/1.1\r\nhost: bench\r\n\r\n');
const piece = Buffer.alloc(256 * 1024);
const answerMs = 5000;

function onClient(socket: Socket): void {
  const body = `${socket.localAddress}`;
  const answer = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  const fill = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    if (!chunk.includes('/bulk')) return void socket.write(answer);
    socket.on('drain', fill);
    fill();
  });
}

function serve({ address, port, certificate: cert, key }: Extract<Order, { do: 'serve' }>): Promise<string> {
  const server: Server = cert ? createTlsServer({ cert, key }, onClient) : createServer(onClient);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address, port, backlog: 4096 }, () => resolve('ready'));
  });
}

function open({ address: host, port, isTls = false }: Target, onOpen: () => void): Socket {
  if (isTls) return connectTls({ host, port, rejectUnauthorized: false, minVersion: 'TLSv1.3' }, onOpen);
  return connectTcp({ host, port, noDelay: true }, onOpen);
}

/** The body of the answer; empty if there is none. */
function askOnce(target: Target): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = open(target, () => socket.write(request));
    socket.setTimeout(answerMs, () => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text = String(chunk).split('\r\n\r\n')[1] ?? '';
      socket.destroy();
    });
    socket.on('close', () => resolve(text));
  });
}

async function fresh(target: Target, endMs: number, onAnswer: (tookMs: number, isGood: boolean) => void) {
  while (performance.now() < endMs) {
    const startMs = performance.now();
    const text = await askOnce(target);
    onAnswer(performance.now() - startMs, text !== '');
  }
}

function kept(target: Target, endMs: number, onAnswer: (tookMs: number, isGood: boolean) => void): Promise<void> {
  return new Promise((resolve) => {
    let startMs = 0;
    const ask = () => {
      startMs = performance.now();
      socket.write(request);
    };
    const socket = open(target, ask);
    socket.on('error', () => {});
    socket.on('data', () => {
      const nowMs = performance.now();
      onAnswer(nowMs - startMs, true);
      if (nowMs < endMs) ask();
      else socket.destroy();
    });
    socket.on('close', () => {
      if (performance.now() < endMs) onAnswer(0, false);
      resolve();
    });
  });
}

async function count(order: Extract<Order, { do: 'kept' | 'fresh' | 'bulk' }>): Promise<Counted> {
  const took: number[] = [];
  let failed = 0;
  const startMs = performance.now();
  const onAnswer = (ms: number, isGood: boolean) => {
    if (isGood) took.push(ms);
    else failed += 1;
  };
  const lane = order.do === 'kept' ? kept : fresh;
  await Promise.all(Array.from({ length: order.lanes }, () => lane(order, startMs + order.forMs, onAnswer)));
  const seconds = (performance.now() - startMs) / 1000;
  took.sort((one, other) => one - other);
  const at = (share: number) => took[Math.min(took.length - 1, Math.ceil(took.length * share) - 1)] ?? 0;
  return { count: took.length, failed, perSecond: took.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** From the first byte on. */
function bulk(order: Extract<Order, { do: 'kept' | 'fresh' | 'bulk' }>): Promise<Bulk> {
  return new Promise((resolve) => {
    let [bytes, startMs] = [0, 0];
    const socket = open(order, () => socket.write(bulkRequest));
    socket.on('error', () => {});
    socket.on('data', ({ length }) => {
      const nowMs = performance.now();
      if (startMs === 0) startMs = nowMs;
      bytes += length;
      if (nowMs - startMs < order.forMs) return;
      socket.destroy();
      resolve({ megabytesPerSecond: bytes / 1000 / (nowMs - startMs) });
    });
    socket.on('close', () => resolve({ megabytesPerSecond: 0 }));
  });
}

/** When the answer had come, by the wall clock. */
async function until(order: Extract<Order, { do: 'until' }>): Promise<{ readonly atMs?: number }> {
  const endMs = performance.now() + order.withinMs;
  while (performance.now() < endMs)
    if ((await askOnce(order)) === order.answer) return { atMs: performance.timeOrigin + performance.now() };
  return {};
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order;
  const work = { serve, until, bulk, kept: count, fresh: count }[order.do] as (order: Order) => Promise<unknown>;
  process.stdout.write(`${JSON.stringify(await work(order))}\n`);
}
