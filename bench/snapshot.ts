// `npm run bench:snapshot`: how long a snapshot of a real home takes, and how long a request waits at most meanwhile.
// `--objects 100000` is how many it holds, `--rounds 3` takes the median of so many.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { type Connection, connect, startApi } from '../test/support/api-process.ts';
import { inFlight, median } from './api/load.ts';
import { type Figure, report } from './report.ts';

const wantedSeconds = 2;
const wantedHoldMs = 50;
const probeEveryMs = 2;

const { values } = parseArgs({
  options: { objects: { type: 'string', default: '100000' }, rounds: { type: 'string', default: '3' } },
});

const directory = mkdtempSync(`${import.meta.dirname}/.bench-`);
const api = await startApi({ data: `${directory}/data`, args: ['--log-level', 'error', '--snapshots', 'none'] });
try {
  const prober = await connect(api.kubeconfig);
  await fill(prober, Number(values.objects));
  const taker = new Worker(new URL('./snapshot-taker.ts', import.meta.url), { workerData: api.kubeconfig });
  const rounds = [];
  for (let round = 0; round < Number(values.rounds); round++) rounds.push(await measure(taker, prober));
  const seconds = median(rounds.map((one) => one.seconds));
  const heldMs = median(rounds.map((one) => one.heldMs));
  const beforeMs = median(rounds.map((one) => one.beforeMs));
  const megabytes = rounds[0]!.bytes / 1e6;
  const objects = `${values.objects} objects`;
  const figures: Figure[] = [
    {
      name: `snapshot of ${objects}`,
      value: seconds,
      unit: 's',
      wanted: `${wantedSeconds} s`,
      isMet: seconds <= wantedSeconds,
    },
    {
      name: 'longest wait of a request meanwhile',
      value: heldMs,
      unit: 'ms',
      wanted: `${wantedHoldMs} ms (${beforeMs.toFixed(0)} ms as long before it)`,
      isMet: heldMs <= wantedHoldMs,
    },
    { name: 'size', value: megabytes, unit: 'MB' },
  ];
  report('A snapshot of a home', figures);
  await taker.terminate();
  prober.close();
} finally {
  await api.stop('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}

async function measure(taker: Worker, prober: Connection) {
  const waitsBefore = probing(prober);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const beforeMs = await waitsBefore.stop();
  const waits = probing(prober);
  taker.postMessage('take');
  const [taken] = (await once(taker, 'message')) as [{ seconds: number; bytes: number; entries: number }];
  const heldMs = await waits.stop();
  if (taken.entries < Number(values.objects)) throw new Error('the snapshot is not whole');
  return { ...taken, heldMs, beforeMs };
}

/** Reads one object again and again; resolves to the longest wait. */
function probing(prober: Connection): { stop(): Promise<number> } {
  let isStopped = false;
  let longestMs = 0;
  const done = (async () => {
    while (!isStopped) {
      const startedMs = performance.now();
      await prober.request('GET', '/api/v1/namespaces/default');
      longestMs = Math.max(longestMs, performance.now() - startedMs);
      await new Promise((resolve) => setTimeout(resolve, probeEveryMs));
    }
  })();
  return {
    stop: async () => {
      isStopped = true;
      await done;
      return longestMs;
    },
  };
}

/** ConfigMaps of about a kilobyte. */
async function fill(connection: Connection, count: number): Promise<void> {
  let made = 0;
  await inFlight(200, count, async () => {
    const metadata = { name: `map-${made++}`, labels: { team: 'bench' } };
    const { status } = await connection.request('POST', '/api/v1/namespaces/default/configmaps', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata },
      data: { a: 'x'.repeat(800) },
    });
    if (status !== 201) throw new Error(`creating was answered with ${status}`);
  });
}
