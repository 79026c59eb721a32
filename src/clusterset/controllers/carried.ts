// The slices behind Services of this cluster that its own data plane follows for an import: behind the derived Service, and behind
// the Service of a transparent name, so that its old cluster IP leads to the clusterset too.

import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { AgentContext } from '../copies/context.ts';
import type { ServiceImport } from '../kinds/service-import.ts';
import { carriedForLabel, planCarriedSlices } from '../rules/choice/carried-slices.ts';
import { preferenceOf, seenFrom } from '../rules/choice/locality.ts';
import { derivedServiceName } from '../rules/derived-service.ts';
import { localityOf } from '../rules/locality.ts';
import type { Merge } from '../rules/merge/merged.ts';
import type { ServiceKey } from '../rules/names.ts';
import { isNoRouting, readRouting, routingAnnotation } from '../rules/routing/routing.ts';
import { dropStandIn, holdStandIn } from './stand-in-service.ts';

export interface CarriedFacts {
  readonly local: ServiceKey;
  readonly written: ServiceImport;
  /** The cluster's data plane carries the address of the import, by a derived Service. */
  readonly isDerived: boolean;
  /** The slices of the import that the agent keeps in this cluster now. */
  readonly present: readonly EndpointSlice[];
}

/** Whether every endpoint of the import is picked: then its own slices do. */
export function picksAll(context: AgentContext, written: ServiceImport): boolean {
  const routing = routingOf(written);
  const preference = preferenceOf(context.policy().locality, written.spec.trafficDistribution);
  return isNoRouting(routing) && preference === 'Spread';
}

export function carriedSlices(context: AgentContext, facts: CarriedFacts, imported: readonly EndpointSlice[]) {
  const { written, local, isDerived } = facts;
  const behindDerived = isDerived && !picksAll(context, written);
  const behindOwn = isBehindOwn(context, facts);
  if (!behindDerived && !behindOwn) return [];
  const set = localityOf(context.policy().locality, [...context.members.clusters.values()]);
  const { from: self, locality } = seenFrom({ cluster: context.membership.clusterId }, set);
  const { trafficDistribution } = written.spec;
  const shared = {
    imported,
    self,
    locality,
    networks: context.networks(),
    trafficDistribution,
    routing: routingOf(written),
  };
  return [
    ...(behindDerived ? planCarriedSlices({ ...shared, behind: derivedServiceName(local) }) : []),
    ...(behindOwn ? planCarriedSlices({ ...shared, behind: local.name, hasOwnAlready: true }) : []),
  ];
}

/** Nothing routes the cluster IPs of Services of an embedded home. */
function isBehindOwn(context: AgentContext, { written, local, present }: CarriedFacts): boolean {
  if (!routingOf(written).isTransparent) return false;
  const was = present.some(
    ({ metadata: { labels, name } }) => labels?.[carriedForLabel] !== undefined && name.startsWith(`${local.name}-`),
  );
  return context.routesServices() ?? was;
}

/** For a transparent name without a Service; one that was made for a name that is transparent no more goes. */
export async function bringStandIn(
  context: AgentContext,
  { written, local }: Pick<CarriedFacts, 'written' | 'local'>,
  merge: Merge,
): Promise<void> {
  if (!routingOf(written).isTransparent) return dropStandIn(context, local);
  if (context.routesServices() === true) await holdStandIn(context, local, merge);
}

function routingOf({ metadata }: ServiceImport) {
  return readRouting(metadata.annotations?.[routingAnnotation] ?? '');
}
