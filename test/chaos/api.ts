// `npm run chaos:api`: kills a real `portolan api` with -9 at random moments under many writers and watchers, while it
// compacts, and holds what it acknowledged, showed and streamed against what is there afterwards.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ApiProcess, startApi } from '../support/api-process.ts';
import { EtcdServers } from './api-etcd.ts';
import { DisturbedServer } from './disturbed-server.ts';
import { History } from './history.ts';
import { isLinearizable, type Operation } from './linearizability.ts';
import { Watcher } from './watcher.ts';

export interface ChaosOptions {
  readonly kills: number;
  readonly writers: number;
  readonly watchers?: number;
  /** The server lives for a random time up to this before it is killed. */
  readonly lifeMsMax: number;
  readonly say: (line: string) => void;
}

export interface ChaosResult {
  readonly operations: number;
  readonly acknowledged: number;
  readonly compactions: number;
  /** Watches that resumed after a break, and those that had to list again. */
  readonly resumes: number;
  readonly relists: number;
  readonly problems: readonly string[];
  readonly history: History;
}

const writesPerLife = 30;
const names = Array.from({ length: 200 }, (_, index) => `register-${index}`);

export async function runChaos(
  options: ChaosOptions,
  serverIn: (data: string) => DisturbedServer = (data) => new KilledServer(data),
): Promise<ChaosResult> {
  const data = mkdtempSync(`${tmpdir()}/portolan-chaos-`);
  const history = new History();
  const watchers = Array.from({ length: options.watchers ?? 3 }, () => new Watcher());
  const cluster = serverIn(data);
  try {
    await cluster.start();
    const connection = await cluster.connection();
    await connection.request('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'chaos' },
    });
    const clients = [
      ...Array.from({ length: options.writers }, () => history.write(cluster, names, Math.random)),
      ...watchers.map((watcher) => watcher.run(cluster)),
    ];
    for (let kill = 1; kill <= options.kills; kill += 1) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * options.lifeMsMax));
      await untilAcknowledged(history, kill * writesPerLife);
      await cluster.disturb();
      if (kill % 10 === 0) options.say(`${kill} kills, ${history.acknowledged.length} acknowledged writes`);
    }
    await new Promise((resolve) => setTimeout(resolve, options.lifeMsMax));
    await cluster.quiesce(clients, watchers, history);
    const problems = [
      ...(await judge(history, watchers, await cluster.finalState())),
      ...history.wentBack,
      ...cluster.problems,
    ];
    const operations = [...history.operations.values()].reduce((sum, list) => sum + list.length, 0);
    const sum = (of: (watcher: Watcher) => number) => watchers.reduce((total, watcher) => total + of(watcher), 0);
    return {
      operations,
      acknowledged: history.acknowledged.length,
      compactions: cluster.compactions,
      resumes: sum((watcher) => watcher.resumes),
      relists: sum((watcher) => watcher.lists.length),
      problems,
      history,
    };
  } finally {
    await cluster.end();
    rmSync(data, { recursive: true, force: true });
  }
}

/** A busy machine gets little done: it must be something, or there is nothing to lose. */
async function untilAcknowledged(history: History, count: number): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (history.acknowledged.length < count && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

/** One that is killed and started again on the same data and port. */
class KilledServer extends DisturbedServer {
  readonly #data: string;
  #process: ApiProcess | undefined;
  #port = 0;

  constructor(data: string) {
    super();
    this.#data = data;
  }

  async start(): Promise<void> {
    // One second of history, so that compaction is always somewhere under way.
    this.#process = await startApi({ data: this.#data, port: this.#port, args: ['--keep-history', '1'] });
    this.#port = this.#process.port;
    this.reach(`${this.#data}/admin.kubeconfig`);
  }

  /** At once, with everything that is in flight. */
  async disturb(): Promise<void> {
    this.leave();
    await this.stop();
    await this.hangUp();
    await this.start();
  }

  protected async stop(): Promise<void> {
    await this.#process?.stop('SIGKILL');
  }
}

async function judge(
  history: History,
  watchers: readonly Watcher[],
  final: ReadonlyMap<string, string>,
): Promise<string[]> {
  const problems: string[] = [];
  for (const [name, operations] of history.operations) {
    const last: Operation = { calledAt: 1e15, returnedAt: 2e15, action: { kind: 'read', saw: final.get(name) } };
    if (!isLinearizable([...operations, last])) problems.push(`${name}: the history is not linearizable`);
  }
  for (const [index, watcher] of watchers.entries())
    problems.push(...judgeWatcher(history, watcher, final).map((text) => `watcher ${index}: ${text}`));
  return problems;
}

function judgeWatcher(history: History, watcher: Watcher, final: ReadonlyMap<string, string>): string[] {
  const problems: string[] = [];
  let before = 0;
  for (const event of watcher.events) {
    if (event.revision <= before) problems.push(`revision ${event.revision} came after ${before}`);
    before = event.revision;
  }
  const byRevision = new Map(watcher.events.map((event) => [event.revision, event]));
  // Changes between a break and a list are visible in the list alone; all others must have come as events.
  const isListed = (revision: number) => watcher.lists.some(({ after, upTo }) => revision > after && revision <= upTo);
  for (const { revision, name, value } of history.acknowledged) {
    if (!isListed(revision) && byRevision.get(revision)?.value !== value)
      problems.push(`missed revision ${revision} of ${name}`);
  }
  for (const [name, value] of final)
    if (watcher.state.get(name) !== value) problems.push(`holds ${watcher.state.get(name)} for ${name}, not ${value}`);
  for (const name of watcher.state.keys()) if (!final.has(name)) problems.push(`still holds ${name}, which is gone`);
  return problems;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '200' },
      writers: { type: 'string', default: '64' },
      watchers: { type: 'string', default: '3' },
      /** Two processes on an etcd of three members, instead of one on SQLite. */
      etcd: { type: 'boolean', default: false },
    },
  });
  const options = { kills: Number(values.kills), writers: Number(values.writers), watchers: Number(values.watchers) };
  const result = await runChaos(
    { ...options, lifeMsMax: 1500, say: console.log },
    values.etcd ? (data) => new EtcdServers(data, console.log) : undefined,
  );
  const { problems, history: _, ...figures } = result;
  console.log(figures);
  for (const problem of problems) console.log(`problem: ${problem}`);
  console.log(problems.length === 0 ? 'nothing acknowledged was lost' : `${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
