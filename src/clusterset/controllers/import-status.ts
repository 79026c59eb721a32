// What a ServiceImport's status says: the clusters it is made of, and whether it can be used here.

import { isSameJson } from '../../base/json.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, type WantedCondition, withConditions } from '../../kube/objects/conditions.ts';
import type { AgentContext } from '../copies/context.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import type { Merge } from '../rules/merge/merged.ts';
import type { HeldAddresses } from './import-addresses.ts';

export interface ImportStatusFacts {
  readonly merge: Merge;
  readonly held: HeldAddresses;
}

export async function writeImportStatus(
  context: AgentContext,
  object: ServiceImport,
  facts: ImportStatusFacts,
): Promise<void> {
  const stamp = { now: formatTime(context.world.clock.wallMs()), observedGeneration: object.metadata.generation };
  const status: ServiceImport['status'] = {
    ...object.status,
    clusters: facts.merge.clusters.map((cluster) => ({ cluster })),
    conditions: [...withConditions(object.status?.conditions, [readyCondition(facts)], stamp)],
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

export function readyCondition({ held }: ImportStatusFacts): WantedCondition {
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
  return { type: 'Ready', status: 'True', reason: 'Ready', message: 'the service can be used in this cluster' };
}
