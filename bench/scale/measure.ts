// One set of a given size: a broker and its members, whose records lie there, and one whole agent that joins it, gets changes
// and starts again.

import { execFileSync } from 'node:child_process';
import { createInformer } from '../../src/kube/controller/informer.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
} from '../../src/kube/objects/endpoint-slice.ts';
import { type Broker, pause, startBroker, world } from '../growth/broker.ts';
import { changeOf } from '../growth/records.ts';
import { startWholeAgent, untilImported, type WholeAgent } from '../growth/whole-agent.ts';
import { residentMb } from '../process-usage.ts';
import { type Figure, percentile } from '../report.ts';
import { Members, type Published } from './members.ts';

const changes = 50;
/** Between two changes: what one moves is counted by itself. */
const betweenMs = 100;
/** Young objects of the join are collected by then. */
const settleMs = 10_000;

export interface Size {
  readonly title: string;
  readonly clusters: number;
  readonly imports: number;
  readonly published: (ids: readonly string[]) => readonly Published[];
  readonly wanted: Readonly<Record<string, { readonly text: string; readonly most: number }>>;
}

export async function measureSize(size: Size, directory: string): Promise<Figure[]> {
  const say = (text: string) => process.stderr.write(`${size.title}: ${text}\n`);
  const figures: Figure[] = [];
  const add = (name: string, value: number, unit: string) => {
    const wanted = size.wanted[name];
    const met = wanted === undefined ? {} : { wanted: wanted.text, isMet: value <= wanted.most };
    figures.push({ name: `${size.title}: ${name}`, value, unit, ...met });
  };
  const broker = await startBroker(`${directory}/broker`);
  const members = await Members.add(broker, size.clusters);
  const published = size.published(members.ids);
  await members.publish(published);
  say('the records are at the broker');
  const joiningMs = performance.now();
  const agent = await startWholeAgent(broker, `${directory}/home`);
  await untilImported(agent, size.imports);
  await firstChange({ agent, members, published });
  add('joined, all imported', (performance.now() - joiningMs) / 1000, 's');
  say('joined');
  await pause(settleMs);
  add('memory of its agent', residentMb(agent.child.pid!), 'MB');
  add('memory of its home', residentMb(agent.home.pid), 'MB');
  add('memory of the broker', residentMb(broker.process.pid), 'MB');
  const { timesMs, bytes } = await measureChanges({ broker, agent, members, published });
  add('one endpoint changed, until it is in the home, p50', percentile(timesMs, 0.5), 'ms');
  add('one endpoint changed, until it is in the home, p99', percentile(timesMs, 0.99), 'ms');
  add('one endpoint changed, bytes to a reader', bytes, 'B');
  let startingMs = 0;
  await agent.restart(async () => {
    startingMs = performance.now();
  });
  await firstChange({ agent, members, published });
  add('agent started again, until a change made since is in its home', (performance.now() - startingMs) / 1000, 's');
  await pause(settleMs);
  add('memory of its agent, started again', residentMb(agent.child.pid!), 'MB');
  members.stop();
  await agent.stop();
  await broker.process.stop('SIGKILL');
  return figures;
}

interface Running {
  readonly agent: WholeAgent;
  readonly members: Members;
  readonly published: readonly Published[];
}

/** Resolves when a change of the last record has come to the home: it is worked off after all that came before. */
async function firstChange({ agent, members, published }: Running): Promise<void> {
  const last = published.at(-1)!;
  const seen = watchChanges(agent, [last]);
  const change = await members.change(last);
  await seen.until(change);
  seen.stop();
}

async function measureChanges(
  running: Running & { readonly broker: Broker },
): Promise<{ timesMs: number[]; bytes: number }> {
  const { agent, members, published, broker } = running;
  const chosen = published.filter((_one, at) => at % Math.ceil(published.length / 20) === 0);
  const seen = watchChanges(agent, chosen);
  await seen.synced;
  const timesMs: number[] = [];
  const moved: number[] = [];
  for (let turn = 0; turn < changes; turn += 1) {
    const before = receivedBytes(agent.child.pid!, broker.process.port);
    const beganMs = performance.now();
    await seen.until(await members.change(chosen[turn % chosen.length]!));
    timesMs.push(performance.now() - beganMs);
    await pause(betweenMs);
    moved.push(receivedBytes(agent.child.pid!, broker.process.port) - before);
  }
  seen.stop();
  const ascending = (values: number[]) => values.sort((a, b) => a - b);
  // The median of the bytes: a lease that is renewed meanwhile is no part of the change.
  return { timesMs: ascending(timesMs), bytes: percentile(ascending(moved), 0.5) };
}

function watchChanges({ client }: WholeAgent, published: readonly Published[]) {
  const names = [...new Set(published.map(({ service }) => service.name))];
  const labelSelector = `${importedServiceNameLabel} in (${names.join(',')})`;
  const informer = createInformer<EndpointSlice>({
    client,
    world,
    type: endpointSliceType,
    namespace: 'shop',
    labelSelector,
  });
  const seen = new Set<number>();
  const waiting = new Map<number, () => void>();
  informer.on((_key, next) => {
    const change = next === undefined ? 0 : changeOf(next);
    seen.add(change);
    waiting.get(change)?.();
  });
  informer.start();
  const until = (change: number) =>
    new Promise<void>((resolve) => (seen.has(change) ? resolve() : void waiting.set(change, resolve)));
  return { synced: informer.whenSynced(), until, stop: () => informer.stop() };
}

/** What a process has received over its connections to this port, as the kernel counts it. */
function receivedBytes(pid: number, port: number): number {
  const text = execFileSync('ss', ['-tinpHO', 'state', 'established', `dport = :${port}`], { encoding: 'utf8' });
  const own = text.split('\n').filter((line) => line.includes(`pid=${pid},`));
  return own.reduce((sum, line) => sum + Number(/bytes_received:(\d+)/.exec(line)?.[1] ?? 0), 0);
}
