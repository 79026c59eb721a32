// The metrics of an agent that leads: members, exports, imports, conflicts and address pools. Read from the shared copies
// when they are asked for; an agent that has stopped shows none.

import { usableCount } from '../../addresses/candidates.ts';
import type { Metrics } from '../../base/metrics.ts';
import { type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import type { HomeCopies } from '../copies/home-copies.ts';
import type { MemberFollower } from '../members/follower.ts';
import type { LeaseVerdict } from '../rules/leases/lease-monitor.ts';
import { isOurImport } from '../rules/plan-import.ts';
import type { SetPolicy } from '../rules/set-policy.ts';

export interface MeasuredAgent {
  readonly copies: Pick<HomeCopies, 'exports' | 'imports' | 'claims'>;
  readonly members: Pick<MemberFollower, 'all'>;
  readonly verdict: (clusterId: string) => LeaseVerdict;
  readonly policy: () => Pick<SetPolicy, 'addressRanges'>;
  readonly isRunning: () => boolean;
}

type Labels = Readonly<Record<string, string>>;
type Values = Iterable<readonly [labels: Labels, value: number]>;

export function measureAgent(metrics: Metrics, agent: MeasuredAgent): void {
  const { copies, members, verdict, policy } = agent;
  const gauge = (name: string, help: string, labelNames: readonly string[], read: () => Values) =>
    metrics.gauge({
      ...{ name, help, labelNames },
      collect: (own) => {
        own.reset();
        if (agent.isRunning()) for (const [labels, value] of read()) own.set(labels, value);
      },
    });
  gauge('clusterset_member_alive', '1 while the member renews its lease at the broker.', ['member'], () =>
    members.all().map(({ id }) => [{ member: id }, verdict(id) === 'alive' ? 1 : 0] as const),
  );
  const ofImports = () => [...copies.imports.values()].filter(isOurImport);
  gauge('clusterset_exports', 'Exports of this cluster by state.', ['state'], () =>
    countStates(copies.exports.values(), exportState, ['ready', 'not_ready', 'invalid', 'pending']),
  );
  gauge('clusterset_imports', 'Imports of this cluster by state.', ['state'], () =>
    countStates(ofImports(), importState, ['ready', 'not_ready', 'pending']),
  );
  gauge('clusterset_export_conflicts', 'Exports of this cluster that conflict with those of others.', [], () => [
    [{}, [...copies.exports.values()].filter(hasConflict).length],
  ]);
  const pools = () => poolsOf(policy().addressRanges);
  gauge('address_pool_addresses', 'Addresses of a pool that can be held.', ['pool', 'family'], () =>
    pools().map(({ labels, range }) => [labels, usableCount(range)] as const),
  );
  gauge('address_pool_used_addresses', 'Addresses of a pool that are held or reserved.', ['pool', 'family'], () =>
    countUsed(pools(), copies.claims.values()),
  );
}

interface WithConditions {
  readonly status?: { readonly conditions?: Condition[] };
}

function exportState({ status }: WithConditions): string {
  if (conditionOf(status?.conditions, 'Valid')?.status === 'False') return 'invalid';
  return importState({ status });
}

function importState({ status }: WithConditions): string {
  const ready = conditionOf(status?.conditions, 'Ready')?.status;
  return ready === 'True' ? 'ready' : ready === undefined ? 'pending' : 'not_ready';
}

function hasConflict({ status }: WithConditions): boolean {
  return conditionOf(status?.conditions, 'Conflict')?.status === 'True';
}

/** All states, so that an alert sees one that has become empty. */
function countStates<T>(objects: Iterable<T>, stateOf: (object: T) => string, states: readonly string[]): Values {
  const counts = new Map(states.map((state) => [state, 0]));
  for (const object of objects) counts.set(stateOf(object), (counts.get(stateOf(object)) ?? 0) + 1);
  return Array.from(counts, ([state, count]) => [{ state }, count] as const);
}

interface Pool {
  readonly labels: Labels;
  readonly range: IpRange;
}

function poolsOf(ranges: SetPolicy['addressRanges']): Pool[] {
  return Object.entries(ranges).flatMap(([pool, texts]) =>
    [texts]
      .flat()
      .map((text) => parseRange(text))
      .filter((range) => range !== undefined)
      .map((range) => ({ labels: { pool: pool.toLowerCase(), family: range.family }, range })),
  );
}

function countUsed(pools: readonly Pool[], claims: Iterable<{ readonly spec: { readonly address: string } }>): Values {
  const counts = new Map(pools.map((pool) => [pool, 0]));
  for (const { spec } of claims) {
    const ip = parseIp(spec.address);
    const pool = ip && pools.find(({ range }) => range.family === ip.family && isInRange(ip, range));
    if (pool !== undefined) counts.set(pool, counts.get(pool)! + 1);
  }
  return Array.from(counts, ([{ labels }, count]) => [labels, count] as const);
}
