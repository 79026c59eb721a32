// Reports at the broker whether this cluster limits calls of other clusters as it is asked to: the condition AccessEnforced of
// its own Cluster, from the Leases of its node proxies. None for a cluster that never limited them.

import { errorText } from '../../../base/log.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import { conditionOf, formatTime, withConditions } from '../../../kube/objects/conditions.ts';
import type { Lease } from '../../../kube/objects/lease.ts';
import { type Node, nodeType } from '../../../kube/objects/node.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import type { AccessMode } from '../../kinds/cluster-set.ts';
import { enforcedCondition, enforcedWanted, enforcementOf } from '../../rules/access/enforcement.ts';
import { createReporter, patchOwnStatus, type Reporter, type ReportOptions } from './reporter.ts';

export interface EnforcementReportOptions extends ReportOptions {
  readonly clusters: Informer<Cluster>;
  /** Undefined while it is not known. */
  readonly mode: () => AccessMode | undefined;
  /** Leases of node proxies; undefined while nothing can be concluded from them. */
  readonly leases: () => readonly Lease[] | undefined;
}

const nodesReadMs = 30_000;

export function createEnforcementReporter(options: EnforcementReportOptions): Reporter {
  const { world, log, home, clusters } = options;
  const ownKey = `${options.clusterset}/${options.clusterId}`;
  let nodes: readonly string[] | undefined;
  let nodesReadAtMs: number | undefined;

  async function report(): Promise<void> {
    const [own, mode, leases] = [clusters.get(ownKey), options.mode(), options.leases()];
    if (own === undefined || mode === undefined || leases === undefined) return;
    const present = own.status?.conditions ?? [];
    if (mode === 'Open' && conditionOf(present, enforcedCondition) === undefined) return;
    if (mode !== 'Open') await readNodes();
    const nowMs = world.clock.wallMs();
    const wanted = enforcedWanted(enforcementOf({ mode, leases, nodes, nowMs }));
    const stamp = { now: formatTime(nowMs), observedGeneration: own.metadata.generation };
    const conditions = withConditions(present, [wanted], stamp);
    if (conditions === present) return;
    await patchOwnStatus(options, { conditions: [...conditions] }, own.metadata.resourceVersion);
    log.info('reported whether calls of other clusters are limited', { status: wanted.status, reason: wanted.reason });
  }

  /** A node without a proxy refuses nothing. Homes that do not let this agent list them are judged by Leases alone. */
  async function readNodes(): Promise<void> {
    const nowMs = world.clock.monotonicMs();
    if (nodesReadAtMs !== undefined && nowMs - nodesReadAtMs < nodesReadMs) return;
    nodesReadAtMs = nowMs;
    try {
      const { items } = await home.list<Node>(nodeType);
      nodes = items.map(({ metadata }) => metadata.name);
    } catch (error) {
      log.info('nodes are not listed: those without a proxy are not noticed', { error: errorText(error) });
    }
  }

  return createReporter(options, { what: 'access', report });
}
