// `npm run bench:peering`: how fast catalogs travel, over mutual TLS on the loopback, owner and consumer in two processes.
// `--quick` shortens the strict run, which waits 20 ms for each service; `--only=distance` runs one part of it.
// `--scale=0.01` takes that share of every count, to see that all of it still runs; its figures mean nothing.

import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { peerDefaults } from '../src/peering/kinds/peer.ts';
import { meshOf } from '../src/peering/testing/edge/mesh.ts';
import { type BenchAccess, storingConsumer } from './peering-consumer.ts';
import { lightConsumer } from './peering-light-consumer.ts';
import type { Order } from './peering-owner.ts';
import { type Figure, percentile, report } from './report.ts';

const isQuick = process.argv.includes('--quick');
const only = process.argv.find((word) => word.startsWith('--only='))?.slice('--only='.length);
const scale = Number(process.argv.find((word) => word.startsWith('--scale='))?.slice('--scale='.length) ?? 1);
const scaled = (count: number) => Math.max(2, Math.round(count * scale));
const consumersMax = scaled(50);
const burstConsumers = Math.min(10, consumersMax);
const defaultWindow = peerDefaults.window;
const ownerMesh = meshOf('owner.example');
const consumerMeshes = Array.from({ length: consumersMax }, (_, n) => meshOf(`c${n}.example`));
const figures: Figure[] = [];

const child: ChildProcess = fork(fileURLToPath(new URL('peering-owner.ts', import.meta.url)));
function tell<T = void>(order: Order): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve((message as { result: T }).result));
    child.removeAllListeners('exit');
    child.once('exit', (code) => reject(new Error(`the owner exited with ${code}`)));
    child.send(order);
  });
}

function accessOf(n: number, port: number): BenchAccess {
  const { certificate, key } = consumerMeshes[n]!.issue();
  return { address: `https://127.0.0.1:${port}`, certificate, key, root: ownerMesh.certificate };
}

const peersUpTo = (count: number) => Array.from({ length: count }, (_, n) => `c${n}`);
const roots = Object.fromEntries(consumerMeshes.map(({ domain, certificate }) => [domain, certificate]));
const port = await tell<number>({ kind: 'start', ...ownerMesh.issue(), roots });
const consumer = await storingConsumer();

async function fullSync(services: number, wantedS?: number): Promise<void> {
  await tell({ kind: 'fill', services, window: defaultWindow, peers: ['c0'] });
  const before = process.cpuUsage();
  const seconds = (await consumer.sync(accessOf(0, port), services)) / 1000;
  const { user, system } = process.cpuUsage(before);
  figures.push({
    name: `full sync of ${services} services, stored and acknowledged`,
    value: seconds,
    unit: 's',
    ...(wantedS === undefined ? {} : { wanted: `${wantedS} s`, isMet: seconds <= wantedS }),
  });
  figures.push({ name: '  of which the consumer and its home computed', value: (user + system) / 1e6, unit: 's' });
}

async function overDistance(services: number, window: number, wantedS?: number): Promise<void> {
  const relay = await slowRelay(port, 10);
  await tell({ kind: 'fill', services, window, peers: ['c0'] });
  const seconds = (await consumer.sync(accessOf(0, relay.port), services)) / 1000;
  relay.close();
  figures.push({
    name: `${services} services at 20 ms round trip, ${window === 1 ? 'strict' : `window ${window}`}`,
    value: seconds,
    unit: 's',
    ...(wantedS === undefined ? {} : { wanted: `${wantedS} s`, isMet: seconds <= wantedS }),
  });
}

/** The cost of an owner that waits for each answer, beside the least that a disk needs for as many durable writes. */
async function stopAndWait(services: number): Promise<void> {
  await tell({ kind: 'fill', services, window: 1, peers: ['c0'] });
  const seconds = (await consumer.sync(accessOf(0, port), services)) / 1000;
  const floor = (services * syncedWriteMs()) / 1000;
  figures.push({
    name: `${services} services of a stop-and-wait owner, each stored, then acknowledged`,
    value: seconds,
    unit: 's',
  });
  figures.push({
    name: `  ${services} bare writes with fdatasync on the same disk, one after the other`,
    value: floor,
    unit: 's',
  });
  figures.push({ name: '  times the bare writes', value: seconds / floor, unit: 'times' });
}

function syncedWriteMs(): number {
  const folder = mkdtempSync(join(tmpdir(), 'bench-sync-'));
  const file = openSync(join(folder, 'log'), 'w');
  const writes = 200;
  const startMs = performance.now();
  for (let n = 0; n < writes; n += 1) {
    writeSync(file, Buffer.alloc(600));
    fdatasyncSync(file);
  }
  const eachMs = (performance.now() - startMs) / writes;
  closeSync(file);
  rmSync(folder, { recursive: true });
  return eachMs;
}

async function fanOut(): Promise<void> {
  const services = scaled(1000);
  await tell({ kind: 'fill', services, window: defaultWindow, peers: peersUpTo(consumersMax) });
  const accesses = peersUpTo(consumersMax).map((_, n) => accessOf(n, port));
  const startMs = performance.now();
  const all = accesses.map(lightConsumer);
  await Promise.all(all.map(({ synced }) => synced));
  const seconds = (performance.now() - startMs) / 1000;
  figures.push({ name: `${services} services to ${consumersMax} consumers`, value: seconds, unit: 's' });
  for (const one of all) one.stop();
}

async function burst(): Promise<void> {
  const services = scaled(1000);
  const updates = 20 * services;
  await tell({ kind: 'fill', services, window: defaultWindow, peers: peersUpTo(burstConsumers) });
  const all = peersUpTo(burstConsumers).map((_, n) => lightConsumer(accessOf(n, port)));
  await Promise.all(all.map(({ synced }) => synced));
  const before = all.reduce((sum, { messages }) => sum + messages(), 0);
  const startMs = performance.now();
  await tell({ kind: 'burst', updates, services });
  const newest = updates - services;
  const isFinal = () => all.every(({ held }) => [...held.values()].every((text) => Number(text.slice(7)) >= newest));
  while (!isFinal() && performance.now() - startMs < 60_000) await new Promise((resolve) => setTimeout(resolve, 5));
  const seconds = (performance.now() - startMs) / 1000;
  const states = new Set(all.map(({ held }) => JSON.stringify([...held].sort())));
  const messages = all.reduce((sum, one) => sum + one.messages(), 0) - before;
  figures.push({
    name: `burst of ${updates} updates of ${services} services to ${burstConsumers} consumers`,
    value: seconds,
    unit: 's',
  });
  figures.push({
    name: 'after the burst: different final states among all of them',
    value: states.size,
    unit: 'state',
    wanted: 'the same final state',
    isMet: states.size === 1 && isFinal(),
  });
  const unfolded = updates * burstConsumers;
  figures.push({
    name: `messages sent for the burst, of ${unfolded} without folding`,
    value: messages,
    unit: 'messages',
  });
  for (const one of all) one.stop();
}

async function singleUpdates(): Promise<void> {
  await tell({ kind: 'fill', services: Math.max(100, scaled(1000)), window: defaultWindow, peers: ['c0'] });
  await consumer.open(accessOf(0, port));
  await tell({ kind: 'single', updates: 200, peer: 'c0' });
  const times = (await tell<number[]>({ kind: 'single', updates: scaled(1000), peer: 'c0' })).sort(
    (one, other) => one - other,
  );
  await consumer.close();
  const p99 = percentile(times, 0.99);
  figures.push({ name: 'single update, changed to acknowledged, p50', value: percentile(times, 0.5), unit: 'ms' });
  figures.push({
    ...{ name: 'single update, changed to acknowledged, p99', value: p99, unit: 'ms' },
    ...{ wanted: 'under 10 ms', isMet: p99 < 10 },
  });
}

/** Passes bytes on after a delay, in each direction. */
async function slowRelay(target: number, delayMs: number): Promise<{ port: number; close(): void }> {
  const relay = net.createServer((near) => {
    const far = net.connect(target, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (chunk) => setTimeout(() => to.write(chunk), delayMs));
      from.on('close', () => setTimeout(() => to.destroy(), delayMs));
      from.on('error', () => {});
    }
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  return { port: (relay.address() as net.AddressInfo).port, close: () => void relay.close() };
}

const parts: Record<string, () => Promise<void>> = {
  small: () => fullSync(scaled(4096)),
  large: () => fullSync(scaled(50_000), 10),
  distance: () => overDistance(scaled(10_000), defaultWindow, 2),
  stopAndWait: () => stopAndWait(scaled(isQuick ? 1000 : 4096)),
  strict: () => overDistance(scaled(isQuick ? 500 : 10_000), 1),
  fanOut,
  burst,
  single: singleUpdates,
};

try {
  for (const [name, run] of Object.entries(parts)) if (only === undefined || only === name) await run();
  report('peering', figures);
} finally {
  child.disconnect();
  await consumer.stop();
}
process.exit(0);
