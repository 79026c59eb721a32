// `npm run bench:growth`: what one cluster more costs the broker and the others. The broker is a process of its own over
// TLS; light agents with the real client, copies and leases stand for most clusters, and one whole agent is among them.
// `--sizes 10,30` runs fewer, `--seconds N` shortens each window, `--only sim` runs the 500 simulated
// clusters alone, `--only processes` the others.

import { mkdtempSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import type { Lease } from '../src/kube/objects/lease.ts';
import { type Broker, metricOf, pause, restart, startBroker } from './growth/broker.ts';
import { Fleet } from './growth/fleet.ts';
import { measureSimulated } from './growth/simulated.ts';
import { startWholeAgent, untilImported, type WholeAgent } from './growth/whole-agent.ts';
import { cpuSeconds, residentMb } from './process-usage.ts';
import { type Figure, percentile, report } from './report.ts';

const { values } = parseArgs({
  options: {
    sizes: { type: 'string' },
    seconds: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});
const sizes = (values.sizes ?? '10,30,100').split(',').map(Number);
const seconds = Number(values.seconds ?? 30);
const openWatches = 'api_open_watches';
const servicesEach = 20;
const changesPerSecond = 10;
const figures: Figure[] = [];
const idleCpu = new Map<number, number>();
const directory = mkdtempSync(`${import.meta.dirname}/.bench-`);
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));

if (values.only !== 'sim') for (const size of sizes) await measure(size);
if (values.only !== 'processes') figures.push(...(await measureSimulated(500)));
const [small, large] = [idleCpu.get(10), idleCpu.get(100)];
if (small !== undefined && large !== undefined) {
  const wanted = { wanted: 'at most 12', isMet: large / small <= 12 };
  figures.push({
    name: 'idle CPU of the broker, 100 clusters against 10',
    value: large / small,
    unit: 'times',
    ...wanted,
  });
}
report('A set that grows', figures);
process.exit(0);

async function measure(size: number): Promise<void> {
  const say = (text: string) => process.stderr.write(`${size} clusters: ${text}\n`);
  const broker = await startBroker(`${directory}/broker-${size}`);
  const ownWatches = await metricOf(broker, openWatches);
  const fleet = new Fleet(Array.from({ length: size - 1 }, (_, index) => `c${String(index + 1).padStart(3, '0')}`));
  await fleet.start(broker);
  say('members are there');
  const exportAll = async (id: string) => {
    for (let index = 0; index < servicesEach; index += 1) await fleet.create(id, index);
  };
  await Promise.all(fleet.ids.map(exportAll));
  say('services are exported');
  const whole = await startWholeAgent(broker, `${directory}/whole-${size}`);
  say('the whole agent has joined');
  await untilImported(whole, fleet.ids.length * servicesEach);
  say('all is imported');
  await pause(15_000);
  await measureRunning(size, { broker, fleet, whole, ownWatches });
  fleet.stop();
  await whole.stop();
  await broker.process.stop('SIGKILL');
}

async function measureRunning(
  size: number,
  { broker, fleet, whole, ownWatches }: { broker: Broker; fleet: Fleet; whole: WholeAgent; ownWatches: number },
): Promise<void> {
  const add = (name: string, value: number, unit: string, wanted: Pick<Figure, 'wanted' | 'isMet'> = {}) =>
    figures.push({ name: `${size} clusters: ${name}`, value, unit, ...wanted });
  /** Wanted of a hundred clusters. */
  const below = (value: number, limit: number) =>
    size === 100 ? { wanted: `under ${limit}`, isMet: value < limit } : {};
  const watches = ((await metricOf(broker, openWatches)) - ownWatches) / size;
  add('watches at the broker for each agent', watches, '', { wanted: 'at most 10', isMet: watches <= 10 });
  const idle = await window(broker, fleet);
  idleCpu.set(size, idle.cpuShare);
  add('idle, bytes a second from the broker', idle.bytes / seconds, 'B/s');
  add('idle, events a second from the broker', idle.events / seconds, '/s');
  add('idle, CPU of the broker', idle.cpuShare * 100, '% of a core');
  add('idle, memory of the broker', idle.residentMb, 'MB');
  const timesMs: number[] = [];
  const loaded = await window(broker, fleet, timesMs);
  add('10 changes/s, bytes a change', (loaded.bytes - idle.bytes) / timesMs.length, 'B');
  add('10 changes/s, CPU of the broker', loaded.cpuShare * 100, '% of a core');
  add('10 changes/s, memory of the broker', loaded.residentMb, 'MB');
  timesMs.sort((a, b) => a - b);
  add('change to the last cluster, p50', percentile(timesMs, 0.5), 'ms');
  const p99 = percentile(timesMs, 0.99);
  add('change to the last cluster, p99', p99, 'ms', below(p99, 500));
  const agentMb = residentMb(whole.child.pid!);
  add('memory of the whole agent', agentMb, 'MB', below(agentMb, 150));
  const { items } = await broker.client.list<Lease>(heartbeatType);
  const renewedBefore = new Map(items.map(({ metadata }) => [metadata.namespace!, metadata.resourceVersion]));
  await restart(broker);
  const backMs = performance.now();
  // All are back when they have renewed and their watches are open again.
  const isBack = async () => {
    const { items } = await broker.client.list<Lease>(heartbeatType);
    const isRenewed = items.every(
      ({ metadata }) => renewedBefore.get(metadata.namespace!) !== metadata.resourceVersion,
    );
    return isRenewed && (await metricOf(broker, openWatches)) >= 0.99 * watches * size;
  };
  while (!(await isBack()) && performance.now() - backMs < 120_000) await pause(200);
  const tookSeconds = (performance.now() - backMs) / 1000;
  add('all back after a restart of the broker', tookSeconds, 's', { wanted: 'under 30', isMet: tookSeconds < 30 });
}

interface Window {
  readonly bytes: number;
  readonly events: number;
  readonly cpuShare: number;
  readonly residentMb: number;
}

/** With `timesMs`, changes are made all the time and their times added to it. */
async function window(broker: Broker, fleet: Fleet, timesMs?: number[]): Promise<Window> {
  const { pid } = broker.process;
  const before = { ...(await fleet.received()), cpu: cpuSeconds(pid) };
  const pending: Promise<unknown>[] = [];
  const count = seconds * changesPerSecond;
  for (let change = 0; change < count; change += 1) {
    if (timesMs !== undefined) {
      const id = fleet.ids[(change * 7) % fleet.ids.length]!;
      pending.push(fleet.change(id, change % servicesEach).then((ms) => timesMs.push(ms)));
    }
    await pause(1000 / changesPerSecond);
  }
  await Promise.all(pending);
  const after = { ...(await fleet.received()), cpu: cpuSeconds(pid) };
  return {
    bytes: after.bytes - before.bytes,
    events: after.events - before.events,
    cpuShare: (after.cpu - before.cpu) / seconds,
    residentMb: residentMb(pid),
  };
}
