// A member by its lease and its records at the broker, as commands and pages show it. Pure.

import { formatHostPort } from '../../base/net/host-port.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { enforcedCondition } from '../rules/access/enforcement.ts';
import { refusal } from '../rules/endpoint-address.ts';
import { overdueMs, timesFor } from '../rules/leases/heartbeat-rate.ts';
import { homeAwayOf } from '../rules/leases/home-away.ts';
import type { LeaseMemory } from '../rules/leases/lease-memory.ts';
import { offeredEndpoints } from '../rules/leases/staleness.ts';
import { judgeGateways, networkOf } from '../rules/networks/reach.ts';
import type { MemberState, SetState } from './set-state.ts';

export interface ClusterStatus {
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  readonly joinedAt: string | undefined;
  /**
   * Silent: not renewed within its time, and not yet judged by the agent here. Home away: its agent renews and gets no answer
   * from its home; stale when that lasts. Unknown: the broker cannot be asked.
   */
  readonly lease: 'alive' | 'home away' | 'silent' | 'stale' | 'none' | 'unknown';
  /** RFC 3339, by the clock of that cluster; undefined if its home answers its agent. */
  readonly homeAwaySince: string | undefined;
  /** Since when it is stale, until when it is held down; absent if it lives and has not been away lately. */
  readonly memory: LeaseMemory | undefined;
  /** Set if what it has at the broker cannot be read: why. */
  readonly problem: string | undefined;
  /** Since the member wrote its lease last, as far as two clocks can be compared. */
  readonly renewedAgoMs: number | undefined;
  readonly services: number;
  /** Those that are offered to others: none of a cluster that is not trusted. */
  readonly readyEndpoints: number;
  /** Out of new connections: the whole cluster, or services of it. */
  readonly draining: 'all' | readonly string[];
  /** Its network and how other networks reach it; absent where the set has one network. */
  readonly network?: string;
  /** Whether it limits calls into it, as it reported last; absent where access is open. */
  readonly access?: string;
}

/** How a member renews, by its set. */
export type Renewing = Pick<SetState, 'policy' | 'members'>;

export function clusterStatus(member: MemberState, set: Renewing): ClusterStatus {
  const { id, cluster, record, lease, leaseReadMs, memory, problem, shards } = member;
  const renewedMs = Date.parse(lease?.spec?.renewTime ?? '');
  return {
    id,
    region: cluster.spec.region ?? record?.region ?? '',
    zone: cluster.spec.zone ?? record?.zone ?? '',
    joinedAt: record?.joinedAt,
    lease: lease === undefined && problem === undefined ? 'none' : leaseState(member, isOverdue(member, set)),
    homeAwaySince: homeAwayOf(lease)?.since,
    memory,
    problem,
    renewedAgoMs: Number.isNaN(renewedMs) ? undefined : Math.max(0, leaseReadMs - renewedMs),
    services: shards.size,
    readyEndpoints: [...shards.values()].reduce(
      (sum, shard) => sum + (offeredEndpoints(shard, { verdict: member.verdict, policy: set.policy.staleness }) ?? 0),
      0,
    ),
    ...networkOfMember(member, set),
    ...accessOfMember(member, isOverdue(member, set)),
    draining:
      cluster.spec.draining === true ? 'all' : [...shards].flatMap(([key, { spec }]) => (spec.draining ? [key] : [])),
  };
}

function networkOfMember({ cluster }: MemberState, { members, policy }: Renewing): { network?: string } {
  const clusters = members.map((one) => one.cluster);
  if (new Set(clusters.map(networkOf)).size < 2) return {};
  const rules = { virtualRanges: policy.virtualRanges };
  const { gateways, problems } = judgeGateways(cluster, {
    members: clusters,
    refusal: (address, allowedRanges) => refusal(address, { ...rules, allowedRanges }),
  });
  const addresses = gateways.map(({ address, port }) => formatHostPort(address, port)).join(', ');
  const ways = gateways.length === 0 && problems.length === 0 ? ['no gateway published'] : problems;
  const through =
    addresses === '' ? 'not reached from other networks' : `reached from other networks through ${addresses}`;
  return { network: [`network ${networkOf(cluster)}, ${through}`, ...ways].join('; ') };
}

/** A member whose agent is silent has said nothing of now. */
function accessOfMember({ cluster, verdict }: MemberState, isSilent: boolean): { access?: string } {
  const condition = conditionOf(cluster.status?.conditions, enforcedCondition);
  if (condition === undefined || condition.reason === 'Open') return {};
  const { status, reason, message } = condition;
  const said = `${enforcedCondition}=${status} ${reason}: ${message}`;
  return { access: isSilent || verdict !== 'alive' ? `not known now; before it was silent: ${said}` : said };
}

/** The agent's verdict, unless its own clock shows that the lease has run out since: a dead agent gives no verdicts. */
function leaseState({ lease, verdict }: MemberState, isSilent: boolean): ClusterStatus['lease'] {
  if (verdict === 'alive' && isSilent) return 'silent';
  return verdict === 'alive' && homeAwayOf(lease) !== undefined ? 'home away' : verdict;
}

/** Whether renewals are missing, as far as two clocks can be compared. It expires later. */
export function isOverdue({ lease, leaseReadMs }: MemberState, { policy, members }: Renewing): boolean {
  const agoMs = leaseReadMs - Date.parse(lease?.spec?.renewTime ?? '');
  const times = timesFor(policy.lease, members.length);
  const seconds = lease?.spec?.leaseDurationSeconds;
  return agoMs > overdueMs({ ...times, leaseMs: seconds === undefined ? times.leaseMs : seconds * 1000 });
}
