// Exports every Service that a ServiceExportPolicy selects, by making a ServiceExport for it and taking it away when no
// policy selects it any more. Exports made by hand are left alone, whatever the policies say.

import type { WorkResult } from '../../../base/queue.ts';
import { deleteIfPresent } from '../../../kube/client/absent.ts';
import { apply, replaceWith } from '../../../kube/client/apply.ts';
import type { Informer } from '../../../kube/controller/informer.ts';
import type { AgentContext } from '../../copies/context.ts';
import { exportsByPolicy, ownService } from '../../copies/home-copies.ts';
import { serviceExportType } from '../../kinds/service-export.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../../kinds/service-export-policy.ts';
import { isMadeHere, policyLabel, withKeptMarks } from '../../rules/agent-marks.ts';
import { derivedFor } from '../../rules/derived-service.ts';
import { exportOfPolicy, policyFor } from '../../rules/export-policies.ts';
import { parseServiceKey } from '../../rules/names.ts';

export interface PolicyController {
  /** Reconciles a service: creates, keeps or removes its export. */
  reconcile(key: string): Promise<WorkResult | undefined>;
  /** Reconciles a policy's status: the number of exports it has made. */
  reconcileStatus(name: string): Promise<WorkResult | undefined>;
}

export function createPolicyController(
  context: AgentContext,
  policies: Informer<ServiceExportPolicy>,
): PolicyController {
  const { copies, home, membership } = context;

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const present = copies.exports.get(key);
    // On any other object the label may be a copy.
    const isOurs = present?.metadata.labels?.[policyLabel] !== undefined && isMadeHere(present, membership.clusterId);
    if (present !== undefined && !isOurs) return undefined;
    const policy = choose(key);
    if (policy !== undefined)
      await apply({
        client: home,
        type: serviceExportType,
        present,
        change: replaceWith(withKeptMarks(exportOfPolicy(key, policy, membership.clusterId), present)),
      });
    else if (present !== undefined) await deleteIfPresent(home, serviceExportType, present.metadata);
    return undefined;
  }

  /** The first by name of those that select the service; undefined if none does, or there is no such service. */
  function choose(key: string): ServiceExportPolicy | undefined {
    const service = ownService(copies, key);
    const namespace = copies.namespaces.get(parseServiceKey(key).namespace);
    if (service === undefined || namespace === undefined || derivedFor(service) !== undefined) return undefined;
    return policyFor(policies.values(), { namespace, service });
  }

  async function reconcileStatus(name: string): Promise<WorkResult | undefined> {
    const policy = policies.get(name);
    if (policy === undefined) return undefined;
    const exportedServices = copies.exports.countByIndex(exportsByPolicy, name);
    const observedGeneration = policy.metadata.generation;
    const { status } = policy;
    if (status?.exportedServices === exportedServices && status.observedGeneration === observedGeneration)
      return undefined;
    await home.updateStatus(serviceExportPolicyType, {
      ...policy,
      status: { ...status, exportedServices, observedGeneration },
    });
    return undefined;
  }

  return { reconcile, reconcileStatus };
}
