// `portolan observe`: the last connections to services, as the node proxies of the given clusters recorded them, or new ones as they come.

import type { Command } from 'commander';
import { sleep } from '../../base/world.ts';
import { createClient } from '../../kube/client/client.ts';
import { type Flow, flowOutcomes } from '../../proxy/flows/flow.ts';
import { exitCodes, usageError } from '../exit-codes.ts';
import { formatOutput, formatTable, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import {
  addHomesOptions,
  type ClusterSetDeps,
  findHomeOf,
  type HomesFlags,
  homesOf,
  parseServiceRef,
} from '../with-home.ts';
import { FlowReader, type ObservedFlow } from './flow-reader.ts';
import { flowHead, flowRow, lossLines } from './flow-text.ts';

interface ObserveFlags extends HomesFlags {
  readonly service?: string;
  readonly cluster?: string;
  readonly to?: string;
  readonly outcome?: string;
  readonly follow?: boolean;
  readonly output: string;
}

const askMs = 1000;

export function addObserveCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('observe')
    .description(verbs.observe)
    .option('--service <namespace/name>', 'only connections to this service')
    .option('--cluster <id>', 'only connections from nodes of this cluster')
    .option('--to <id>', 'only connections that this cluster served')
    .option('--outcome <outcome>', `only those that were ${flowOutcomes.join(', ')}`)
    .option('-f, --follow', 'go on with new ones, until Ctrl-C')
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Asks every node proxy that reports in the given homes. Each records up to 500 new connections a second and keeps the last ten minutes
in bounded memory; what was not recorded is counted and shown below. The kernel reports the end of a TCP connection, and with it the
bytes, up to two minutes late. Exit code 8 if a proxy does not answer. Examples:
  portolan observe --service shop/checkout
  portolan observe --outcome no-answer --follow
  portolan observe --kubeconfig east.kubeconfig west.kubeconfig --to west -o json`,
    );
  addHomesOptions(command).action((flags: ObserveFlags) => observe(deps, flags));
}

async function observe(deps: ClusterSetDeps, flags: ObserveFlags): Promise<void> {
  const format = parseOutput(flags.output);
  if (flags.outcome !== undefined && !flowOutcomes.some((one) => one === flags.outcome))
    throw usageError(`--outcome ${JSON.stringify(flags.outcome)}: write ${flowOutcomes.join(', ')}`);
  const readers: FlowReader[] = [];
  try {
    for (const home of homesOf(flags)) {
      const access = await findHomeOf(deps, home);
      const client = createClient(deps.world.network.http(access), { world: deps.world, userAgent: 'portolan-cli' });
      const { to, outcome, cluster } = flags;
      const service = flags.service === undefined ? undefined : serviceOf(flags.service, access.defaultNamespace);
      readers.push(new FlowReader(client, { from: cluster, filter: { service, to, outcome } }));
    }
    const read = () => readAll(readers, deps.world.clock.wallMs());
    const first = await read();
    if (flags.follow) return await follow(deps, format === 'json', first, read);
    const flows = lastOfEach(first.flows);
    for (const line of formatOutput(format, {
      value: flows,
      names: flows.map(({ service }) => service),
      text: () => (flows.length === 0 ? ['no connections were recorded'] : formatTable(flowHead, flows.map(flowRow))),
    }))
      deps.print(line);
    const warn = deps.warn ?? deps.print;
    for (const line of [...lossLines(readers.flatMap((reader) => reader.losses())), ...first.problems]) warn(line);
    if (first.problems.length > 0) deps.setExitCode(exitCodes.incomplete);
  } finally {
    for (const reader of readers) reader.close();
  }
}

function serviceOf(text: string, defaultNamespace: string): string {
  const { namespace, name } = parseServiceRef(text, defaultNamespace);
  return `${namespace}/${name}`;
}

interface Reading {
  readonly flows: readonly ObservedFlow[];
  readonly problems: readonly string[];
}

async function readAll(readers: readonly FlowReader[], nowMs: number): Promise<Reading> {
  const all = await Promise.all(readers.map((reader) => reader.read(nowMs)));
  const flows = all.flatMap((one) => one.flows);
  return {
    flows: flows.toSorted((a, b) => timeOf(a) - timeOf(b)),
    problems: [...new Set(all.flatMap((one) => one.problems))],
  };
}

function timeOf({ startedMs, endedMs }: Flow): number {
  return startedMs ?? endedMs ?? 0;
}

/** A flow is told of when it is answered and when it has ended. */
function lastOfEach(flows: readonly ObservedFlow[]): ObservedFlow[] {
  return [...new Map(flows.map((flow) => [flow.uid, flow])).values()];
}

/** One line each, as they come: columns as wide as those of the first page. */
async function follow(
  deps: ClusterSetDeps,
  isJson: boolean,
  first: Reading,
  read: () => Promise<Reading>,
): Promise<void> {
  const warn = deps.warn ?? deps.print;
  const told = new Set<string>();
  let { flows, problems }: Reading = { ...first, flows: lastOfEach(first.flows) };
  let isFirst = true;
  for (;;) {
    if (isJson) for (const flow of flows) deps.print(JSON.stringify(flow));
    else if (isFirst || flows.length > 0) {
      const [head, ...rows] = formatTable(flowHead, flows.map(flowRow));
      for (const line of isFirst ? [head!, ...rows] : rows) deps.print(line);
    }
    isFirst = false;
    for (const problem of problems) if (!told.has(problem)) warn(problem);
    for (const problem of problems) told.add(problem);
    await sleep(deps.world.timers, askMs);
    ({ flows, problems } = await read());
  }
}
