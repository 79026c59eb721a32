// `npm run bench:api`: how fast a home answers and how much it holds, beside plain puts into a real etcd on the same disk.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { Etcd3 } from 'etcd3';
import { findCommand, installCounterparts } from '../scripts/counterparts.mjs';
import { type ApiProcess, type Connection, connect, startApi } from '../test/support/api-process.ts';
import { type Figure, percentile, report } from './report.ts';

const services = '/api/v1/namespaces/bench/services';
const configMaps = '/api/v1/namespaces/bench/configmaps';
// Beside the checkout, not in /tmp, which may be memory: both sides must pay for the same disk.
const directory = mkdtempSync(`${import.meta.dirname}/.bench-`);
const figures: Figure[] = [];

installCounterparts();
try {
  const api = await startApi({ data: `${directory}/api` });
  try {
    await measureApi(api);
  } finally {
    await api.stop();
  }
  await measureMemory();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
report('A home for facts', figures);

async function measureApi(api: ApiProcess): Promise<void> {
  const wanted = 'under 1,000 ms';
  figures.push({ name: 'start-up on an empty folder, to the first answer', value: api.readyMs, unit: 'ms' });
  await api.stop();
  const again = await startApi({ data: `${directory}/api` });
  figures.push({ name: 'start-up', value: again.readyMs, unit: 'ms', wanted, isMet: again.readyMs < 1000 });
  const emptyMb = residentMb(again.pid);
  figures.push({ name: 'memory, empty', value: emptyMb, unit: 'MB', wanted: 'under 120 MB', isMet: emptyMb < 120 });
  const connection = await connect(again.kubeconfig);
  await connection.request('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'bench' },
  });
  await warmUp(connection);
  figures.push({
    name: 'durable creates, one by one',
    value: await perSecond(1, 3000, (n) => create(connection, `one-${n}`)),
    unit: '/s',
  });
  await compareWithEtcd(connection);
  figures.push({ name: 'gets, 64 in flight', value: await perSecond(64, 4000, () => get(connection)), unit: '/s' });
  figures.push({
    name: 'pages of 500 listed, 4 in flight',
    value: await perSecond(4, 4000, () => page(connection)),
    unit: '/s',
  });
  await measureWatchers(connection, again.kubeconfig);
  connection.close();
  await again.stop();
}

// Alternating rounds, because the disk's speed drifts; the medians are compared.
async function compareWithEtcd(connection: Connection): Promise<void> {
  const etcd = await startEtcd();
  try {
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      ours.push(await perSecond(64, 3000, (n) => create(connection, `many-${round}-${n}`)));
      theirs.push(await perSecond(64, 3000, (n) => etcd.put(`/bench/${round}/${n}`)));
    }
    const creates = median(ours);
    const puts = median(theirs);
    figures.push({ name: 'etcd: plain puts, 64 in flight', value: puts, unit: '/s' });
    figures.push({
      name: 'durable creates, 64 in flight',
      value: creates,
      unit: '/s',
      wanted: "3 times etcd's puts",
      isMet: creates >= 3 * puts,
    });
    figures.push({ name: '  creates per put', value: creates / puts, unit: 'times' });
  } finally {
    await etcd.stop();
  }
}

async function measureWatchers(connection: Connection, kubeconfig: string): Promise<void> {
  const start = JSON.parse((await connection.request('GET', `${services}?limit=1`)).body.toString()).metadata
    .resourceVersion;
  const readers = await Promise.all(Array.from({ length: 10 }, () => connect(kubeconfig)));
  const arrivals = new Map<string, { count: number; lastAt: number; done: () => void }>();
  const streams = readers.flatMap((reader) =>
    Array.from({ length: 10 }, () => reader.stream(`${services}?watch=true&resourceVersion=${start}`)),
  );
  for (const stream of streams) {
    stream.setEncoding('utf8');
    let rest = '';
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() as string;
      for (const line of lines) note(line, arrivals);
    });
  }
  await new Promise((resolve) => setTimeout(resolve, 500));
  const delays: number[] = [];
  for (let n = 0; n < 300; n += 1) {
    const name = `watched-${n}`;
    const all = Promise.withResolvers<void>();
    arrivals.set(name, { count: 0, lastAt: 0, done: all.resolve });
    const writtenAt = performance.now();
    await create(connection, name);
    await all.promise;
    delays.push((arrivals.get(name) as { lastAt: number }).lastAt - writtenAt);
  }
  delays.sort((one, other) => one - other);
  const p99 = percentile(delays, 0.99);
  figures.push({ name: 'write to the last of 100 watchers, p50', value: percentile(delays, 0.5), unit: 'ms' });
  figures.push({
    name: 'write to the last of 100 watchers, p99',
    value: p99,
    unit: 'ms',
    wanted: 'under 50 ms',
    isMet: p99 < 50,
  });
  for (const reader of readers) reader.close();
}

function note(line: string, arrivals: Map<string, { count: number; lastAt: number; done: () => void }>): void {
  const name = /"name":"([^"]+)"/.exec(line)?.[1] ?? '';
  const arrival = arrivals.get(name);
  if (arrival === undefined) return;
  arrival.count += 1;
  arrival.lastAt = performance.now();
  if (arrival.count === 100) arrival.done();
}

async function measureMemory(): Promise<void> {
  const data = `${directory}/large`;
  const api = await startApi({ data });
  const connection = await connect(api.kubeconfig);
  await connection.request('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'bench' },
  });
  await inFlight(64, 100_000, (n) => create(connection, `service-${n}`));
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const afterWritingMb = residentMb(api.pid);
  figures.push({
    name: 'memory, 100,000 Services, just written',
    value: afterWritingMb,
    unit: 'MB',
    wanted: 'under 600 MB',
    isMet: afterWritingMb < 600,
  });
  connection.close();
  await api.stop();
  const again = await startApi({ data });
  const restartedMb = residentMb(again.pid);
  figures.push({
    name: 'memory, 100,000 Services, after a restart',
    value: restartedMb,
    unit: 'MB',
    wanted: 'under 600 MB',
    isMet: restartedMb < 600,
  });
  figures.push({ name: 'start-up with 100,000 Services', value: again.readyMs, unit: 'ms' });
  await again.stop();
}

async function create(connection: Connection, name: string): Promise<void> {
  const { status, body } = await connection.request('POST', services, service(name));
  if (status !== 201) throw new Error(`create ${name}: ${status} ${body}`);
}

async function get(connection: Connection): Promise<void> {
  const { status } = await connection.request('GET', `${services}/one-1`);
  if (status !== 200) throw new Error(`get: ${status}`);
}

async function page(connection: Connection): Promise<void> {
  const { status } = await connection.request('GET', `${services}?limit=500`);
  if (status !== 200) throw new Error(`list: ${status}`);
}

async function warmUp(connection: Connection): Promise<void> {
  await inFlight(16, 2000, (n) =>
    connection.request('POST', configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `warm-${n}` } }),
  );
}

function service(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'bench', labels: { app: name, team: 'bench' } },
    spec: {
      selector: { app: name },
      ports: [
        { name: 'http', port: 80, targetPort: 8080 },
        { name: 'metrics', port: 9090 },
      ],
    },
  };
}

/** Runs `act` again and again for some seconds with so many at once, and says how many ended in a second. */
async function perSecond(width: number, lastsMs: number, act: (n: number) => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  let n = 0;
  const one = async () => {
    while (performance.now() - startedAt < lastsMs) await act((n += 1));
  };
  await Promise.all(Array.from({ length: width }, one));
  return (n / (performance.now() - startedAt)) * 1000;
}

async function inFlight(width: number, count: number, act: (n: number) => Promise<unknown>): Promise<void> {
  let n = 0;
  const one = async () => {
    while (n < count) await act((n += 1));
  };
  await Promise.all(Array.from({ length: width }, one));
}

async function startEtcd(): Promise<{ put(key: string): Promise<unknown>; stop(): Promise<void> }> {
  const path = findCommand('etcd');
  if (path === undefined) throw new Error('bench: no etcd here to compare with; install etcd-server');
  const data = `${directory}/etcd`;
  mkdirSync(data, { mode: 0o700 });
  const [client, peer] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const args = [
    '--data-dir',
    data,
    '--listen-client-urls',
    url,
    '--advertise-client-urls',
    url,
    '--listen-peer-urls',
    peerUrl,
  ];
  const child = spawn(
    path,
    [...args, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `default=${peerUrl}`],
    { stdio: 'ignore' },
  );
  const etcd = new Etcd3({ hosts: url });
  await untilAnswers(etcd, child);
  const value = JSON.stringify(service('x'.repeat(20)));
  return {
    put: (key) => etcd.put(key).value(value).exec(),
    stop: async () => {
      etcd.close();
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
    },
  };
}

async function untilAnswers(etcd: Etcd3, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    try {
      await etcd.put('/bench/ready').value('yes');
      return;
    } catch {
      if (child.exitCode !== null) throw new Error(`bench: etcd exited with ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error('bench: etcd did not answer in 10 s');
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((one, other) => one - other),
    0.5,
  );
}
