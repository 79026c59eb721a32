// `npm run bench:gateway [-- --services N --rounds N --seconds N --only changes|near|far]`: a direct connection, one Envoy hop and the way through a gateway,
// in turn on the same machine, near and 20 ms away; what one change costs, with few services and with many. Needs root and Envoy.

import { parseArgs } from 'node:util';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { exportService, type GatewayCluster, limitExport } from '../test/support/gateway-world.ts';
import { endStarted } from '../test/support/started.ts';
import type { Bulk, Counted, Target } from './gateway/inside.ts';
import { ipOf, nameOf, openStage, pod, type Way } from './gateway/stage.ts';
import { cpuSeconds, residentMb } from './process-usage.ts';
import { type Figure, percentile, report } from './report.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});
const [services, rounds, seconds] = [Number(values.services), Number(values.rounds), Number(values.seconds)];
const few = Math.min(100, services);
const roundTripMs = 20;
const changes = 200;
const accessChanges = 20;
const port = 8080;
const otherPod = '10.70.2.2';
const figures: Figure[] = [];

const median = (all: readonly number[]): number =>
  percentile(
    [...all].sort((one, other) => one - other),
    0.5,
  );
const add = (name: string, value: number, unit: string, more: Partial<Figure> = {}) =>
  figures.push({ name, value, unit, ...more });
const atMost = (value: number, limit: number, wanted: string) => ({ wanted, isMet: value <= limit });
const atLeast = (value: number, limit: number, wanted: string) => ({ wanted, isMet: value >= limit });

const stage = await openStage(roundTripMs);
const { east, west, envoys } = stage;

async function fill(from: number, to: number): Promise<void> {
  for (let first = from; first < to; first += 50) {
    const some = Array.from({ length: Math.min(50, to - first) }, (_, index) => first + index);
    const make = (index: number) => exportService(east, { name: nameOf(index), ip: ipOf(index), port, endpoint: pod });
    await Promise.all(some.map(make));
  }
  await answered(to - 1, pod, 900_000);
}

/** When a service answered so, by the wall clock. */
async function answered(index: number, answer: string, withinMs = 20_000): Promise<number> {
  const { atMs } = await stage.ask<{ atMs?: number }>({
    ...{ do: 'until', address: ipOf(index), port, answer, withinMs },
  });
  if (atMs === undefined)
    throw new Error(`${nameOf(index)} did not answer ${answer || 'by closing'} in ${withinMs} ms`);
  return atMs;
}

const nowMs = () => performance.timeOrigin + performance.now();

async function putEndpoint({ client }: GatewayCluster, index: number, address: string): Promise<void> {
  const name = { namespace: 'shop', name: `${nameOf(index)}-1` };
  const slice = await client.get<EndpointSlice>(endpointSliceType, name);
  await client.update(endpointSliceType, { ...slice, endpoints: [{ addresses: [address] }] });
}

async function sentBytes({ xds }: GatewayCluster): Promise<number> {
  const text = await xds[0]!.metrics.text();
  return [...text.matchAll(/^portolan_xds_response_bytes_total\{.*\} (\d+)/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
}

interface Changed {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** From the write at the exporter's home until a client in the other network is answered by the new endpoint. */
async function measureEndpoints(count: number): Promise<Changed> {
  const took: number[] = [];
  const [gatewayCpu, before, nodeBefore] = [
    cpuSeconds(envoys.gateway.pid),
    await sentBytes(east),
    await sentBytes(west),
  ];
  const at = new Map<number, string>();
  for (let turn = 0; turn < changes; turn += 1) {
    const index = (turn * 37) % count;
    const next = at.get(index) === otherPod ? pod : otherPod;
    at.set(index, next);
    const startMs = nowMs();
    const [atMs] = await Promise.all([answered(index, next), putEndpoint(east, index, next)]);
    took.push(atMs - startMs);
  }
  for (const [index, address] of at) if (address === otherPod) await putEndpoint(east, index, pod);
  took.sort((one, other) => one - other);
  const changed = { p50Ms: percentile(took, 0.5), p99Ms: percentile(took, 0.99) };
  const label = `${count} services: one endpoint's change`;
  add(`${label} until the client sees it, p50`, changed.p50Ms, 'ms');
  add(`${label} until the client sees it, p99`, changed.p99Ms, 'ms', atMost(changed.p99Ms, 100, 'under 100 ms'));
  add(`${label}, bytes for the gateway`, ((await sentBytes(east)) - before) / changes, 'bytes');
  add(`${label}, bytes for the node's Envoy`, ((await sentBytes(west)) - nodeBefore) / changes, 'bytes');
  add(`${label}, CPU of the gateway`, ((cpuSeconds(envoys.gateway.pid) - gatewayCpu) / changes) * 1000, 'ms');
  return changed;
}

/** A caller is left out of an export, and named again. */
async function measureAccess(count: number): Promise<void> {
  const took: Record<'refused' | 'admitted', number[]> = { refused: [], admitted: [] };
  const before = await sentBytes(east);
  for (let turn = 0; turn < accessChanges; turn += 1) {
    const index = (turn * 53 + 1) % count;
    for (const [what, exportTo, answer] of [
      ['refused', ['nobody'], ''],
      ['admitted', ['nobody', 'west'], pod],
    ] as const) {
      const startMs = nowMs();
      const [atMs] = await Promise.all([answered(index, answer), limitExport(east, nameOf(index), exportTo)]);
      took[what].push(atMs - startMs);
    }
  }
  for (const [what, all] of Object.entries(took)) {
    const worst = Math.max(...all);
    const label = `${count} services: a change of access until the caller is ${what}`;
    add(`${label}, p50`, median(all), 'ms');
    add(`${label}, longest of ${accessChanges}`, worst, 'ms', atMost(worst, 1000, 'within 1 s'));
  }
  add(
    `${count} services: a change of access, bytes`,
    ((await sentBytes(east)) - before) / (2 * accessChanges),
    'bytes',
  );
}

type Load = { readonly do: 'kept' | 'fresh'; readonly lanes: number };
type Results = Map<Way, Counted[]>;

/** The ways in turn, round after round. */
async function compare(ways: readonly Way[], load: Load, times: number): Promise<Results> {
  const results: Results = new Map(ways.map((way) => [way, []]));
  for (let round = 0; round < times; round += 1)
    for (const way of ways) {
      const [node, gateway] = [cpuSeconds(envoys.node.pid), cpuSeconds(envoys.gateway.pid)];
      const counted = await stage.ask<Counted>({ ...load, ...stage.target(way), forMs: seconds * 1000 });
      if (counted.failed > 0) throw new Error(`${way}: ${counted.failed} of ${counted.count} failed`);
      results.get(way)!.push(counted);
      if (way !== 'gateway') continue;
      cpu.node.push(((cpuSeconds(envoys.node.pid) - node) / counted.count) * 1e6);
      cpu.gateway.push(((cpuSeconds(envoys.gateway.pid) - gateway) / counted.count) * 1e6);
    }
  return results;
}

const cpu: Record<'node' | 'gateway', number[]> = { node: [], gateway: [] };

function reportCpu(what: string): void {
  for (const [name, all] of Object.entries(cpu)) {
    add(`${what}, CPU of the ${name === 'node' ? "node's Envoy" : 'gateway'}`, median(all), 'µs');
    all.length = 0;
  }
}

const ratios = (one: readonly number[], other: readonly number[]) => one.map((value, index) => value / other[index]!);

function span(all: readonly number[]): string {
  return `${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)}`;
}

function tell(label: string, results: Results, unit: string): void {
  for (const [way, all] of results) {
    const of = (key: keyof Counted) => median(all.map((each) => each[key]));
    add(`${label}, ${way}`, of('perSecond'), unit, {
      note: `p50 ${of('p50Ms').toFixed(2)}, p99 ${of('p99Ms').toFixed(2)} ms`,
    });
  }
}

function tellRatio(
  label: string,
  results: Results,
  key: 'perSecond' | 'p50Ms',
  [one, other]: readonly [Way, Way],
  wanted?: (ratio: number) => Partial<Figure>,
): void {
  const of = (way: Way) => results.get(way)!.map((each) => each[key]);
  const all = ratios(of(one), of(other));
  add(`${label}: ${one} / ${other}`, median(all), 'times', { note: span(all), ...wanted?.(median(all)) });
}

async function measureNear(): Promise<void> {
  const ways: readonly Way[] = ['direct', 'one Envoy hop', 'gateway'];
  const kept = await compare(ways, { do: 'kept', lanes: 16 }, rounds);
  tell('kept connections', kept, 'requests/s');
  reportCpu('a request on a kept connection');
  tellRatio('kept connections', kept, 'perSecond', ['gateway', 'one Envoy hop'], (ratio) =>
    atLeast(ratio, 0.7, 'at least 0.7'),
  );
  tellRatio('kept connections', kept, 'perSecond', ['gateway', 'direct']);
  const fresh = await compare([...ways, 'direct TLS'], { do: 'fresh', lanes: 8 }, rounds);
  tell('new connections', fresh, '/s');
  reportCpu('a new connection');
  tellRatio('new connections', fresh, 'perSecond', ['gateway', 'one Envoy hop']);
  tellRatio('new connections', fresh, 'perSecond', ['gateway', 'direct TLS']);
  const one = await compare(ways, { do: 'kept', lanes: 1 }, rounds);
  tell('one client, kept', one, 'requests/s');
  reportCpu('a request of one client');
  await measureBulk('bulk', ways);
}

async function measureBulk(label: string, ways: readonly Way[]): Promise<void> {
  const results = new Map<Way, number[]>(ways.map((way) => [way, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const way of ways) {
      const target: Target = stage.target(way);
      const { megabytesPerSecond } = await stage.ask<Bulk>({ do: 'bulk', lanes: 1, forMs: seconds * 1000, ...target });
      results.get(way)!.push(megabytesPerSecond);
    }
  for (const [way, all] of results) add(`${label}, ${way}`, median(all), 'MB/s', { note: span(all) });
  const all = ratios(results.get('gateway')!, results.get('direct')!);
  add(`${label}: gateway / direct`, median(all), 'times', { note: span(all) });
}

async function measureFar(): Promise<void> {
  await stage.choose('far');
  const ways: readonly Way[] = ['direct', 'one Envoy hop', 'gateway', 'direct TLS'];
  const label = `${roundTripMs} ms away, a new connection and its first answer`;
  const fresh = await compare(ways, { do: 'fresh', lanes: 4 }, rounds);
  tell(label, fresh, '/s');
  tellRatio(label, fresh, 'p50Ms', ['gateway', 'direct'], (ratio) => atMost(ratio, 1.1, 'within 1.1'));
  tellRatio(label, fresh, 'p50Ms', ['direct TLS', 'gateway'], (ratio) => atLeast(ratio, 1.3, 'at least 1.3'));
  const kept = await compare(ways.slice(0, 3), { do: 'kept', lanes: 16 }, rounds);
  tell(`${roundTripMs} ms away, kept connections`, kept, 'requests/s');
  tellRatio(`${roundTripMs} ms away, kept connections`, kept, 'perSecond', ['gateway', 'one Envoy hop']);
  for (const all of Object.values(cpu)) all.length = 0;
  await measureBulk(`${roundTripMs} ms away, bulk`, ways.slice(0, 3));
}

async function measureChanges(): Promise<void> {
  const small = await measureEndpoints(few);
  const [cpuBefore, startMs] = [cpuSeconds(envoys.gateway.pid), nowMs()];
  await fill(few, services);
  add(`${services - few} services more until the last is answered`, (nowMs() - startMs) / 1000, 's');
  add(`${services - few} services more, CPU of the gateway`, cpuSeconds(envoys.gateway.pid) - cpuBefore, 's');
  for (const [name, { pid }] of Object.entries(envoys))
    add(`${services} services: memory of the Envoy ${name}`, residentMb(pid), 'MB');
  const large = await measureEndpoints(services);
  const growth = large.p50Ms / small.p50Ms;
  const wanted = atMost(growth, 1.5, 'independent of their number');
  add(`one endpoint's change, p50 with ${services} / with ${few}`, growth, 'times', wanted);
  await measureAccess(services);
}

const measures: Readonly<Record<string, () => Promise<void>>> = {
  changes: measureChanges,
  near: measureNear,
  far: measureFar,
};
if (values.only !== undefined && !(values.only in measures))
  throw new Error(`--only ${values.only}: there are ${Object.keys(measures).join(', ')}`);

try {
  await fill(1, few);
  await stage.choose('near');
  for (const [name, measure] of Object.entries(measures))
    if (values.only === undefined || values.only === name) await measure();
  report('gateways', figures);
} finally {
  await endStarted();
}
process.exit(0);
