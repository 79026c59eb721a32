// `portolan status`: the clusterset at a glance: its clusters and their leases, its services and their conflicts, and how
// far this cluster is behind what lies at the broker.

import type { Command } from 'commander';
import { isSameJson } from '../../base/json.ts';
import { formatElapsed } from '../../base/text/elapsed.ts';
import { consultBroker, requireMembership } from '../../clusterset/explain/consult.ts';
import { type Foreseen, foresee } from '../../clusterset/explain/foresee.ts';
import { brokerFacts, byKey, listAll, type MemberState, readSetState } from '../../clusterset/explain/set-state.ts';
import type { StalenessPolicy } from '../../clusterset/kinds/cluster-set.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import type { LeaseVerdict } from '../../clusterset/rules/leases/lease-judge.ts';
import { whyNotTrusted } from '../../clusterset/rules/leases/lease-memory.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import type { SetPolicy } from '../../clusterset/rules/set-policy.ts';
import { recordProblem } from '../../clusterset/rules/shard-record.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { isOurs } from '../../kube/objects/ours.ts';
import { exitCodes } from '../exit-codes.ts';
import { readParts } from '../parts.ts';
import { outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';
import { clustersOf, readHomeStatus } from './status-home.ts';
import {
  type ClusterStatus,
  formatStatus,
  type RefusedRecord,
  type ServiceStatus,
  type StaleCluster,
  type Status,
} from './status-report.ts';

interface StatusFlags extends HomeFlags {
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
  portolan status -o json | jq .services`,
    );
  addHomeOptions(command).action(async (flags: StatusFlags) => {
    const format = parseOutput(flags.output);
    const status = await withHome(deps, flags, async ({ client: home }) => {
      const membership = await requireMembership(home);
      return consultBroker<Status>({
        world: deps.world,
        membership,
        run: (broker) => readStatus(deps, { home, broker, membership }),
        away: (why) => readHomeStatus({ home, membership, why, nowMs: deps.world.clock.wallMs() }),
      });
    });
    deps.setExitCode(statusExit(status));
    for (const line of formatStatus(status, format)) deps.print(line);
  });
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

/** One sentence for each thing that is wrong, with the next step. */
function problemsOf(status: Omit<Status, 'problems'>): string[] {
  const silent = status.clusters.filter(({ lease }) => lease === 'silent');
  return [
    ...silent.map(({ id, renewedAgoMs = 0 }) => {
      const next = id === status.cluster ? 'start portolan agent in this cluster' : `look at portolan agent in ${id}`;
      return `the agent of cluster ${id} has been silent for ${formatElapsed(renewedAgoMs)}; ${next}`;
    }),
    ...(status.parts ?? [])
      .filter(({ state }) => state === 'silent')
      .map(({ part, node, reportedAgoMs }) => {
        const since =
          reportedAgoMs === undefined ? 'has never reported' : `has been silent for ${formatElapsed(reportedAgoMs)}`;
        return `${part} on ${node} ${since}; start it again, or delete its Lease if it is gone for good`;
      }),
  ];
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

function refusedRecords({ id, shards }: MemberState): RefusedRecord[] {
  return [...shards].flatMap(([service, record]) => {
    const why = recordProblem(record);
    return why === undefined ? [] : [{ cluster: id, service, why }];
  });
}

function clusterStatus(member: MemberState, nowMs: number): ClusterStatus {
  const { id, cluster, record, lease, verdict, memory, problem, shards } = member;
  const renewedMs = Date.parse(lease?.spec?.renewTime ?? '');
  return {
    id,
    region: cluster.spec.region ?? record?.region ?? '',
    zone: cluster.spec.zone ?? record?.zone ?? '',
    joinedAt: record?.joinedAt,
    lease: lease === undefined && problem === undefined ? 'none' : leaseState(lease, verdict, nowMs - renewedMs),
    memory,
    problem,
    renewedAgoMs: Number.isNaN(renewedMs) ? undefined : Math.max(0, nowMs - renewedMs),
    services: shards.size,
    readyEndpoints: [...shards.values()].reduce((sum, { spec }) => sum + (spec.readyEndpoints ?? 0), 0),
    draining:
      cluster.spec.draining === true ? 'all' : [...shards].flatMap(([key, { spec }]) => (spec.draining ? [key] : [])),
  };
}

/** The agent's verdict, unless its own clock shows that the lease has run out since: a dead agent judges nobody. */
function leaseState(lease: Lease | undefined, verdict: LeaseVerdict, agoMs: number): ClusterStatus['lease'] {
  const seconds = lease?.spec?.leaseDurationSeconds;
  return verdict === 'alive' && seconds !== undefined && agoMs > seconds * 1000 ? 'silent' : verdict;
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
  const merge = foreseen.merge(key);
  return {
    service: key,
    type: merge?.type ?? 'withdrawn',
    clusters: merge?.clusters ?? [],
    excluded: merge?.excluded ?? [],
    conflicts: [...new Set((merge?.conflicts ?? []).map(({ reason }) => reason))],
    import: importState(),
  };

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
