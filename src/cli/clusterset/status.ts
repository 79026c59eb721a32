// `portolan status`: the clusterset at a glance: its clusters and their leases, its services and their conflicts, and how
// far this cluster is behind what lies at the broker.

import type { Command } from 'commander';
import { isSameJson } from '../../base/json.ts';
import { consultBroker, findMembership, requireMembership } from '../../clusterset/explain/consult.ts';
import { type Foreseen, foresee } from '../../clusterset/explain/foresee.ts';
import { refusedRecords } from '../../clusterset/explain/refused-records.ts';
import { brokerFacts, byKey, listAll, type MemberState, readSetState } from '../../clusterset/explain/set-state.ts';
import type { StalenessPolicy } from '../../clusterset/kinds/cluster-set.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { whyNotTrusted } from '../../clusterset/rules/leases/lease-memory.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import type { SetPolicy } from '../../clusterset/rules/set-policy.ts';
import type { Client } from '../../kube/client/client.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { isOurs } from '../../kube/objects/ours.ts';
import { describeError, exitCodes, exitKindOf } from '../exit-codes.ts';
import { readOutside } from '../outside.ts';
import { readParts } from '../parts.ts';
import { formatOutput, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import {
  addHomesOptions,
  type ClusterSetDeps,
  type HomeFlags,
  type HomesFlags,
  homesOf,
  withHome,
} from '../with-home.ts';
import { readBrokerStatus } from './status-broker.ts';
import { clusterStatus, mergedStatus, problemsOf } from './status-clusters.ts';
import { clustersOf, readHomeStatus } from './status-home.ts';
import { type ServiceStatus, type StaleCluster, type Status, statusText } from './status-report.ts';

interface StatusFlags extends HomesFlags {
  readonly output: string;
}

export function addStatusCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('status')
    .description(verbs.status)
    .option(...outputOption)
    .addHelpText(
      'after',
      `
LEASE shows the state that this cluster's agent has determined: alive; stale since it expired; or held down, after repeated
expiries. While the broker is unreachable this shows the last known state.
Exit code 0 if all is well, 7 if a cluster or part does not report or something lags, 8 if a member cannot be read, 6 if the
broker does not answer.
Examples:
  portolan status
  portolan status -o json | jq .services
  portolan status --kubeconfig broker.kubeconfig east.kubeconfig
At a broker it shows all members. Several homes are a list in JSON.`,
    );
  addHomesOptions(command).action(async (flags: StatusFlags) => {
    const format = parseOutput(flags.output);
    const homes = homesOf(flags);
    const reports = await Promise.all(homes.map((home) => reportOf(deps, home, homes.length > 1)));
    const values = reports.flatMap(({ value }) => value);
    const names = reports.flatMap((one) =>
      one.statuses.flatMap(({ services }) => services.map(({ service }) => service)),
    );
    const value = values.length === 1 ? values[0] : values;
    const text = () => reports.flatMap(({ lines }, index) => (index === 0 ? lines : ['', ...lines]));
    for (const line of formatOutput(format, { value, names, text })) deps.print(line);
    deps.setExitCode(worstOf(reports.map(({ exitCode }) => exitCode)));
  });
}

interface HomeReport {
  readonly statuses: readonly Status[];
  /** For programs. */
  readonly value: readonly unknown[];
  readonly lines: readonly string[];
  readonly exitCode: number;
}

/** One of several homes that cannot be read does not hide the others. */
async function reportOf(deps: ClusterSetDeps, home: HomeFlags, isOneOfMany: boolean): Promise<HomeReport> {
  try {
    const statuses = await statusesOf(deps, home);
    const lines = statuses.flatMap((one, index) => (index === 0 ? statusText(one) : ['', ...statusText(one)]));
    return { statuses, value: statuses, lines, exitCode: worstOf(statuses.map(statusExit)) };
  } catch (error) {
    if (!isOneOfMany) throw error;
    const name = [home.kubeconfig, home.context].filter((text) => text !== undefined).join(', context ');
    const problem = `${name}: ${describeError(error)}`;
    const exitCode = exitCodes[exitKindOf(error)];
    return { statuses: [], value: [{ home: name, problem }], lines: [`problem: ${problem}`], exitCode };
  }
}

/** At a member: its clusterset; at a broker: every clusterset it holds. */
function statusesOf(deps: ClusterSetDeps, flags: HomeFlags): Promise<Status[]> {
  const { world } = deps;
  return withHome(deps, flags, async ({ client: home, server }) => {
    const present = await findMembership(home).catch(() => undefined);
    if (present === undefined) {
      const sets = await readBrokerStatus(home, server, world.clock.wallMs());
      if (sets.length > 0) return sets;
    }
    const membership = await requireMembership(home);
    const status = await consultBroker<Status>({
      world,
      membership,
      run: (broker) => readStatus(deps, { home, broker, membership }),
      away: (why) => readHomeStatus({ home, membership, why, nowMs: world.clock.wallMs() }),
    });
    return [{ ...status, outside: await readOutside(home) }];
  });
}

/** Unreachable ranks before wrong, and wrong before incomplete. */
function worstOf(codes: readonly number[]): number {
  const order: readonly number[] = [exitCodes.unreachable, exitCodes.notReady, exitCodes.incomplete];
  return order.find((code) => codes.includes(code)) ?? codes.find((code) => code !== 0) ?? 0;
}

interface StatusRequest {
  readonly home: Client;
  readonly broker: Client;
  readonly membership: MembershipRecord;
}

export async function readStatus(deps: Pick<ClusterSetDeps, 'world'>, request: StatusRequest): Promise<Status> {
  const { home, membership } = request;
  const state = await readSetState(request);
  const imports = byKey(await listAll<ServiceImport>(home, serviceImportType));
  const namespaces = await listAll<Namespace>(home, namespaceType);
  const exports = await listAll<ServiceExport>(home, serviceExportType);
  const names = new Set(namespaces.map(({ metadata }) => metadata.name));
  const facts = brokerFacts(state).map((one) =>
    one.id === membership.clusterId ? { ...one, namespaces: names } : one,
  );
  const foreseen = foresee(facts, state.policy);
  const unread = new Set(state.members.filter(({ problem }) => problem !== undefined).map(({ id }) => id));
  const isUnread = (object: ServiceImport | undefined) =>
    object !== undefined && clustersOf(object).some((id) => unread.has(id));
  const services = foreseen.keys.map((key) =>
    serviceStatus({ key, foreseen, imports, names, id: membership.clusterId, isUnread }),
  );
  const own = state.members.find(({ id }) => id === membership.clusterId)?.shards;
  const known = new Set(foreseen.keys);
  const leftovers = [...imports]
    .filter(([key, object]) => !known.has(key) && isOurs(object) && !isUnread(object))
    .map(([key]) => key);
  const nowMs = deps.world.clock.wallMs();
  const parts = await readParts(home, nowMs);
  const clusters = state.members.map((member) => clusterStatus(member, nowMs));
  const status = {
    clusterset: membership.clusterset,
    broker: membership.server,
    cluster: membership.clusterId,
    brokerProblem: undefined,
    refused: state.members.flatMap(refusedRecords),
    stale: state.members.flatMap((member) => staleCluster(member, state.policy)),
    clusters,
    services,
    behind: [...services.filter((one) => one.import === 'behind').map(({ service }) => service), ...leftovers],
    unpublished: exports.map(keyOfExport).filter((key) => own?.has(key) !== true),
    parts,
  };
  return { ...status, problems: problemsOf(status) };
}

function statusExit(status: Status): number {
  if (status.brokerProblem !== undefined) return exitCodes.unreachable;
  const { problems, stale, behind, unpublished, refused } = status;
  if ([problems, stale, behind, unpublished, refused].some((list) => list.length > 0)) return exitCodes.notReady;
  return status.clusters.some(({ problem }) => problem !== undefined) ? exitCodes.incomplete : 0;
}

function keyOfExport({ metadata }: ServiceExport): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function staleCluster({ id, memory, shards }: MemberState, policy: SetPolicy): StaleCluster[] {
  const why = whyNotTrusted(memory);
  if (why === undefined) return [];
  const keysOf = (word: StalenessPolicy) =>
    [...shards].filter(([, { spec }]) => (spec.onStale ?? policy.staleness) === word).map(([key]) => key);
  return [{ cluster: id, why, withdrawn: keysOf('Withdraw'), notReady: keysOf('NotReady'), kept: keysOf('Keep') }];
}

interface ServiceRequest {
  readonly key: string;
  readonly id: string;
  readonly foreseen: Foreseen;
  readonly imports: ReadonlyMap<string, ServiceImport>;
  readonly names: ReadonlySet<string>;
  /** Whether it is made of what cannot be read now. */
  readonly isUnread: (object: ServiceImport | undefined) => boolean;
}

function serviceStatus({ key, id, foreseen, imports, names, isUnread }: ServiceRequest): ServiceStatus {
  return { ...mergedStatus(key, foreseen), import: importState() };

  function importState(): ServiceStatus['import'] {
    const wanted = foreseen.importSpec(id, key);
    const present = imports.get(key);
    if (!names.has(parseServiceKey(key).namespace)) return 'no namespace';
    if (isUnread(present)) return 'as last known';
    if (wanted === undefined) return present === undefined ? 'not for this cluster' : 'behind';
    if (present === undefined) return 'behind';
    const { ips: _ips, ...spec } = present.spec;
    const clusters = (present.status?.clusters ?? []).map(({ cluster }) => cluster);
    const isSame = isSameJson(spec, wanted) && isSameJson(clusters, foreseen.merge(key, id)?.clusters);
    return isSame ? 'in step' : 'behind';
  }
}
