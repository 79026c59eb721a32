import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { createRealWorld } from '../../base/real/world.ts';
import { serviceType } from '../objects/service.ts';
import { createClient } from './client.ts';

/** A home in a thread of its own counts requests while this one is busy. */
const home = `
const { createServer } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');
const asked = new Int32Array(workerData);
const server = createServer((request, response) => {
  const page = Atomics.add(asked, 0, 1) + 1;
  Atomics.notify(asked, 0);
  const next = page < 3 ? { continue: String(page) } : {};
  response.end(JSON.stringify({ metadata: { resourceVersion: '1', ...next }, items: [] }));
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

test('client: a page is being read -> the home has been asked for the next one', async () => {
  const asked = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(home, { eval: true, workerData: asked.buffer });
  const [port] = (await once(worker, 'message')) as [number];
  const world = createRealWorld();
  const client = createClient(world.network.http({ server: `http://127.0.0.1:${port}` }), { world, userAgent: 'test' });
  const seen: number[] = [];
  for await (const { metadata } of client.listPaged(serviceType)) {
    if (metadata.continue !== undefined) Atomics.wait(asked, 0, seen.length + 1, 5000);
    seen.push(Atomics.load(asked, 0));
  }
  client.close();
  await worker.terminate();
  expect(seen).toEqual([2, 3, 3]);
});
