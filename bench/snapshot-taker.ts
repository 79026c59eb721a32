// A client of `npm run bench:snapshot` in a thread of its own, so that reading a snapshot does not delay the requests that
// are measured beside it.

import { parentPort, workerData } from 'node:worker_threads';
import { readSnapshot } from '../src/home/snapshot/read.ts';
import { connect } from '../test/support/api-process.ts';

const connection = await connect(workerData as string);
parentPort!.on('message', async () => {
  const startedMs = performance.now();
  const stream = connection.post('/snapshots');
  stream.end();
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const seconds = (performance.now() - startedMs) / 1000;
  const read = await readSnapshot(chunks, {});
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
  parentPort!.postMessage({ seconds, bytes, entries: read.kind === 'read' ? read.entries : 0 });
});
