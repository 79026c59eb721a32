// The state of the clusterset in a cluster's own home, while the broker is unreachable: imports and their slices, and
// what its agent last judged of the others. Nothing of it is younger than the last contact with the broker.

import type { Clock } from '../../base/world.ts';
import type { ClusterStatus } from '../../clusterset/explain/cluster-status.ts';
import type { ServiceStatus } from '../../clusterset/explain/service-status.ts';
import { byKey, listAll, readAgentNotes } from '../../clusterset/explain/set-state.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { clusterSetDnsName } from '../../clusterset/rules/clusterset-dns.ts';
import type { LeaseMemory } from '../../clusterset/rules/leases/lease-memory.ts';
import { type ClusterLocation, readLocality } from '../../clusterset/rules/locality.ts';
import { isOffered } from '../../clusterset/rules/networks/remote-endpoint.ts';
import { sourceOfImport } from '../../clusterset/rules/routing/import-as.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import { keyOf } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { enforcementAt } from '../access-at-home.ts';
import { readPairs } from '../pairs.ts';
import { readParts } from '../parts.ts';
import type { Status } from './status-report.ts';

interface HomeStatusRequest {
  readonly home: Client;
  readonly membership: MembershipRecord;
  /** Why the broker could not be asked. */
  readonly why: string;
  readonly clock: Pick<Clock, 'wallMs'>;
}

export async function readHomeStatus({ home, membership, why, clock }: HomeStatusRequest): Promise<Status> {
  const imports = await listAll<ServiceImport>(home, serviceImportType);
  const exports = byKey(await listAll<ServiceExport>(home, serviceExportType));
  const slices = await listAll<EndpointSlice>(home, endpointSliceType, { labelSelector: sourceClusterLabel });
  const { verdicts, brokerAwaySince } = await readAgentNotes(home);
  const dns = await getOrUndefined<ConfigMap>(home, configMapType, {
    namespace: systemNamespace,
    name: clusterSetDnsName,
  });
  const places = readLocality(dns ?? {}).clusters;
  const ids = new Set([membership.clusterId, ...verdicts.keys(), ...imports.flatMap(clustersOf)]);
  return {
    clusterset: membership.clusterset,
    broker: membership.server,
    cluster: membership.clusterId,
    brokerProblem: why,
    brokerAwaySince,
    clusters: [...ids]
      .sort()
      .map((id) => clusterStatus(id, { imports, slices, memory: verdicts.get(id), place: places.get(id) })),
    services: imports.map((one) => serviceStatus(one, exports.get(sourceOfImport(one)))),
    refused: [],
    stale: [],
    behind: [],
    unpublished: [],
    parts: await readParts(home, clock),
    ...(await enforcementAt(home, clock)),
    exported: [...exports.keys()],
    pairs: await readPairs(home, { self: membership.clusterId, clock }),
  };
}

interface ClusterKnowledge {
  readonly imports: readonly ServiceImport[];
  readonly slices: readonly EndpointSlice[];
  readonly memory: LeaseMemory | undefined;
  readonly place: ClusterLocation | undefined;
}

function clusterStatus(id: string, { imports, slices, memory, place }: ClusterKnowledge): ClusterStatus {
  const theirs = slices.filter(({ metadata }) => metadata.labels?.[sourceClusterLabel] === id);
  const endpoints = theirs.flatMap((slice) => slice.endpoints ?? []);
  return {
    id,
    region: place?.region ?? '',
    zone: place?.zone ?? '',
    joinedAt: undefined,
    lease: 'unknown',
    homeAwaySince: memory?.homeAwaySince,
    memory,
    problem: undefined,
    renewedAgoMs: undefined,
    services: imports.filter((one) => clustersOf(one).includes(id)).length,
    readyEndpoints: endpoints.filter(isOffered).length,
    draining: [],
  };
}

const noConflicts = 'NoConflicts';

function serviceStatus(object: ServiceImport, serviceExport: ServiceExport | undefined): ServiceStatus {
  const conflict = conditionOf(serviceExport?.status?.conditions, 'Conflict');
  const [service, key] = [sourceOfImport(object), keyOf(object)];
  return {
    service,
    ...(key === service ? {} : { importedAs: key }),
    type: object.spec.type,
    clusters: clustersOf(object),
    excluded: [],
    // Unknown keeps the reason of before.
    conflicts: (conflict?.reason ?? noConflicts) === noConflicts ? [] : conflict!.reason.split(','),
    addresses: object.spec.ips ?? [],
    import: 'as last known',
  };
}

export function clustersOf(object: ServiceImport): string[] {
  return (object.status?.clusters ?? []).map(({ cluster }) => cluster);
}
