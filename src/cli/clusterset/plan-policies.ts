// Previews the ServiceExportPolicies of a file: the exports that they would create, and which of those that policies
// made would go. By the rules of the agents, on what lies in the home now.

import { byKey, listAll } from '../../clusterset/explain/set-state.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../../clusterset/kinds/service-export-policy.ts';
import { isMadeHere, policyLabel } from '../../clusterset/rules/agent-marks.ts';
import { exportOfPolicy, policyFor } from '../../clusterset/rules/export-policies.ts';
import type { Client } from '../../kube/client/client.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { keyOf } from '../../kube/objects/object.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { completePolicy, type PlannedObjects } from './plan-file.ts';

export interface PolicyPlan {
  /** By `namespace/name`: what policies would make, or have made and would change. */
  readonly made: ReadonlyMap<string, ServiceExport>;
  /** Exports that policies made and no policy would select any more. */
  readonly gone: ReadonlySet<string>;
}

const nothing: PolicyPlan = { made: new Map(), gone: new Set() };

/** Policies act on services too: new or changed ones of the file are looked at with the policies that are there. */
export async function planPolicies(home: Client, objects: PlannedObjects, clusterId: string): Promise<PolicyPlan> {
  const policies = byKey(await listAll<ServiceExportPolicy>(home, serviceExportPolicyType));
  for (const [name, policy] of objects.policies)
    policies.set(name, await completePolicy(home, serviceExportPolicyType, policy));
  if (policies.size === 0) return nothing;
  const namespaces = byKey(await listAll<Namespace>(home, namespaceType));
  for (const [name, namespace] of objects.namespaces) namespaces.set(name, namespace);
  const present = byKey(await listAll<ServiceExport>(home, serviceExportType));
  const services = byKey(await listAll<Service>(home, serviceType));
  for (const [key, service] of objects.services) services.set(key, withLabels(service, services.get(key)));
  const made = new Map<string, ServiceExport>();
  for (const [key, service] of services) {
    const namespace = namespaces.get(service.metadata.namespace ?? '');
    const policy = namespace && policyFor(policies.values(), { namespace, service });
    if (policy === undefined || objects.exports.has(key) || !isForPolicies(present.get(key))) continue;
    if (objects.policies.has(policy.metadata.name) || objects.services.has(key))
      made.set(key, exportOfPolicy(key, policy, clusterId));
  }
  return { made, gone: new Set([...present.values()].filter(isGone).map(keyOf)) };

  function isForPolicies(object: ServiceExport | undefined): boolean {
    return object === undefined || isByPolicy(object);
  }

  function isByPolicy(object: ServiceExport): boolean {
    return object.metadata.labels?.[policyLabel] !== undefined && isMadeHere(object, clusterId);
  }

  function isGone(object: ServiceExport): boolean {
    const key = keyOf(object);
    const service = services.get(key);
    const namespace = namespaces.get(object.metadata.namespace ?? '');
    if (!isByPolicy(object) || objects.exports.has(key) || service === undefined || namespace === undefined)
      return false;
    return policyFor(policies.values(), { namespace, service }) === undefined;
  }
}

/** Applying merges labels into those that are there. */
function withLabels(service: Service, present: Service | undefined): Service {
  const labels = { ...present?.metadata.labels, ...service.metadata.labels };
  return { ...service, metadata: { ...service.metadata, labels } };
}
