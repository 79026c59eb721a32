// `portolan top`: services, or pairs of clusters, by their connections, failures and bytes, from the counters of all node proxies of the given
// clusters, refreshed in place.

import { type Command, Option } from 'commander';
import { sleep } from '../../base/world.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import type { TrafficPage } from '../../proxy/flows/traffic-page.ts';
import { everyPart } from '../every-part.ts';
import { exitCodes } from '../exit-codes.ts';
import { formatOutput, formatTable, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomesOptions, type ClusterSetDeps, findHomeOf, type HomesFlags, homesOf } from '../with-home.ts';
import { type By, type NodeTotals, topRows, topTable } from './top-rows.ts';

interface TopFlags extends HomesFlags {
  readonly by: By;
  readonly once?: boolean;
  readonly output: string;
}

const refreshMs = 2_000;
const answerMsMax = 3_000;

export function addTopCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('top')
    .description(verbs.top)
    .addOption(
      new Option('--by <what>', 'one row for each service, or for each pair of clusters')
        .choices(['service', 'cluster'])
        .default('service'),
    )
    .option('--once', 'print one page and end')
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Rates are those of the last two seconds, sums those since each proxy was started. The kernel counts every TCP connection to a clusterset
IP and the bytes of all packets, of UDP too; nothing is sampled. SENT is what clients sent. FAILED are attempts that were refused or have no answer; those of the last moments may still get one. A client
that tries again counts again. Exit code 8 if a proxy does not answer. Examples:
  portolan top
  portolan top --by cluster --kubeconfig east.kubeconfig west.kubeconfig
  portolan top --once -o json`,
    );
  addHomesOptions(command).action((flags: TopFlags) => top(deps, flags));
}

async function top(deps: ClusterSetDeps, flags: TopFlags): Promise<void> {
  const format = parseOutput(flags.output);
  const clients: Client[] = [];
  try {
    for (const home of homesOf(flags)) {
      const access = await findHomeOf(deps, home);
      clients.push(createClient(deps.world.network.http(access), { world: deps.world, userAgent: 'portolan-cli' }));
    }
    let before = await readAll(deps, clients);
    for (;;) {
      await sleep(deps.world.timers, refreshMs);
      const now = await readAll(deps, clients);
      const rows = topRows(before.nodes, now.nodes, flags.by);
      before = now;
      const isOnce = flags.once || format !== 'text';
      if (!isOnce) deps.clearScreen?.();
      const names = rows.map(({ service, from, to }) => service ?? `${from} ${to}`);
      for (const line of formatOutput(format, {
        value: rows,
        names,
        text: () => formatTable(...topTable(rows, flags.by)),
      }))
        deps.print(line);
      for (const problem of now.problems) (deps.warn ?? deps.print)(problem);
      if (now.problems.length > 0) deps.setExitCode(exitCodes.incomplete);
      if (isOnce) return;
    }
  } finally {
    for (const client of clients) client.close();
  }
}

async function readAll(
  { world }: ClusterSetDeps,
  clients: readonly Client[],
): Promise<{ readonly nodes: NodeTotals[]; readonly problems: string[] }> {
  const nowMs = world.clock.wallMs();
  const all = await Promise.all(
    clients.map((client) => {
      // Made anew each time: a ticket is good for ten minutes.
      const admin = new PartAdmin(client);
      return everyPart(client, { part: 'proxy', nowMs }, async (lease) => [
        {
          key: `${lease.metadata.name} ${lease.spec?.holderIdentity}`,
          page: await admin.ask<TrafficPage>(lease, '/traffic', { timeoutMs: answerMsMax }),
        },
      ]);
    }),
  );
  return {
    nodes: all.flatMap(({ answers }) => answers),
    problems: all.flatMap(({ unasked, idle }) => [...unasked, ...(idle === '' ? [] : [idle])]),
  };
}
