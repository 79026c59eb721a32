// One row for each cluster: its lease at the broker, its parts, what it exports and to whom.

import { clusterStatus } from '../../clusterset/explain/cluster-status.ts';
import type { MemberState, SetState } from '../../clusterset/explain/set-state.ts';
import { describeLease } from '../../clusterset/rules/leases/lease-memory.ts';
import { networkOf } from '../../clusterset/rules/networks/reach.ts';
import { partStatuses } from '../../kube/objects/part-status.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import type { ClusterRow, Health, PartRow } from '../wire/rows.ts';
import { homeOf, idOf, type Landscape, pairsOf, setStateOf } from './landscape.ts';

export function clusterRows(landscape: Landscape): ClusterRow[] {
  const state = setStateOf(landscape, {});
  if (state === undefined)
    return landscape.homes.filter(({ member }) => member !== undefined).map((one) => lone(one, landscape));
  const rows = state.members.map((member) => memberRow(landscape, state, member));
  const known = new Set(rows.map(({ id }) => id));
  const others = landscape.homes.filter((one) => one.member !== undefined && !known.has(idOf(one)));
  return [...rows, ...others.map((one) => lone(one, landscape))];
}

function memberRow(landscape: Landscape, state: SetState, member: MemberState): ClusterRow {
  const { nowMs } = landscape;
  const status = clusterStatus(member, state);
  const home = homeOf(landscape, member.id);
  const renewedMs = Date.parse(member.lease?.spec?.renewTime ?? '');
  return {
    id: member.id,
    region: status.region,
    zone: status.zone,
    network: networkOf(member.cluster),
    ...judge(status, home),
    renewedMs: Number.isNaN(renewedMs) ? undefined : renewedMs,
    services: status.services,
    ready: status.readyEndpoints,
    imports: home?.isCurrent() ? home.member?.imports.size : undefined,
    isDraining: status.draining === 'all',
    ...partsIn(home, nowMs),
    exportsTo: targetsOf(member, state),
    ...(home === undefined ? {} : reachesOf(home, state, nowMs)),
  };
}

function judge(
  { lease, homeAwaySince, memory, joinedAt }: ReturnType<typeof clusterStatus>,
  home: HomeWatch | undefined,
): { health: Health; says: string } {
  if (lease === 'stale') return { health: 'stale', says: describeLease(memory) };
  if (lease === 'silent') return { health: 'failed', says: 'its agent does not renew its lease' };
  if (lease === 'home away') return { health: 'failed', says: `its home is away since ${homeAwaySince}` };
  if (joinedAt === undefined && lease === 'none') return { health: 'unknown', says: 'has not joined yet' };
  if (lease === 'none') return { health: 'unknown', says: 'has no lease' };
  const row = home?.row();
  if (row?.state === 'lost') return { health: 'failed', says: `its home does not answer: ${row.why}` };
  return { health: 'ok', says: 'alive' };
}

/** Nothing where all clusters share one network. */
function reachesOf(home: HomeWatch, state: SetState, nowMs: number): Pick<ClusterRow, 'reaches'> {
  const reaches = pairsOf(home, state, nowMs);
  return reaches.length === 0 ? {} : { reaches };
}

/** The clusters that its exports reach, with the services of all members counted. */
function targetsOf({ id, shards }: MemberState, { members }: SetState): string[] {
  const others = members.map((one) => one.id).filter((one) => one !== id);
  const limits = [...shards.values()].map(({ spec }) => spec.exportTo);
  return others.filter((other) => limits.some((only) => only === undefined || only.includes(other)));
}

function lone(watch: HomeWatch, { nowMs }: Landscape): ClusterRow {
  const row = watch.row();
  const isCurrent = watch.isCurrent();
  return {
    id: idOf(watch),
    region: '',
    zone: '',
    network: '',
    health: isCurrent ? 'ok' : row.state === 'loading' ? 'unknown' : 'failed',
    says: isCurrent ? 'its home answers' : row.why,
    renewedMs: undefined,
    services: watch.member?.exports.size ?? 0,
    ready: 0,
    imports: isCurrent ? watch.member?.imports.size : undefined,
    isDraining: false,
    ...partsIn(watch, nowMs),
    exportsTo: [],
  };
}

function partsIn(watch: HomeWatch | undefined, nowMs: number): { parts: PartRow[]; versions: string[] } {
  const parts = partStatuses(watch?.member?.leases.values() ?? [], nowMs).map((one): PartRow => {
    const { part, node, state, reportedAgoMs, version } = one;
    return { part, node, state, version, reportedMs: reportedAgoMs === undefined ? undefined : nowMs - reportedAgoMs };
  });
  const sorted = parts.sort((a, b) => (`${a.part} ${a.node}` < `${b.part} ${b.node}` ? -1 : 1));
  return { parts: sorted, versions: [...new Set(parts.map(({ version }) => version))].filter((one) => one !== '') };
}
