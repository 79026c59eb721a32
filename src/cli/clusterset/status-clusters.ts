// The parts of a status that are the same at a member and at the broker: clusters by their leases, and merged services. Pure.

import type { Foreseen } from '../../clusterset/explain/foresee.ts';
import type { MemberState } from '../../clusterset/explain/set-state.ts';
import type { LeaseVerdict } from '../../clusterset/rules/leases/lease-judge.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { ClusterStatus, ServiceStatus } from './status-report.ts';

export function clusterStatus(member: MemberState, nowMs: number): ClusterStatus {
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

/** The agent's verdict, unless its own clock shows that the lease has run out since: a dead agent gives no verdicts. */
function leaseState(lease: Lease | undefined, verdict: LeaseVerdict, agoMs: number): ClusterStatus['lease'] {
  const seconds = lease?.spec?.leaseDurationSeconds;
  return verdict === 'alive' && seconds !== undefined && agoMs > seconds * 1000 ? 'silent' : verdict;
}

/** A service as the exports of the members make it. */
export function mergedStatus(key: string, foreseen: Foreseen): Omit<ServiceStatus, 'import'> {
  const merge = foreseen.merge(key);
  return {
    service: key,
    type: merge?.type ?? 'withdrawn',
    clusters: merge?.clusters ?? [],
    excluded: merge?.excluded ?? [],
    conflicts: [...new Set((merge?.conflicts ?? []).map(({ reason }) => reason))],
  };
}
