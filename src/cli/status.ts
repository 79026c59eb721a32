// `portolan status`: the clusterset at a glance: its clusters and their leases, its services and their conflicts, and how
// far this cluster is behind what lies at the broker.

import type { Command } from 'commander';
import { isSameJson } from '../base/same-json.ts';
import type { Client } from '../client/client.ts';
import { type Foreseen, foresee } from '../controllers/explain.ts';
import { isOurs } from '../model/manifest.ts';
import type { MembershipRecord } from '../model/membership.ts';
import { parseServiceKey } from '../model/names-clusterset.ts';
import { type Namespace, namespaceType } from '../model/namespace.ts';
import { type ServiceExport, serviceExportType } from '../model/service-export.ts';
import { type ServiceImport, serviceImportType } from '../model/service-import.ts';
import type { ClusterSetDeps } from './clusterset-deps.ts';
import { requireMembership, withBroker } from './membership.ts';
import { brokerFacts, byKey, listAll, type MemberState, readSetState } from './set-state.ts';
import { formatAge, formatCount, formatTable, type OutputFormat, parseOutput } from './table.ts';
import { addHomeOptions, type HomeFlags, withHome } from './with-home.ts';

interface StatusFlags extends HomeFlags {
  readonly output: string;
}

export function addStatusCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('status')
    .description('the clusterset at a glance: clusters, leases, services, conflicts, lag')
    .option('-o, --output <format>', 'text or json', 'text')
    .addHelpText('after', '\nExamples:\n  portolan status\n  portolan status -o json | jq .services');
  addHomeOptions(command).action(async (flags: StatusFlags) => {
    const format = parseOutput(flags.output);
    const status = await withHome(deps, flags, async ({ client: home }) => {
      const membership = await requireMembership(home);
      return withBroker(deps.world, membership, (broker) => readStatus(deps, { home, broker, membership }));
    });
    for (const line of formatStatus(status, format)) deps.print(line);
  });
}

export interface Status {
  readonly clusterset: string;
  readonly broker: string;
  readonly cluster: string;
  readonly clusters: readonly ClusterStatus[];
  readonly services: readonly ServiceStatus[];
  /** Keys of services whose import here is not what the records at the broker make it. */
  readonly behind: readonly string[];
  /** Keys of exports here that have no record at the broker yet. */
  readonly unpublished: readonly string[];
}

export interface ClusterStatus {
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  readonly joinedAt: string | undefined;
  readonly lease: 'alive' | 'stale' | 'none';
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
  readonly import: 'in step' | 'behind' | 'no namespace' | 'not for this cluster';
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
  const services = foreseen.keys.map((key) =>
    serviceStatus({ key, foreseen, imports, names, id: membership.clusterId }),
  );
  const own = state.members.find(({ id }) => id === membership.clusterId)?.shards;
  const leftovers = [...imports.keys()].filter((key) => !foreseen.keys.includes(key) && isOurs(imports.get(key)!));
  return {
    clusterset: membership.clusterset,
    broker: membership.server,
    cluster: membership.clusterId,
    clusters: state.members.map((member) => clusterStatus(member, deps.world.clock.wallMs())),
    services,
    behind: [...services.filter((one) => one.import === 'behind').map(({ service }) => service), ...leftovers],
    unpublished: exports.map(keyOfExport).filter((key) => own?.has(key) !== true),
  };
}

function keyOfExport({ metadata }: ServiceExport): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function clusterStatus({ id, cluster, record, lease, verdict, shards }: MemberState, nowMs: number): ClusterStatus {
  const renewedMs = Date.parse(lease?.spec?.renewTime ?? '');
  return {
    id,
    region: cluster.spec.region ?? record?.region ?? '',
    zone: cluster.spec.zone ?? record?.zone ?? '',
    joinedAt: record?.joinedAt,
    lease: lease === undefined ? 'none' : verdict,
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
}

function serviceStatus({ key, id, foreseen, imports, names }: ServiceRequest): ServiceStatus {
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
    '',
    ...formatTable(['CLUSTER', 'REGION', 'ZONE', 'LEASE', 'RENEWED', 'SERVICES', 'READY'], clusters.map(clusterRow)),
    '',
    ...(services.length === 0
      ? ['nothing is exported yet: portolan export NAMESPACE/NAME']
      : formatTable(['SERVICE', 'TYPE', 'CLUSTERS', 'CONFLICTS', 'IMPORT'], services.map(serviceRow))),
    '',
    `${formatCount(services.length, 'service')}, ${inConflict.length} in conflict${inConflict.length === 0 ? '' : ' (portolan explain NAMESPACE/NAME says why)'}`,
    `lag: ${behind.length === 0 ? 'none, every import here is what the clusterset makes it' : `${formatCount(behind.length, 'import')} behind: ${shortList(behind)}`}`,
    ...(unpublished.length === 0 ? [] : [`not at the broker (yet): ${shortList(unpublished)}`]),
  ];
}

function clusterRow(cluster: ClusterStatus): string[] {
  const { id, region, zone, lease, renewedAgoMs, services, readyEndpoints, joinedAt } = cluster;
  const state = joinedAt === undefined ? 'not joined' : lease;
  const renewed = renewedAgoMs === undefined ? '-' : `${formatAge(renewedAgoMs)} ago`;
  return [id, region || '-', zone || '-', state, renewed, String(services), String(readyEndpoints)];
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
