// Checks of membership: broker, agents, leases, credentials, lag. Pure.

import { formatElapsed, formatMoment } from '../../base/text/elapsed.ts';
import { isOverdue } from '../../clusterset/explain/cluster-status.ts';
import { byKey } from '../../clusterset/explain/set-state.ts';
import { inventoryCondition } from '../../clusterset/rules/inventory/inventory-condition.ts';
import { restoreNoticed } from '../../clusterset/rules/leases/broker-restore.ts';
import { homeAwayOf } from '../../clusterset/rules/leases/home-away.ts';
import { sealingCondition } from '../../clusterset/rules/sealing/sealing-condition.ts';
import { conditionOf, formatTime } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import type { PartStatus } from '../../kube/objects/part-status.ts';
import type { Checks, Found } from '../diagnosis.ts';
import { type ClusterFacts, need, needSet } from '../facts.ts';

export const clusterSetChecks: Checks = {
  PTL0201: (facts) => {
    const broker = need(facts.broker);
    if (broker.kind !== 'away') return [];
    return [{ subject: need(facts.membership)?.server ?? 'broker', message: `it does not answer: ${broker.why}` }];
  },
  PTL0202: (facts) => [...silentParts(facts, ['agent']), ...silentMembers(facts)],
  PTL0203: (facts) =>
    (needSet(facts)?.state.members ?? []).flatMap(({ id, memory }) =>
      memory?.heldUntil === undefined
        ? []
        : [
            {
              subject: `cluster ${id}`,
              message: `it has come back ${memory.returns} times lately and is held down until ${memory.heldUntil}`,
              since: memory.since,
            },
          ],
    ),
  PTL0204: (facts) => {
    const broker = need(facts.broker);
    const membership = need(facts.membership);
    if (membership === undefined) return [];
    const subject = `credentials of cluster ${membership.clusterId}`;
    if (broker.kind === 'refused') return [{ subject, message: broker.why }];
    const issuedMs = Date.parse(membership.tokenIssuedAt);
    const endMs = Date.parse(membership.tokenExpiresAt);
    if (Number.isNaN(issuedMs) || Number.isNaN(endMs)) return [];
    if (endMs <= facts.nowMs) return [{ subject, message: `they expired ${formatMoment(endMs, facts.nowMs)}` }];
    if (facts.nowMs - issuedMs < lateShare * (endMs - issuedMs)) return [];
    const message = `they end ${formatMoment(endMs, facts.nowMs)} and were not renewed`;
    return [{ subject, message, severity: 'warning' }];
  },
  PTL0205: (facts) =>
    (needSet(facts)?.state.members ?? []).flatMap(({ id, lease }) => {
      const since = restoreNoticed(lease);
      if (since === undefined) return [];
      const message = `cluster ${id} found its lease at the broker older than it had left it`;
      return [{ subject: 'broker', message, since }];
    }),
  PTL0207: (facts) =>
    (needSet(facts)?.state.members ?? []).flatMap(({ id, lease }) => {
      const away = homeAwayOf(lease);
      if (away === undefined) return [];
      return [{ subject: `home of cluster ${id}`, message: 'it does not answer the agent there', since: away.since }];
    }),
  PTL0208: (facts) => {
    const state = needSet(facts)?.state;
    const writers = state?.policy.inventoryWriters ?? [];
    if (state === undefined || writers.length === 0) return [];
    const subject = `inventory of clusterset ${state.set.metadata.name}`;
    const alive = state.members.filter((member) => member.verdict === 'alive' && !isOverdue(member, state));
    if (!writers.some((id) => alive.some((member) => member.id === id)))
      return [{ subject, message: `nobody keeps it: none of ${writers.join(', ')} is a member that lives` }];
    const condition = conditionOf(state.set.status?.conditions, inventoryCondition);
    if (condition?.status === 'True') return [];
    if (condition === undefined)
      return [{ subject, message: `${writers[0]} has not written it yet`, severity: 'info' }];
    return [{ subject, message: condition.message, since: condition.lastTransitionTime }];
  },
  PTL0209: (facts) => {
    const state = needSet(facts)?.state;
    if (state?.policy.sealing.isAllowed !== true) return [];
    return state.members.flatMap(({ id, cluster }) => sealingProblem(id, cluster.status?.conditions));
  },
  PTL0304: (facts) => {
    const behind = needSet(facts)?.behind ?? [];
    if (behind.length === 0) return [];
    const exports = byKey(need(facts.exports));
    return behind.map((service) => {
      const ready = conditionOf(exports.get(service)?.status?.conditions, 'Ready');
      const isRefused = ready?.status === 'False' && heldUpReasons.has(ready.reason);
      const message = isRefused ? `it is not exported: ${ready.message}` : 'it is behind the broker here';
      return { subject: service, message };
    });
  },
  PTL0306: (facts) =>
    (needSet(facts)?.refused ?? []).map(({ cluster, service, why }) => ({
      subject: `${service} of cluster ${cluster}`,
      message: `the record ${why}`,
    })),
};

/** Reasons of an export's Ready condition for which its record is not at the broker. */
const heldUpReasons: ReadonlySet<string> = new Set(['Failed', 'QuotaExceeded', 'Refused']);

/** Tokens are renewed after a third of their life. */
const lateShare = 0.5;

function silentMembers(facts: ClusterFacts): Found[] {
  const state = needSet(facts)?.state;
  if (state === undefined) return [];
  return state.members.flatMap((member) => {
    const { id, lease, leaseReadMs, memory, verdict } = member;
    const subject = `agent of cluster ${id}`;
    const renewedMs = Date.parse(lease?.spec?.renewTime ?? '');
    if (isOverdue(member, state)) {
      const message = `it has not renewed its lease for ${formatElapsed(leaseReadMs - renewedMs)}`;
      return [{ subject, message, since: formatTime(renewedMs) }];
    }
    if (verdict !== 'stale' || memory?.heldUntil !== undefined || homeAwayOf(lease) !== undefined) return [];
    return [{ subject, message: 'its lease has run out', since: memory?.since }];
  });
}

export function silentParts({ parts }: ClusterFacts, names: readonly string[]): Found[] {
  return need(parts)
    .filter(({ part, state }) => names.includes(part) && state === 'silent')
    .map(silence);
}

function silence({ part, node, reportedAgoMs, reportedAt }: PartStatus): Found {
  const subject = `${part} on ${node}`;
  if (reportedAgoMs === undefined) return { subject, message: 'it has never reported' };
  const message = `it has not reported for ${formatElapsed(reportedAgoMs)}`;
  return { subject, message, since: reportedAt };
}

/** What may be somebody's doing is an error. */
const sealingErrors = new Set(['KeyChanged', 'RecordsRefused']);

function sealingProblem(id: string, conditions: readonly Condition[] | undefined): Found[] {
  const subject = `sealed exports of cluster ${id}`;
  const condition = conditionOf(conditions, sealingCondition);
  if (condition === undefined)
    return [{ subject, message: 'it has not reported a key: its agent is older or does not run', severity: 'info' }];
  if (condition.status === 'True') return [];
  const { message = '', reason, lastTransitionTime: since } = condition;
  return [{ subject, message, since, ...(sealingErrors.has(reason ?? '') && { severity: 'error' as const }) }];
}
