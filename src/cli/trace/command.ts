// `portolan trace`: walks with one service from its exports to the answer that a cluster gets, and prints when each step happened
// and where the way ends.

import type { Command } from 'commander';
import { findMembership, requireMembership } from '../../clusterset/explain/consult.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { findHome, type HomeAccess } from '../../kube/client/kubeconfig.ts';
import { CommandError, describeError, exitCodes, notFoundError } from '../exit-codes.ts';
import { didYouMean, knownServices } from '../suggest.ts';
import { formatOutput, formatTable, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomesOptions, type ClusterSetDeps, type HomesFlags, homesOf, parseServiceRef } from '../with-home.ts';
import { readTrace, type TracedHome } from './read.ts';
import { type Step, stepRows, traceSteps } from './steps.ts';

interface TraceFlags extends HomesFlags {
  readonly from?: string;
  readonly output: string;
}

export function addTraceCommand(program: Command, deps: ClusterSetDeps): void {
  addHomesOptions(
    program
      .command('trace')
      .description(verbs.trace)
      .argument('<namespace/name>', 'a service of the clusterset')
      .option('--from <cluster>', 'the cluster that asks (default: that of the first kubeconfig)'),
  )
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Give the kubeconfigs of the exporting clusters and of the one that asks; steps in other clusters are marked as unchecked.
AFTER counts from the earliest step. Exit code 7 if the way ends before the answer, 8 if steps could not be checked.
Examples:
  portolan trace shop/checkout
  portolan trace shop/checkout --from west --kubeconfig west.kubeconfig east.kubeconfig`,
    )
    .action(async (ref: string, flags: TraceFlags) => {
      const format = parseOutput(flags.output);
      const { steps, service, from } = await trace(deps, ref, flags);
      const stopped = steps.filter(({ state }) => state === 'stopped');
      const value = { service, from, isWhole: stopped.length === 0, steps };
      const names = steps.map(({ step, where }) => `${step} ${where}`);
      const text = () => [
        `${service} from ${from}`,
        ...formatTable(['STEP', 'WHERE', 'WHEN', 'AFTER', 'STATE', 'DETAIL'], stepRows(steps)),
        ...(stopped[0] === undefined
          ? []
          : [`stopped at: ${stopped[0].step}, ${stopped[0].where}; next step: ${stopped[0].next}`]),
      ];
      for (const line of formatOutput(format, { value, names, text })) deps.print(line);
      deps.setExitCode(exitOf(steps));
    });
}

function exitOf(steps: readonly Step[]): number {
  if (steps.some(({ state }) => state === 'stopped')) return exitCodes.notReady;
  return steps.some(({ state }) => state === 'unchecked') ? exitCodes.incomplete : 0;
}

async function trace(deps: ClusterSetDeps, ref: string, flags: TraceFlags) {
  const { world, host } = deps;
  const accesses = await Promise.all(homesOf(flags).map((home) => findHome({ host, clock: world.clock, ...home })));
  const clients = accesses.map((access) =>
    createClient(world.network.http(access), { world, userAgent: 'portolan-cli' }),
  );
  try {
    const service = parseServiceRef(ref, accesses[0]?.defaultNamespace ?? 'default');
    const { homes, unread } = await membersAmong(clients, accesses);
    const from = flags.from ?? homes[0]!.membership.clusterId;
    const facts = await readTrace({ world, homes, service, from, unread });
    if (facts.exporters.length === 0) {
      const near = didYouMean(facts.service, await knownServices(homes[0]!.client));
      throw notFoundError(
        `trace ${facts.service}: no cluster exports it; run portolan export ${facts.service} where it runs${near}`,
      );
    }
    return { service: facts.service, from, steps: traceSteps(facts) };
  } finally {
    for (const client of clients) client.close();
  }
}

interface MembersAmong {
  readonly homes: readonly TracedHome[];
  /** Why others could not be read. */
  readonly unread: readonly string[];
}

/** A kubeconfig of the broker is of no use here: members lead there. */
async function membersAmong(clients: readonly Client[], accesses: readonly HomeAccess[]): Promise<MembersAmong> {
  if (clients.length === 1)
    return { homes: [{ client: clients[0]!, membership: await requireMembership(clients[0]!) }], unread: [] };
  const unread: string[] = [];
  const found = await Promise.all(
    clients.map(async (client, index) => {
      try {
        const membership = await findMembership(client);
        return membership === undefined ? [] : [{ client, membership }];
      } catch (error) {
        const { contextName, server } = accesses[index]!;
        unread.push(`${contextName} at ${server}: ${describeError(error)}`);
        return [];
      }
    }),
  );
  const homes = found.flat();
  if (homes.length > 0) return { homes, unread };
  const why = unread.length === 0 ? '' : `: ${unread.join('; ')}`;
  throw new CommandError('unreachable', `trace: none of these homes answers as a member of a clusterset${why}`);
}
