// The older form of exports at a broker: one ServiceImport per service and cluster, with the service's own address and
// ports inside. Read as shards while clusters are upgraded one by one, and written for those that are not yet. Pure.

import { boundedName } from '../../kube/objects/bounded-name.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  isReady,
  sourceClusterLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import type { Service } from '../../kube/objects/service.ts';
import { isHeadless } from '../../kube/objects/service.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import type { ServiceShardSpec } from '../kinds/service-shard.ts';
import type { ServiceKey } from './names.ts';

const prefix = 'lighthouse.submariner.io';
const legacyNameLabel = `${prefix}/sourceName`;
const legacyNamespaceLabel = `${prefix}/sourceNamespace`;
const legacyClusterLabel = `${prefix}/sourceCluster`;

export interface LegacyOrigin {
  readonly cluster: string;
  readonly service: ServiceKey;
}

/** The cluster and service it belongs to; undefined for imports of today's form. */
export function legacyOrigin(object: ServiceImport): LegacyOrigin | undefined {
  const labels = object.metadata.labels ?? {};
  const name = labels[legacyNameLabel];
  const namespace = labels[legacyNamespaceLabel];
  const cluster = labels[legacyClusterLabel] ?? object.status?.clusters?.[0]?.cluster;
  if (!name || !namespace || !cluster) return undefined;
  return { cluster, service: { name, namespace } };
}

/**
 * The same for the slices that older agents publish beside. The first of them wrote the name of the import where later ones
 * write that of the service.
 */
export function legacySliceOrigin(slice: EndpointSlice): LegacyOrigin | undefined {
  const labels = slice.metadata.labels ?? {};
  const name = labels[legacyNameLabel] ?? labels[importedServiceNameLabel];
  const namespace = labels[legacyNamespaceLabel];
  const cluster = labels[sourceClusterLabel] ?? labels[legacyClusterLabel];
  if (!name || !namespace || !cluster) return undefined;
  return { cluster, service: { name, namespace } };
}

/** Its age is that of the record: older agents said nothing of the export itself. */
export function legacyShardSpec(object: ServiceImport): ServiceShardSpec {
  const { type, ports, sessionAffinity, sessionAffinityConfig, ips = [] } = object.spec;
  return {
    type,
    exportedAt: object.metadata.creationTimestamp ?? '',
    ports: ports ?? [],
    sessionAffinity: sessionAffinity ?? 'None',
    sessionAffinityConfig,
    ipFamilies: ips.some((ip) => ip.includes(':')) ? ['IPv6'] : ['IPv4'],
    clusterIPs: type === 'Headless' ? [] : [...ips],
  };
}

/**
 * The endpoints behind it: the pods of a headless service, else the service's own address. Slices beside the latter
 * only say whether it has ready pods; without any it is taken to have some.
 */
export function legacySlices(object: ServiceImport, beside: readonly EndpointSlice[]): EndpointSlice[] {
  if (object.spec.type === 'Headless') return [...beside];
  const isHealthy = beside.length === 0 || beside.some(({ endpoints }) => (endpoints ?? []).some(isReady));
  return (object.spec.ips ?? []).map((ip) => ({
    apiVersion: apiVersionOf(endpointSliceType),
    kind: endpointSliceType.kind,
    metadata: { name: `${object.metadata.name}.${ip.replaceAll(':', '-')}`, namespace: object.metadata.namespace },
    addressType: ip.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: isHealthy ? [{ addresses: [ip], conditions: { ready: true, serving: true, terminating: false } }] : [],
    ports: (object.spec.ports ?? []).map(({ name, protocol, port }) => ({
      name: name ?? '',
      protocol: protocol ?? 'TCP',
      port,
    })),
  }));
}

/** The record that an older agent would publish for this service. */
export function planLegacyImport(service: Service, cluster: string, namespace: string): ServiceImport {
  const { name, namespace: ownNamespace = '' } = service.metadata;
  const spec = service.spec ?? {};
  return {
    apiVersion: apiVersionOf(serviceImportType),
    kind: serviceImportType.kind,
    metadata: {
      name: boundedName(`${name}-${ownNamespace}-${cluster}`),
      namespace,
      labels: { [legacyNameLabel]: name, [legacyNamespaceLabel]: ownNamespace, [legacyClusterLabel]: cluster },
      annotations: { 'origin-name': name, 'origin-namespace': ownNamespace },
    },
    spec: {
      type: isHeadless(service) ? 'Headless' : 'ClusterSetIP',
      ports: (spec.ports ?? []).map(({ name: portName, protocol, port, appProtocol }) => ({
        ...(portName === undefined || portName === '' ? {} : { name: portName }),
        protocol: protocol ?? 'TCP',
        port,
        appProtocol,
      })),
      ...(isHeadless(service) ? {} : { ips: spec.clusterIPs ?? [] }),
      sessionAffinity: spec.sessionAffinity ?? 'None',
    },
  };
}
