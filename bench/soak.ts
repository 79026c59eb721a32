// `npm run soak`: the demo for an hour and a quarter (ten minutes with `--quick`, `--minutes N`) under ten exports and unexports
// a second and a thousand DNS queries a second. Prints live heap, resident memory, files, open handles and watches as it goes. Events
// expire after an hour, and until then the heap grows with them; in the last quarter as many expire as are written.

import { spawn } from 'node:child_process';
import dgram from 'node:dgram';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { service, serviceExport } from '../sim/manifests.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { metricOf } from './growth/broker.ts';
import { type Figure, report } from './report.ts';

const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, minutes: { type: 'string' }, json: { type: 'string' } },
});
const minutes = Number(values.minutes ?? (values.quick ? 10 : 75));
const warmMinutes = Math.min(5, minutes / 2);
/** The first Events have expired. */
const steadyMinute = 62;
const world = createRealWorld();
const directory = mkdtempSync(`${import.meta.dirname}/.soak-`);
const probeFile = `${directory}/probe.json`;
const environment = {
  ...process.env,
  NODE_OPTIONS: `--import ${import.meta.dirname}/soak-probe.mjs`,
  PORTOLAN_SOAK_FILE: probeFile,
};
const portolan = `${import.meta.dirname}/../bin/portolan`;
const child = spawn(portolan, ['demo', '--dir', `${directory}/demo`], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: environment,
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
process.on('exit', () => {
  child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

let dnsPort = 0;
for await (const line of createInterface({ input: child.stdout })) {
  dnsPort ||= Number(/dig\b.* -p (\d+)/.exec(line)?.[1] ?? 0);
  if (line === 'ready' || (dnsPort > 0 && line.includes('ready'))) break;
}
child.stdout.resume();

const kubeconfig = findFile(`${directory}/demo`, /east.*kubeconfig$/);
const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
const client = createClient(world.network.http(access), { world, userAgent: 'soak' });
await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'soak' } });
const names = Array.from({ length: 20 }, (_, index) => `soak/s${index}`);
for (const key of names) await client.create(serviceType, service(key));

const socket = dgram.createSocket('udp4');
let answered = 0;
socket.on('message', () => {
  answered += 1;
});
let asked = 0;
let changes = 0;
const queries = setInterval(() => {
  for (let index = 0; index < 20; index += 1) socket.send(query(names[asked++ % names.length]!), dnsPort, '127.0.0.1');
}, 20);
const exporting = setInterval(() => void change(), 100);

interface Sample {
  readonly minute: number;
  readonly heapMb: number;
  /** Buffers outside the heap. */
  readonly offHeapMb: number;
  readonly residentMb: number;
  readonly filesMb: number;
  readonly handles: number;
  readonly watches: number;
}

const samples: Sample[] = [];
console.log('minute  live heap  off heap  resident  files  handles  watches  answered/s  changes/s');
for (let minute = 1; minute <= minutes; minute += 1) {
  const [answeredBefore, changesBefore] = [answered, changes];
  await pause(60_000);
  const sample = await look(minute);
  samples.push(sample);
  const rates = [(answered - answeredBefore) / 60, (changes - changesBefore) / 60].map((rate) => rate.toFixed(0));
  console.log(
    `${minute}  ${sample.heapMb.toFixed(1)} MB  ${sample.offHeapMb.toFixed(1)} MB  ${sample.residentMb.toFixed(0)} MB  ${sample.filesMb.toFixed(1)} MB  ${sample.handles}  ${sample.watches}  ${rates.join('  ')}`,
  );
}
clearInterval(queries);
clearInterval(exporting);
const [first, last] = [samples.find(({ minute }) => minute >= warmMinutes)!, samples.at(-1)!];
const residentRatio = last.residentMb / first.residentMb;
const steady = samples.find(({ minute }) => minute === steadyMinute);
const figures: Figure[] = [
  { name: 'live heap at the end', value: last.heapMb, unit: 'MB' },
  { name: 'live heap, end against five minutes', value: last.heapMb / first.heapMb, unit: 'times' },
  ...(steady && steady !== last ? [heapSinceExpiry(steady, last)] : []),
  {
    ...{ name: 'resident memory, end against five minutes', value: residentRatio, unit: 'times' },
    ...{ wanted: 'at most 1.6', isMet: residentRatio <= 1.6 },
  },
  { name: 'DNS answers', value: answered / asked, unit: 'of those asked' },
];
report(`Soak, ${minutes} minutes`, figures);
process.exit(0);

function heapSinceExpiry(steady: Sample, end: Sample): Figure {
  const value = end.heapMb / steady.heapMb;
  const isMet = Math.abs(value - 1) <= 0.05;
  return {
    name: 'live heap, end against the first minutes in which Events expire',
    value,
    unit: 'times',
    wanted: 'within 5 %',
    isMet,
  };
}

async function change(): Promise<void> {
  const key = names[changes % names.length]!;
  const isExport = Math.floor(changes / names.length) % 2 === 0;
  changes += 1;
  const [namespace, name] = key.split('/') as [string, string];
  const work = isExport
    ? client.create(serviceExportType, serviceExport(key))
    : client.delete(serviceExportType, { namespace, name });
  await work.catch(() => {});
}

async function look(minute: number): Promise<Sample> {
  rmSync(probeFile, { force: true });
  child.kill('SIGUSR2');
  while (!existsSync(probeFile)) await pause(100);
  await pause(100);
  const { heapUsed, external, handles, rss } = JSON.parse(readFileSync(probeFile, 'utf8')) as Record<string, number>;
  const watches = await metricOf({ access }, 'api_open_watches');
  const mb = 2 ** 20;
  return {
    minute,
    heapMb: heapUsed! / mb,
    offHeapMb: external! / mb,
    residentMb: rss! / mb,
    filesMb: sizeOf(`${directory}/demo`) / mb,
    handles: handles!,
    watches,
  };
}

function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile());
  return entries.reduce(
    (sum, { parentPath, name }) => sum + (statSync(`${parentPath}/${name}`, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

function findFile(folder: string, name: RegExp): string {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const found = entries.map(({ parentPath, name: file }) => `${parentPath}/${file}`).find((path) => name.test(path));
  if (found === undefined) throw new Error(`${folder}: no file like ${name}`);
  return found;
}

/** An A query for the clusterset name of the service. */
function query(key: string): Buffer {
  const [namespace, name] = key.split('/') as [string, string];
  const labels = [name, namespace, 'svc', 'clusterset', 'local'].flatMap((label) => [
    label.length,
    ...Buffer.from(label),
  ]);
  const header = [(asked >> 8) & 255, asked & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
  return Buffer.from([...header, ...labels, 0, 0, 1, 0, 1]);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => world.timers.after(ms, resolve));
}
