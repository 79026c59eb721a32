// The status of a ServiceImport: its clusters, and whether it can be used here.

import { isSameJson } from '../../base/json.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { conditionOf, formatTime, type WantedCondition, withConditions } from '../../kube/objects/conditions.ts';
import type { AgentContext } from '../copies/context.ts';
import type { CountedRecord } from '../copies/counted-records.ts';
import type { ClusterSetIpPolicy } from '../kinds/cluster-set.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import type { Merge } from '../rules/merge/merged.ts';
import { formatServiceKey } from '../rules/names.ts';
import { hasOtherAddress } from '../rules/networks/other-address.ts';
import { clustersReached, type ReachFacts, reachCondition } from '../rules/networks/reach-condition.ts';
import { reachedWithoutProxy, withoutProxyCondition } from '../rules/networks/without-proxy.ts';
import { answerCondition, clustersAnswer } from '../rules/routing/answer-condition.ts';
import { readRouting, routedByAnnotation, routingAnnotation } from '../rules/routing/routing.ts';
import { conflictConditions } from './addresses/address-conflicts.ts';
import type { HeldAddresses } from './addresses/import-addresses.ts';
import type { VirtualEndpoints } from './addresses/virtual-endpoints.ts';

export interface ImportStatusFacts {
  readonly merge: Merge;
  readonly records: readonly CountedRecord[];
  readonly held: HeldAddresses;
  /** Where its address comes from. */
  readonly source: ClusterSetIpPolicy;
  /** Of a headless service. */
  readonly virtual: VirtualEndpoints | undefined;
  /** Its UDP ports that are carried between networks; undefined where no policy wants that. */
  readonly udp: ReachFacts['udp'];
}

const notRouted =
  'its address is that of a derived Service, and nothing in this cluster routes the cluster IPs of Services: its home is embedded; run portolan proxy --services on each node, or let it allocate addresses (clusterSetIP: allocate of the Cluster) and run portolan proxy on each node';

const notCarried =
  'it has an address that nothing in this cluster serves: no portolan proxy has reported lately; run one on each node, or let the set derive Services (clusterSetIP: derived)';

export async function writeImportStatus(
  context: AgentContext,
  object: ServiceImport,
  facts: ImportStatusFacts,
): Promise<void> {
  const stamp = { now: formatTime(context.world.clock.wallMs()), observedGeneration: object.metadata.generation };
  const present = conditionOf(object.status?.conditions, 'Ready');
  const judged = readyCondition(facts, { hasProxy: context.hasProxy(), routesServices: context.routesServices() });
  // Until the proxies of this cluster have been listed, the last condition stays.
  const wanted = judged.status === 'Unknown' ? (present ?? judged) : judged;
  const wantedConditions = [
    wanted,
    ...conflictConditions(context, object),
    ...reachConditions(context, object, facts),
    ...answerConditions(context, object),
  ];
  const status: ServiceImport['status'] = {
    ...object.status,
    clusters: facts.merge.clusters.map((cluster) => ({ cluster })),
    conditions: [...withConditions(object.status?.conditions, wantedConditions, stamp)],
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

/** None for an import all of whose clusters are in this network and always were. */
function reachConditions(
  context: AgentContext,
  object: ServiceImport,
  { merge, records, source, virtual, udp }: ImportStatusFacts,
): WantedCondition[] {
  const { clusters } = merge;
  const ports = merge.ports.filter(({ isExposed }) => isExposed);
  const [networks, unreachedFrom] = [context.networks(), context.unreachedFrom()];
  const gatewayChecks = context.gatewayChecks();
  const otherAddress = new Set(
    records
      .filter(({ record }) => hasOtherAddress(object.spec.ips, record.spec.clusterSetIPs))
      .map(({ cluster }) => cluster),
  );
  const excluded = excludedBy(object);
  const endpoints = new Map(records.map(({ cluster, record }) => [cluster, record.spec.readyEndpoints ?? 0]));
  const isWithoutProxy = virtual !== undefined && context.hasProxy() === false;
  const headless = { beyondBounds: virtual?.beyond, isWithoutProxy };
  const more = { udp, otherAddress, excluded, endpoints, unreachedFrom, gatewayChecks, ...headless };
  const facts = { networks, clusters, ports, source, ...more };
  const had = (type: string) => conditionOf(object.status?.conditions, type) !== undefined;
  const fine = (type: string, reason: string, message: string): WantedCondition[] =>
    had(type) ? [{ type, status: 'True', reason, message }] : [];
  const direct = 'all clusters that are used are in this network';
  return [
    clustersReached(facts) ?? fine(reachCondition, 'Reached', 'all clusters are in this network'),
    reachedWithoutProxy(facts) ?? fine(withoutProxyCondition, 'AllClusters', direct),
  ].flat();
}

/** None for an import whose clusters have always answered. */
function answerConditions(context: AgentContext, object: ServiceImport): WantedCondition[] {
  const service = formatServiceKey({ namespace: object.metadata.namespace!, name: object.metadata.name });
  const silent = context.silentFor(service);
  const isKnown = conditionOf(object.status?.conditions, answerCondition) !== undefined;
  return silent.size === 0 && !isKnown ? [] : [clustersAnswer(silent, context.membership.clusterId)];
}

function excludedBy({ metadata: { annotations } }: ServiceImport): ReachFacts['excluded'] {
  const policy = annotations?.[routedByAnnotation];
  const by = policy === undefined ? 'the choice of the ClusterSet' : `ServiceImportPolicy ${policy}`;
  return { clusters: new Set(readRouting(annotations?.[routingAnnotation] ?? '').excluded), by };
}

/**
 * Ready only if connections to it are carried: imported, with an address, and served by a proxy or a derived Service
 * here.
 */
function readyCondition({ held, source, merge }: ImportStatusFacts, planes: DataPlanes): WantedCondition {
  const notReady = (reason: string, message: string): WantedCondition => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  const { absent = [] } = held;
  if (absent.length > 0 && merge.ipFamilies.length === 0)
    return notReady(
      'IPFamilyNotSupported',
      `the service has ${absent.join(' and ')} alone, and Pods of this cluster have none, by the Pod ranges that it joined with`,
    );
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
  const { problem } = held;
  const isDerived = source === 'derived' && held.isDerived !== false;
  // The address that the import had before stays, and may be carried as before.
  const isKept = problem !== undefined && !isDerived && held.ips.length > 0;
  if (problem !== undefined && !isKept) return notReady('DerivedServiceFailed', problem);
  const ready = (message: string): WantedCondition => ({ type: 'Ready', status: 'True', reason: 'Ready', message });
  const unknown = (message: string): WantedCondition => ({ ...ready(message), status: 'Unknown', reason: 'Pending' });
  if (source === 'none') return ready('clients reach its endpoints by name');
  if (isDerived) {
    if (planes.routesServices === undefined) return unknown('not known yet whether cluster IPs are routed here');
    return planes.routesServices
      ? ready('a Service of this cluster carries its traffic')
      : notReady('NotCarried', notRouted);
  }
  if (planes.hasProxy === undefined) return unknown('not known yet whether a proxy runs here');
  if (!isKept) return planes.hasProxy ? ready(byProxy) : notReady('NotCarried', notCarried);
  if (!planes.hasProxy) return notReady('DerivedServiceFailed', problem);
  return { ...ready(`${byProxy} at the address it had: ${problem}`), reason: 'DerivedServiceFailed' };
}

const byProxy = 'portolan proxy carries its traffic';

interface DataPlanes {
  readonly hasProxy: boolean | undefined;
  /** Whether the cluster IPs of Services are routed here. */
  readonly routesServices: boolean | undefined;
}
