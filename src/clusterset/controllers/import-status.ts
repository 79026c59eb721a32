// The status of a ServiceImport: its clusters, and whether it can be used here.

import { isSameJson } from '../../base/json.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { conditionOf, formatTime, type WantedCondition, withConditions } from '../../kube/objects/conditions.ts';
import type { AgentContext } from '../copies/context.ts';
import type { ClusterSetIpPolicy } from '../kinds/cluster-set.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import type { Merge } from '../rules/merge/merged.ts';
import type { HeldAddresses } from './import-addresses.ts';

export interface ImportStatusFacts {
  readonly merge: Merge;
  readonly held: HeldAddresses;
  /** Where its address comes from. */
  readonly source: ClusterSetIpPolicy;
}

const notCarried =
  'it has an address that nothing in this cluster serves: no portolan proxy has reported lately; run one on each node, or let the set derive Services (clusterSetIP: derived)';

export async function writeImportStatus(
  context: AgentContext,
  object: ServiceImport,
  facts: ImportStatusFacts,
): Promise<void> {
  const stamp = { now: formatTime(context.world.clock.wallMs()), observedGeneration: object.metadata.generation };
  const present = conditionOf(object.status?.conditions, 'Ready');
  const judged = readyCondition(facts, context.hasProxy());
  // Until the proxies of this cluster have been listed, the last condition stays.
  const wanted = judged.status === 'Unknown' ? (present ?? judged) : judged;
  const status: ServiceImport['status'] = {
    ...object.status,
    clusters: facts.merge.clusters.map((cluster) => ({ cluster })),
    conditions: [...withConditions(object.status?.conditions, [wanted], stamp)],
    endpointSliceObjects: 'Present',
  };
  if (isSameJson(status, object.status)) return;
  try {
    await context.home.updateStatus(serviceImportType, { ...object, status });
  } catch (error) {
    // Removed meanwhile: the next event brings the key back.
    if (!isNotFound(error)) throw error;
  }
}

/**
 * Ready only if connections to it are carried: imported, with an address, and served by a proxy or a derived Service
 * here.
 */
export function readyCondition({ held, source }: ImportStatusFacts, hasProxy: boolean | undefined): WantedCondition {
  const notReady = (reason: string, message: string): WantedCondition => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  if (held.exhausted.length > 0) {
    const families = held.exhausted.join(' and ');
    return notReady(
      'Exhausted',
      `no ${families} address is left in the clusterset's range; widen it or remove imports`,
    );
  }
  if (held.unsupported.length > 0 && held.ips.length === 0) {
    const families = held.unsupported.join(' and ');
    return notReady('IPFamilyNotSupported', `the clusterset has no ${families} range to take an address from`);
  }
  if (held.problem !== undefined) return notReady('DerivedServiceFailed', held.problem);
  const ready = (message: string): WantedCondition => ({ type: 'Ready', status: 'True', reason: 'Ready', message });
  if (source === 'none') return ready('clients reach its endpoints by name');
  if (source === 'derived') return ready('a Service of this cluster carries its traffic');
  if (hasProxy === true) return ready('portolan proxy carries its traffic');
  if (hasProxy === false) return notReady('NotCarried', notCarried);
  return { type: 'Ready', status: 'Unknown', reason: 'Pending', message: 'not known yet whether a proxy runs here' };
}
