// `portolan status`: the clusterset at a glance: its clusters and their leases, its services and their conflicts, and how
// far this cluster is behind what lies at the broker.

import type { Command } from 'commander';
import { isSameJson } from '../../base/json.ts';
import { consultBroker, requireMembership } from '../../clusterset/explain/consult.ts';
import { type Foreseen, foresee } from '../../clusterset/explain/foresee.ts';
import { brokerFacts, byKey, listAll, type MemberState, readSetState } from '../../clusterset/explain/set-state.ts';
import type { StalenessPolicy } from '../../clusterset/kinds/cluster-set.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { describeLease, type LeaseMemory, whyNotTrusted } from '../../clusterset/rules/leases/lease-memory.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import type { SetPolicy } from '../../clusterset/rules/set-policy.ts';
import { recordProblem } from '../../clusterset/rules/shard-record.ts';
import type { Client } from '../../kube/client/client.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { isOurs } from '../../kube/objects/ours.ts';
import { formatAge, formatCount, formatTable, type OutputFormat, parseOutput } from '../table.ts';
import { addHomeOptions, type HomeFlags, withHome } from '../with-home.ts';
import type { ClusterSetDeps } from './deps.ts';
import { clustersOf, readHomeStatus } from './status-home.ts';

interface StatusFlags extends HomeFlags {
  readonly output: string;
}

export function addStatusCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('status')
    .description('the clusterset at a glance: clusters, leases, services, conflicts, lag')
    .option('-o, --output <format>', 'text or json', 'text')
    .addHelpText(
      'after',
      `
LEASE is what this cluster's agent has judged: alive; stale since it ran out; or held down, when a cluster has come and
gone lately and is not trusted yet. While the broker is away this shows what the cluster last knew, and ends with 1.
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
        away: (why) => readHomeStatus({ home, membership, why }),
      });
    });
    if (status.brokerProblem !== undefined) deps.setExitCode(1);
    for (const line of formatStatus(status, format)) deps.print(line);
  });
}

export interface Status {
  readonly clusterset: string;
  readonly broker: string;
  readonly cluster: string;
  /** Set if the broker did not answer: everything else is what this cluster last knew. */
  readonly brokerProblem: string | undefined;
  readonly clusters: readonly ClusterStatus[];
  readonly services: readonly ServiceStatus[];
  /** Clusters that are not trusted now, and what that means for what they export. */
  readonly stale: readonly StaleCluster[];
  /** Records that are not counted, whatever their cluster's lease. */
  readonly refused: readonly RefusedRecord[];
  /** Keys of services whose import here is not what the records at the broker make it. */
  readonly behind: readonly string[];
  /** Keys of exports here that have no record at the broker yet. */
  readonly unpublished: readonly string[];
}

export interface RefusedRecord {
  readonly cluster: string;
  readonly service: string;
  readonly why: string;
}

export interface StaleCluster {
  readonly cluster: string;
  readonly why: string;
  /** Keys of services. */
  readonly withdrawn: readonly string[];
  readonly notReady: readonly string[];
  readonly kept: readonly string[];
}

export interface ClusterStatus {
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  readonly joinedAt: string | undefined;
  readonly lease: 'alive' | 'stale' | 'none';
  /** Since when it is stale, until when it is held down; absent if it lives and has not been away lately. */
  readonly memory: LeaseMemory | undefined;
  /** Set if what it has at the broker cannot be read: why. */
  readonly problem: string | undefined;
  /** Since the member wrote its lease last, as far as two clocks can be compared. */
  readonly renewedAgoMs: number | undefined;
  readonly services: number;
  readonly readyEndpoints: number;
}

export interface ServiceStatus {
  readonly service: string;
  readonly type: string;
  readonly clusters: readonly string[];
  readonly excluded: readonly string[];
  readonly conflicts: readonly string[];
  readonly import: 'in step' | 'behind' | 'no namespace' | 'not for this cluster' | 'as last known';
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
  return {
    clusterset: membership.clusterset,
    broker: membership.server,
    cluster: membership.clusterId,
    brokerProblem: undefined,
    refused: state.members.flatMap(refusedRecords),
    stale: state.members.flatMap((member) => staleCluster(member, state.policy)),
    clusters: state.members.map((member) => clusterStatus(member, deps.world.clock.wallMs())),
    services,
    behind: [...services.filter((one) => one.import === 'behind').map(({ service }) => service), ...leftovers],
    unpublished: exports.map(keyOfExport).filter((key) => own?.has(key) !== true),
  };
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
    lease: lease === undefined && problem === undefined ? 'none' : verdict,
    memory,
    problem,
    renewedAgoMs: Number.isNaN(renewedMs) ? undefined : Math.max(0, nowMs - renewedMs),
    services: shards.size,
    readyEndpoints: [...shards.values()].reduce((sum, { spec }) => sum + (spec.readyEndpoints ?? 0), 0),
  };
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

export function formatStatus(status: Status, format: OutputFormat): string[] {
  if (format === 'json') return [JSON.stringify(status, undefined, 2)];
  const { clusters, services, behind, unpublished } = status;
  const inConflict = services.filter(({ conflicts }) => conflicts.length > 0);
  return [
    `clusterset ${status.clusterset} at ${status.broker}, this cluster is ${status.cluster}`,
    ...(status.brokerProblem === undefined
      ? []
      : [
          `the broker does not answer (${status.brokerProblem}): this is what the cluster last knew, and it may be old`,
        ]),
    '',
    ...formatTable(
      ['CLUSTER', 'REGION', 'ZONE', 'LEASE', 'RENEWED', 'SERVICES', 'READY'],
      clusters.map((one) => clusterRow(one, status.brokerProblem !== undefined)),
    ),
    '',
    ...(services.length === 0
      ? ['nothing is exported yet: portolan export NAMESPACE/NAME']
      : formatTable(['SERVICE', 'TYPE', 'CLUSTERS', 'CONFLICTS', 'IMPORT'], services.map(serviceRow))),
    '',
    `${formatCount(services.length, 'service')}, ${inConflict.length} in conflict${inConflict.length === 0 ? '' : ' (portolan explain NAMESPACE/NAME says why)'}`,
    ...status.stale.map(staleLine),
    ...status.refused.map(({ cluster, service, why }) => `not counted: the record of ${service} by ${cluster} ${why}`),
    ...clusters.flatMap(({ id, problem }) =>
      problem === undefined ? [] : [`cluster ${id} cannot be read: ${problem}`],
    ),
    ...(status.brokerProblem === undefined ? [lagLine(behind)] : []),
    ...(unpublished.length === 0 ? [] : [`not at the broker (yet): ${shortList(unpublished)}`]),
  ];
}

function lagLine(behind: readonly string[]): string {
  if (behind.length === 0) return 'lag: none, every import here is what the clusterset makes it';
  return `lag: ${formatCount(behind.length, 'import')} behind: ${shortList(behind)}`;
}

function staleLine({ cluster, why, withdrawn, notReady, kept }: StaleCluster): string {
  const parts = [
    ...(withdrawn.length === 0 ? [] : [`withdrawn: ${shortList(withdrawn)}`]),
    ...(notReady.length === 0 ? [] : [`marked as not ready: ${shortList(notReady)}`]),
    ...(kept.length === 0 ? [] : [`kept all the same: ${shortList(kept)}`]),
  ];
  return `cluster ${cluster} is not trusted, because ${why}; ${parts.join('; ') || 'it exports nothing'}`;
}

function leaseText({ lease, memory, problem, joinedAt }: ClusterStatus, isOld: boolean): string {
  if (lease === 'stale' || isOld) return describeLease(memory);
  if (problem !== undefined) return 'not readable';
  return joinedAt === undefined ? 'not joined' : lease;
}

function clusterRow(cluster: ClusterStatus, isOld: boolean): string[] {
  const { id, region, zone, renewedAgoMs, services, readyEndpoints } = cluster;
  const renewed = renewedAgoMs === undefined ? '-' : `${formatAge(renewedAgoMs)} ago`;
  return [id, region || '-', zone || '-', leaseText(cluster, isOld), renewed, String(services), String(readyEndpoints)];
}

function serviceRow({ service, type, clusters, excluded, conflicts, import: state }: ServiceStatus): string[] {
  const left = excluded.length === 0 ? '' : ` (not ${excluded.join(',')})`;
  return [service, type, `${clusters.join(',') || '-'}${left}`, conflicts.join(',') || '-', state];
}

const namesShownMax = 5;

function shortList(names: readonly string[]): string {
  const more = names.length > namesShownMax ? ` and ${names.length - namesShownMax} more` : '';
  return `${names.slice(0, namesShownMax).join(', ')}${more}`;
}
