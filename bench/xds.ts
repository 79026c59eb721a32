// `npm run bench:xds`: the discovery server on a home in memory, proxies in a process of their own, by mutual TLS.
// Each change is written to the home and timed until the last proxy has it. `--scale=0.1` takes that share of every count,
// to see that all of it still runs.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createRealWorld } from '../src/base/real/world.ts';
import { meshExternalServiceType } from '../src/external/kinds/mesh-external-service.ts';
import { namespace } from '../src/peering/testing/edge/memory-home.ts';
import { issueProxy, openAuthority } from '../src/xds/identity/authority.ts';
import { parseNodeId } from '../src/xds/identity/proxy-identity.ts';
import type { Variant } from '../src/xds/resource.ts';
import { addImport, cluster, putEndpoints, startXdsTest, type XdsTest } from '../test/support/xds.ts';
import { type Figure, percentile, report } from './report.ts';
import type { BenchIdentity, ProxyOrder } from './xds-proxies.ts';

const scale = Number(process.argv.find((word) => word.startsWith('--scale='))?.slice('--scale='.length) ?? 1);
const scaled = (count: number) => Math.max(2, Math.round(count * scale));
const clusters = scaled(10_000);
const few = scaled(1000);
const proxyCount = scaled(100);
const changes = scaled(200);
const changeMsMax = 50;
setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void;
const nowMs = () => performance.timeOrigin + performance.now();
const figures: Figure[] = [];
/** Every change must differ from what is there. */
let turn = 0;

const child = fork(fileURLToPath(new URL('xds-proxies.ts', import.meta.url)));
let onMessage: (message: { kind: string; result?: unknown }) => void = () => {};
child.on('exit', (code) => {
  if (code !== null) throw new Error(`the proxies ended with ${code}`);
});
child.on('message', (message) => onMessage(message as { kind: string; result?: unknown }));

function tell<T>(order: ProxyOrder, onWaiting: () => void = () => {}): Promise<T> {
  return new Promise((resolve) => {
    onMessage = ({ kind, result }) => (kind === 'waiting' ? onWaiting() : resolve(result as T));
    child.send(order);
  });
}

const nameOf = (i: number) => `s${i}`;
const addressOf = (i: number, last: number) => `10.${(i >> 8) & 255}.${i & 255}.${last}`;
const ipOf = (i: number) => `241.0.${(i >> 8) & 255}.${i & 255}`;

async function fill(xds: XdsTest, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i += 100) {
    const some = Array.from({ length: Math.min(100, to - i) }, (_, n) => i + n);
    await Promise.all(
      some.map(async (n) => {
        await addImport(xds.client, { name: nameOf(n), ips: [ipOf(n)], port: 80 });
        await change(xds, n, 1);
      }),
    );
  }
  const isFull = () => [...xds.role.service.views.clusterset.entries('cluster')].length >= to;
  while (!isFull()) await new Promise((resolve) => setTimeout(resolve, 50));
}

function change(xds: XdsTest, i: number, last: number): Promise<void> {
  return putEndpoints(xds.client, { name: nameOf(i) }, 'east', { port: 8080, addresses: [addressOf(i, last)] });
}

async function sentBytes(xds: XdsTest): Promise<number> {
  const text = await xds.metrics.text();
  return [...text.matchAll(/^portolan_xds_response_bytes_total\{.*\} (\d+)/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
}

async function connect(xds: XdsTest, variant: Variant, names: readonly string[], total: number): Promise<number> {
  const who = await identities(xds, names);
  const startedMs = nowMs();
  const order = {
    kind: 'connect',
    ...who,
    variant,
    type: 'listener',
    resources: total + 1,
  } as const;
  const times = await tell<number[]>(order);
  return Math.max(...times) - startedMs;
}

/** Certificates for all of them, and where they connect to. */
async function identities({ client, role }: XdsTest, names: readonly string[]) {
  const options = { world: createRealWorld(), home: client, namespace, cluster };
  const authority = await openAuthority(options);
  const proxies = names.map((id): BenchIdentity => ({ id, ...issueProxy(options, authority, parseNodeId(id)!) }));
  return { proxies, server: { target: `https://127.0.0.1:${role.port}`, authority: authority.certificate } };
}

/** Milliseconds until each proxy, and the last one, has a change. */
async function timeChanges(xds: XdsTest, count: number): Promise<{ each: number[]; last: number[] }> {
  const each: number[] = [];
  const last: number[] = [];
  for (let i = 0; i < count; i++) {
    let startedMs = 0;
    const times = await tell<number[]>({ kind: 'arrivals', type: 'endpoints', count: 1 }, () => {
      startedMs = nowMs();
      turn += 1;
      void change(xds, (turn * 37) % few, 2 + (turn % 250));
    });
    const took = times.map((at) => at - startedMs);
    each.push(...took);
    last.push(Math.max(...took));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return { each: each.sort((a, b) => a - b), last: last.sort((a, b) => a - b) };
}

async function measureChanges(xds: XdsTest, label: string): Promise<number> {
  await timeChanges(xds, 20);
  const before = await sentBytes(xds);
  const { each, last } = await timeChanges(xds, changes);
  const bytes = ((await sentBytes(xds)) - before) / (changes * proxyCount);
  const p99 = percentile(last, 0.99);
  figures.push({ name: `${label}: one endpoint's change, each proxy, p50`, value: percentile(each, 0.5), unit: 'ms' });
  figures.push({
    name: `${label}: until the last of ${proxyCount} proxies, p50`,
    value: percentile(last, 0.5),
    unit: 'ms',
  });
  const wanted = { wanted: `under ${changeMsMax} ms`, isMet: p99 < changeMsMax };
  figures.push({ name: `${label}: until the last of ${proxyCount} proxies, p99`, value: p99, unit: 'ms', ...wanted });
  figures.push({ name: `${label}: bytes of that change for one proxy`, value: bytes, unit: 'bytes' });
  return bytes;
}

async function measure(xds: XdsTest, variant: Variant, total: number): Promise<number> {
  const label = `${variant}, ${total} clusters`;
  const fresh = await connect(xds, variant, [`sidecar~east~${variant}-${total}-first`], total);
  figures.push({ name: `${label}: first configuration, nothing proven yet`, value: fresh, unit: 'ms' });
  await tell({ kind: 'leave' });
  const proven = await connect(xds, variant, [`sidecar~east~${variant}-${total}-second`], total);
  figures.push({ name: `${label}: first configuration of the next proxy`, value: proven, unit: 'ms' });
  await tell({ kind: 'leave' });
  await new Promise((resolve) => setTimeout(resolve, 200));
  collect();
  const before = process.memoryUsage();
  const names = Array.from({ length: proxyCount }, (_, n) => `sidecar~east~${variant}-${total}-${n}`);
  const all = await connect(xds, variant, names, total);
  figures.push({ name: `${label}: first configuration of ${proxyCount} proxies at once`, value: all, unit: 'ms' });
  await new Promise((resolve) => setTimeout(resolve, 500));
  collect();
  const after = process.memoryUsage();
  const used = after.heapUsed + after.external - before.heapUsed - before.external;
  figures.push({ name: `${label}: memory for each proxy`, value: used / proxyCount / 1024, unit: 'KiB' });
  const bytes = await measureChanges(xds, label);
  await tell({ kind: 'leave' });
  return bytes;
}

const rules = scaled(1000);
const ruleMsMax = 500;

function addRule(xds: XdsTest, i: number): Promise<unknown> {
  const match = [
    { type: 'IP', value: `192.${168 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`, port: 443, protocol: 'tls' },
  ];
  return xds.client.create(meshExternalServiceType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'MeshExternalService',
    metadata: { name: `rule-${i}`, namespace: 'portolan-system' },
    spec: { match, destination: { type: 'Regular', endpoints: [{ address: `198.51.100.${i % 250}`, port: 443 }] } },
  });
}

/** Rules share two listeners, which are sent whole: this is the price of one more among many. */
async function measureRules(): Promise<void> {
  const own = await startXdsTest();
  for (let i = 0; i < rules; i++) await addRule(own, i);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const names = Array.from({ length: scaled(100) }, (_, n) => `sidecar~east~rules-${n}`);
  const who = await identities(own, names);
  await tell({ kind: 'connect', ...who, variant: 'delta', type: 'listener', resources: 3 });
  const took: number[] = [];
  for (let i = 0; i < scaled(50); i++) {
    let startedMs = 0;
    const times = await tell<number[]>({ kind: 'arrivals', type: 'listener', count: 1 }, () => {
      startedMs = nowMs();
      void addRule(own, rules + i);
    });
    took.push(Math.max(...times) - startedMs);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  took.sort((a, b) => a - b);
  const p99 = percentile(took, 0.99);
  const title = `a rule added to ${rules}, until the last of ${names.length} proxies`;
  figures.push({ name: `${title}, p50`, value: percentile(took, 0.5), unit: 'ms' });
  const wanted = { wanted: `under ${ruleMsMax} ms`, isMet: p99 < ruleMsMax };
  figures.push({ name: `${title}, p99`, value: p99, unit: 'ms', ...wanted });
  await tell({ kind: 'leave' });
  await own.stop();
}

await measureRules();
const xds = await startXdsTest();
await fill(xds, 0, few);
const small = await measure(xds, 'delta', few);
await fill(xds, few, clusters);
const large = await measure(xds, 'delta', clusters);
await measure(xds, 'sotw', clusters);
const isSame = Math.abs(large - small) < 8;
const wanted = 'independent of the total';
figures.push({
  name: 'delta: bytes of a change, with ten times the clusters',
  value: large / small,
  unit: 'times',
  wanted,
  isMet: isSame,
});
report('xDS', figures);
child.kill();
await xds.stop();
process.exit(0);
