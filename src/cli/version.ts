// `portolan version`: the versions of this program, of the home and of every part that reports there; at a broker also those of
// the members' agents.

import type { Command } from 'commander';
import { version } from '../base/version.ts';
import { readHeartbeat } from '../clusterset/explain/broker-state.ts';
import { type Cluster, clusterType } from '../clusterset/kinds/cluster.ts';
import type { Client } from '../kube/client/client.ts';
import { isServed } from '../kube/client/discovery.ts';
import { NoHome } from '../kube/client/kubeconfig.ts';
import { isForbidden } from '../kube/objects/api-error.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { partAnnotations, partLabel } from '../kube/objects/part-lease.ts';
import { partStatuses } from '../kube/objects/part-status.ts';
import { describeError, exitCodes, exitKindOf } from './exit-codes.ts';
import { formatOutput, formatTable, outputOption, parseOutput } from './table.ts';
import { verbs } from './verbs.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, type OpenHome, withHome } from './with-home.ts';

interface VersionFlags extends HomeFlags {
  readonly output: string;
  readonly client?: boolean;
}

interface PartVersion {
  readonly part: string;
  readonly node: string;
  readonly version: string;
}

export function addVersionCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('version')
    .description(verbs.version)
    .option('--client', 'only the version of this program')
    .option(...outputOption)
    .addHelpText(
      'after',
      '\nAt a broker also the agents of members. Exit code 7 if one of them has another version than this program.',
    );
  addHomeOptions(command).action(async (flags: VersionFlags) => {
    const format = parseOutput(flags.output);
    const found = flags.client ? noHome : await findVersions(deps, flags);
    const behind = found.parts.filter((part) => part.version !== version);
    const value = { client: version, ...found, behind: behind.map(({ part, node }) => `${part}/${node}`) };
    const names = found.parts.map(({ part, node }) => `${part}/${node}`);
    for (const line of formatOutput(format, { value, names, text: () => versionText(value) })) deps.print(line);
    if (behind.length > 0) deps.setExitCode(exitCodes.notReady);
  });
}

const noHome = { home: undefined, parts: [] };

/** Prints the version of this program alone if no home is named or found. A home that does not answer is an error. */
async function findVersions(
  deps: ClusterSetDeps,
  flags: VersionFlags,
): Promise<{ home: string | undefined; parts: PartVersion[] }> {
  try {
    return await withHome(deps, flags, (home) => readVersions(home, deps.world.clock.wallMs()));
  } catch (error) {
    if (!(error instanceof NoHome)) {
      deps.warn?.(`portolan: ${describeError(error)}`);
      deps.setExitCode(exitCodes[exitKindOf(error)]);
    }
    return noHome;
  }
}

async function readVersions({ client }: OpenHome, nowMs: number): Promise<{ home: string; parts: PartVersion[] }> {
  const { gitVersion } = await client.getPath<{ gitVersion: string }>('/version');
  const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace, labelSelector: partLabel });
  const parts = partStatuses(items, nowMs).map(({ part, node, version: theirs }) => ({
    part,
    node,
    version: theirs || 'unknown',
  }));
  return { home: gitVersion, parts: [...parts, ...(await memberVersions(client))] };
}

/** Agents of an older version do not report theirs. */
async function memberVersions(client: Client): Promise<PartVersion[]> {
  if (!(await isServed(client, clusterType))) return [];
  const { items } = await client.list<Cluster>(clusterType).catch((error) => {
    if (isForbidden(error)) return { items: [] };
    throw error;
  });
  const found: PartVersion[] = [];
  for (const { metadata, spec } of items) {
    const heartbeat = await readHeartbeat(client, spec.namespace);
    const theirs = heartbeat?.metadata.annotations?.[partAnnotations.version] ?? 'unknown';
    if (heartbeat !== undefined) found.push({ part: 'member', node: metadata.name, version: theirs });
  }
  return found;
}

function versionText(value: {
  client: string;
  home?: string;
  parts: readonly PartVersion[];
  behind: readonly string[];
}) {
  const rows = value.parts.map(({ part, node, version: theirs }) => [part, node, theirs]);
  return [
    `client ${value.client}`,
    ...(value.home === undefined ? [] : [`home   ${value.home}`]),
    ...(rows.length === 0 ? [] : ['', ...formatTable(['PART', 'NODE', 'VERSION'], rows)]),
    ...(value.behind.length === 0 ? [] : ['', `another version than ${value.client}: ${value.behind.join(', ')}`]),
  ];
}
