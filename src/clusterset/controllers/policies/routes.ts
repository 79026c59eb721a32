// What this cluster's ServiceImportPolicies, the ClusterSet and exporters want for an import, as annotations on it, and the status of
// the policies.

import { isSameJson } from '../../../base/json.ts';
import type { WorkResult } from '../../../base/queue.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import { formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import type { AgentContext } from '../../copies/context.ts';
import { importsByPolicy } from '../../copies/home-copies.ts';
import type { CountedRecord } from '../../copies/standings.ts';
import type { ServiceImport } from '../../kinds/service-import.ts';
import { type ServiceImportPolicy, serviceImportPolicyType } from '../../kinds/service-import-policy.ts';
import type { Merge } from '../../rules/merge/merged.ts';
import { parseServiceKey, type ServiceKey } from '../../rules/names.ts';
import {
  choiceProblem,
  type ImportSubject,
  policyOfImport,
  routingOf,
  selectsImport,
} from '../../rules/routing/import-policies.ts';
import { formatRouting, isNoRouting, routedByAnnotation, routingAnnotation } from '../../rules/routing/routing.ts';

interface RoutedService {
  readonly service: ServiceKey;
  readonly merge: Merge;
  readonly records: readonly CountedRecord[];
  readonly present: ServiceImport | undefined;
}

export interface Routes {
  /** Whether a policy of this cluster wants the service not to be imported. */
  isRefused(service: ServiceKey, merge: Merge): boolean;
  annotationsOf(routed: RoutedService): Record<string, string>;
  /** Reconciles a policy's status. */
  reconcileStatus(name: string): Promise<WorkResult | undefined>;
}

export function createRoutes(context: AgentContext, policies: Informer<ServiceImportPolicy>): Routes {
  const { copies, home } = context;

  function isRefused(service: ServiceKey, merge: Merge): boolean {
    return policyOf(service, merge.labels)?.spec?.accept === false;
  }

  function policyOf(service: ServiceKey, labels: Readonly<Record<string, string>>): ServiceImportPolicy | undefined {
    return policyOfImport(policies.values(), subjectOf(service, labels));
  }

  function subjectOf({ namespace, name }: ServiceKey, labels: Readonly<Record<string, string>>): ImportSubject {
    const found = copies.namespaces.get(namespace)?.metadata.labels;
    return { namespace: { name: namespace, ...(found ? { labels: found } : {}) }, name, labels };
  }

  function annotationsOf({ service, merge, records, present }: RoutedService): Record<string, string> {
    const policy = policyOf(service, merge.labels);
    const choice = policy?.spec ?? context.policy().choice;
    // A wish that makes no sense changes nothing: what held before goes on.
    if (choiceProblem(choice) !== undefined) return keptAnnotations(present);
    const exporters = records.map(({ cluster: id, record }) => {
      const { share } = record.spec;
      return { id, cluster: context.members.get(id)?.cluster, ...(share === undefined ? {} : { share }) };
    });
    const routing = routingOf(choice, exporters);
    return {
      ...(isNoRouting(routing) ? {} : { [routingAnnotation]: formatRouting(routing) }),
      ...(policy === undefined ? {} : { [routedByAnnotation]: policy.metadata.name }),
    };
  }

  async function reconcileStatus(name: string): Promise<WorkResult | undefined> {
    const policy = policies.get(name);
    if (policy === undefined) return undefined;
    const observedGeneration = policy.metadata.generation;
    const stamp = { now: formatTime(context.world.clock.wallMs()), observedGeneration };
    const status = {
      ...policy.status,
      imports: copies.imports.countByIndex(importsByPolicy, name),
      observedGeneration,
      conditions: [...withConditions(policy.status?.conditions, conditionsOf(policy), stamp)],
    };
    if (isSameJson(status, policy.status)) return undefined;
    await home.updateStatus(serviceImportPolicyType, { ...policy, status });
    return undefined;
  }

  function conditionsOf(policy: ServiceImportPolicy): WantedCondition[] {
    const problem = choiceProblem(policy.spec ?? {});
    const accepted: WantedCondition =
      problem === undefined
        ? { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'imports go by it' }
        : { type: 'Accepted', status: 'False', reason: 'Invalid', message: `${problem}; imports keep what they had` };
    const unknown = unknownClusters(policy);
    const resolved: WantedCondition =
      unknown.length === 0
        ? { type: 'Resolved', status: 'True', reason: 'Resolved', message: 'every cluster it names is a member' }
        : { type: 'Resolved', status: 'False', reason: 'UnknownCluster', message: `no member: ${unknown.join(', ')}` };
    return [accepted, resolved, overlapCondition(policy)];
  }

  function unknownClusters({ spec = {} }: ServiceImportPolicy): string[] {
    const named = [...(spec.clusters ?? []), ...(spec.exclude ?? [])].flatMap((match) => match?.clusters ?? []);
    const unknown = new Set(named.filter((id) => context.members.get(id) === undefined));
    return [...unknown].sort().slice(0, namesShownMax);
  }

  /** Another policy, earlier by name, has the say over imports that this one selects too. */
  function overlapCondition(policy: ServiceImportPolicy): WantedCondition {
    const others = policies.size > 1 ? copies.imports.values() : [];
    for (const { metadata } of others) {
      const by = metadata.annotations?.[routedByAnnotation];
      if (by === undefined || by === policy.metadata.name) continue;
      const service = parseServiceKey(`${metadata.namespace}/${metadata.name}`);
      if (!selectsImport(policy, subjectOf(service, metadata.labels ?? {}))) continue;
      const message = `${service.namespace}/${service.name} and perhaps others go by the policy ${by}, which is first by name`;
      return { type: 'Overlap', status: 'True', reason: 'OtherPolicy', message };
    }
    return { type: 'Overlap', status: 'False', reason: 'None', message: 'no other policy decides for its imports' };
  }

  return { isRefused, annotationsOf, reconcileStatus };
}

const namesShownMax = 10;

function keptAnnotations(present: ServiceImport | undefined): Record<string, string> {
  const kept = [routingAnnotation, routedByAnnotation].flatMap((name) => {
    const value = present?.metadata.annotations?.[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}
