// Tells of each ServiceAccessPolicy how many exports it selects and whether its rules can be enforced in this cluster.

import { isSameJson } from '../../../base/json.ts';
import type { WorkResult } from '../../../base/queue.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import { formatTime, withConditions } from '../../../kube/objects/conditions.ts';
import type { Lease } from '../../../kube/objects/lease.ts';
import { keyOf } from '../../../kube/objects/object.ts';
import { partLabel } from '../../../kube/objects/part-lease.ts';
import { callersAnnotation, readAccessReport } from '../../../kube/objects/reports/access-report.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { AccessMode } from '../../kinds/cluster-set.ts';
import { type ServiceAccessPolicy, serviceAccessPolicyType } from '../../kinds/service-access-policy.ts';
import { ruleOf } from '../../rules/exports/callers.ts';
import { policyConditions } from '../../rules/exports/policy-conditions.ts';

export interface AccessPoliciesOptions {
  readonly policies: Informer<ServiceAccessPolicy>;
  /** Undefined while it is not known. */
  readonly mode: () => AccessMode | undefined;
  /** Leases of proxies and discovery servers; undefined while they are not known. */
  readonly leases: () => readonly Lease[] | undefined;
  /** Namespaces whose policies data planes have no room for. */
  readonly closed: () => readonly string[];
}

export function createAccessPolicies(context: AgentContext, options: AccessPoliciesOptions) {
  const { copies, home, membership, world } = context;
  const { policies } = options;

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const policy = policies.get(key);
    const members = context.members.all();
    if (policy === undefined || members.length === 0) return undefined;
    const rule = ruleOf(policy);
    const wanted = policyConditions({
      ...{ rule, mode: options.mode(), networks: context.networks(), self: membership.clusterId },
      isClosed: options.closed().includes(rule.namespace),
      members: new Set(members.map(({ cluster }) => cluster.metadata.name)),
      conditions: context.members.get(membership.clusterId)?.cluster.status?.conditions,
      ...olderParts(options.leases() ?? []),
    });
    const observedGeneration = policy.metadata.generation;
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration };
    const status: ServiceAccessPolicy['status'] = {
      services: selected(policy),
      ...(observedGeneration === undefined ? {} : { observedGeneration }),
      conditions: [...withConditions(policy.status?.conditions, wanted, stamp)],
    };
    if (!isSameJson(status, policy.status)) await home.updateStatus(serviceAccessPolicyType, { ...policy, status });
    return undefined;
  }

  function selected({ metadata, spec }: ServiceAccessPolicy): number {
    if (spec?.services !== undefined)
      return spec.services.filter((name) => copies.exports.get(`${metadata.namespace}/${name}`) !== undefined).length;
    let count = 0;
    for (const key of copies.exports.keys()) if (key.startsWith(`${metadata.namespace}/`)) count += 1;
    return count;
  }

  /** Policies in the namespace of an export that came or went. */
  function policiesIn(exportKey: string): string[] {
    const namespace = exportKey.slice(0, exportKey.indexOf('/') + 1);
    return [...policies.values()].map(keyOf).filter((key) => key.startsWith(namespace));
  }

  return { reconcile, policiesIn };
}

/** Those that know nothing of policies yet. */
function olderParts(leases: readonly Lease[]) {
  const names = (part: string, isNew: (lease: Lease) => boolean) =>
    leases
      .filter((lease) => lease.metadata.labels?.[partLabel] === part && !isNew(lease))
      .map(({ metadata }) => metadata.name)
      .sort();
  return {
    olderServers: names('xds', ({ metadata }) => metadata.annotations?.[callersAnnotation] === 'true'),
    olderProxies: names('proxy', (lease) => {
      const report = readAccessReport(lease);
      return report === undefined || report.knowsCallers === true;
    }),
  };
}
