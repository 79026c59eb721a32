// The report that `portolan status` prints, and how it looks as text. Pure.

import { formatElapsed } from '../../base/text/elapsed.ts';
import type { ClusterStatus } from '../../clusterset/explain/cluster-status.ts';
import type { RefusedRecord } from '../../clusterset/explain/refused-records.ts';
import type { ServiceStatus } from '../../clusterset/explain/service-status.ts';
import type { Enforcement } from '../../clusterset/rules/access/enforcement.ts';
import { describeLease } from '../../clusterset/rules/leases/lease-memory.ts';
import type { PairReach } from '../../clusterset/rules/networks/pairs.ts';
import type { PartStatus } from '../../kube/objects/part-status.ts';
import { formatEnforcement } from '../access-at-home.ts';
import { formatOutside, type OutsideStatus } from '../outside.ts';
import { formatPairs } from '../pairs.ts';
import { formatParts } from '../parts.ts';
import { formatCount, formatTable } from '../table.ts';

export interface Status {
  readonly clusterset: string;
  readonly broker: string;
  /** Empty where the admin looks at the broker itself. */
  readonly cluster: string;
  /** Set if the broker did not answer: everything else is what this cluster last knew. */
  readonly brokerProblem: string | undefined;
  /** RFC 3339: the agent here has had no answer from the broker since then; absent if it did not notice yet, or does not run. */
  readonly brokerAwaySince?: string | undefined;
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
  /** How records are read and leases judged, where that is not as usual. */
  readonly notes?: readonly string[];
  /** The parts that report in this cluster's home; undefined if that may not be read. */
  readonly parts: readonly PartStatus[] | undefined;
  /** How this cluster reaches the others; none where all share one network. */
  readonly pairs?: readonly PairReach[];
  /** Whether calls of other clusters are limited here; absent where access is open, or may not be read. */
  readonly access?: Enforcement;
  /** Keys of all exports here; absent if that is not known. */
  readonly exported?: readonly string[];
  /** Peers and external services in this cluster's home. */
  readonly outside?: OutsideStatus;
}

/** With the findings of doctor's checks, one line each, with the code and the next step. */
export interface JudgedStatus extends Status {
  /** Errors; empty if there is none. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  /** Checks that could not run, and why. */
  readonly unchecked: readonly string[];
  /** Whether one of them is of the cluster itself, not only of a part that was not asked. */
  readonly isIncomplete: boolean;
}

export interface StaleCluster {
  readonly cluster: string;
  readonly why: string;
  /** Keys of services. */
  readonly withdrawn: readonly string[];
  readonly notReady: readonly string[];
  readonly kept: readonly string[];
}

/** For people. */
export function statusText(status: JudgedStatus, { isWide = false } = {}): string[] {
  const { clusters, services, behind, unpublished } = status;
  const isBroker = status.cluster === '';
  const inConflict = services.filter(({ conflicts }) => conflicts.length > 0);
  return [
    `clusterset ${status.clusterset} at ${status.broker}, ${isBroker ? 'seen at the broker' : `this cluster is ${status.cluster}`}`,
    ...(status.brokerProblem === undefined
      ? []
      : [`the broker does not answer (${status.brokerProblem}): this is the last known state, ${knownUntil(status)}`]),
    '',
    ...formatTable(
      ['CLUSTER', 'REGION', 'ZONE', 'LEASE', 'RENEWED', 'SERVICES', 'READY'],
      clusters.map((one) => clusterRow(one, status.brokerProblem !== undefined)),
    ),
    '',
    ...(services.length === 0
      ? ['nothing is exported yet: portolan export NAMESPACE/NAME']
      : formatTable(
          ['SERVICE', 'TYPE', 'CLUSTERS', 'CONFLICTS', 'IMPORT', ...(isWide ? ['ADDRESSES'] : [])],
          services.map((one) => [...serviceRow(one), ...(isWide ? [one.addresses?.join(',') || '-'] : [])]),
        )),
    '',
    `${formatCount(services.length, 'service')}, ${inConflict.length} in conflict${inConflict.length === 0 ? '' : ' (portolan explain NAMESPACE/NAME says why)'}`,
    ...status.stale.map(staleLine),
    ...clusters.flatMap(drainLines),
    ...clusters.flatMap(({ id, network }) =>
      network === undefined ? [] : [`network: cluster ${id} is in ${network}`],
    ),
    ...formatPairs(status.pairs ?? []),
    ...formatEnforcement(status.access, (key) => status.exported?.includes(key) === true),
    ...clusters.flatMap(({ id, access }) => (access === undefined ? [] : [`access: cluster ${id}: ${access}`])),
    ...status.refused.map(({ cluster, service, why }) => `not counted: the record of ${service} by ${cluster} ${why}`),
    ...clusters.flatMap(({ id, problem }) =>
      problem === undefined ? [] : [`cluster ${id} cannot be read: ${problem}`],
    ),
    ...(status.brokerProblem === undefined && !isBroker ? [lagLine(behind)] : []),
    ...(unpublished.length === 0 ? [] : [`not at the broker (yet): ${shortList(unpublished)}`]),
    ...(status.notes ?? []),
    ...(status.parts === undefined ? ['parts: you may not read Leases in this home'] : partLines(status.parts)),
    ...(status.outside === undefined ? [] : formatOutside(status.outside)),
    ...status.problems.map((problem) => `problem: ${problem}`),
    ...status.warnings.map((warning) => `warning: ${warning}`),
    ...notTried(status.parts ?? []),
    ...(status.unchecked.length === 0 ? [] : [`not checked: ${status.unchecked.join('; ')}`]),
  ];
}

function knownUntil({ brokerAwaySince }: Status): string {
  if (brokerAwaySince === undefined) return 'and may be outdated';
  return `of ${brokerAwaySince}, when the agent here had its last answer`;
}

function partLines(parts: readonly PartStatus[]): string[] {
  return parts.length === 0 ? [] : ['', ...formatParts(parts)];
}

/** Only doctor makes connections. */
function notTried(parts: readonly PartStatus[]): string[] {
  const proxies = parts.filter(({ part, state }) => part === 'proxy' && state === 'reporting').length;
  const count = proxies === 1 ? '1 proxy' : `${proxies} proxies`;
  return proxies === 0 ? [] : [`not tried: connections from ${count}; portolan doctor tries some`];
}

function lagLine(behind: readonly string[]): string {
  if (behind.length === 0) return 'lag: none, all imports are up to date';
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

function leaseText({ lease, homeAwaySince, memory, problem, joinedAt }: ClusterStatus, isOld: boolean): string {
  if (isOld) return `unknown (was ${describeLease(memory)})`;
  if (lease === 'stale') return describeLease(memory);
  if (problem !== undefined) return 'not readable';
  if (lease === 'home away') return `home away since ${homeAwaySince}`;
  if (joinedAt === undefined) return 'not joined';
  return lease === 'silent' ? 'silent: its agent does not renew' : lease;
}

function drainLines({ id, draining }: ClusterStatus): string[] {
  if (draining === 'all') return [`draining: cluster ${id} takes no new connections`];
  return draining.length === 0 ? [] : [`draining: cluster ${id} takes no new connections for ${shortList(draining)}`];
}

function clusterRow(cluster: ClusterStatus, isOld: boolean): string[] {
  const { id, region, zone, renewedAgoMs, services, readyEndpoints } = cluster;
  const renewed = renewedAgoMs === undefined ? '-' : `${formatElapsed(Math.max(0, renewedAgoMs))} ago`;
  return [id, region || '-', zone || '-', leaseText(cluster, isOld), renewed, String(services), String(readyEndpoints)];
}

function serviceRow(status: ServiceStatus): string[] {
  const { service, type, clusters, excluded, conflicts, importedAs, import: state } = status;
  const left = excluded.length === 0 ? '' : ` (not ${excluded.join(',')})`;
  const imported = importedAs === undefined ? state : `${state}, as ${importedAs}`;
  return [service, type, `${clusters.join(',') || '-'}${left}`, conflicts.join(',') || '-', imported];
}

const namesShownMax = 5;

function shortList(names: readonly string[]): string {
  const more = names.length > namesShownMax ? ` and ${names.length - namesShownMax} more` : '';
  return `${names.slice(0, namesShownMax).join(', ')}${more}`;
}
