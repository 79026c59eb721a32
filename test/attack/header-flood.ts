// A thread that sends heavy headers over 60 HTTP/2 connections for some seconds, opening each again when it is ended.

import http2 from 'node:http2';
import { parentPort, workerData } from 'node:worker_threads';

export interface FloodOptions {
  readonly port: number;
  readonly forMs: number;
}

const connections = 60;
const streamsAtOnce = 50;

const { port, forMs } = workerData as FloodOptions;
const headers = Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`x-${n}`, 'y'.repeat(400)]));
const endMs = performance.now() + forMs;
let sent = 0;
let ended = 0;

async function flood(): Promise<void> {
  while (performance.now() < endMs) {
    const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    const closed = new Promise((resolve) => session.once('close', resolve));
    session.on('error', () => {});
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(0, endMs - performance.now()));
    });
    const open = () => {
      if (session.destroyed || session.closed || performance.now() >= endMs) return;
      sent += 1;
      const stream = session.request({ ':path': '/livez', ...headers });
      stream.on('error', () => {});
      stream.on('close', open);
      stream.resume();
    };
    for (let count = 0; count < streamsAtOnce; count++) open();
    await Promise.race([closed.then(() => (ended += 1)), over]);
    clearTimeout(timer);
    session.destroy();
  }
}

await Promise.all(Array.from({ length: connections }, flood));
parentPort!.postMessage({ sent, ended });
