// Between a Service with its export, the ServiceShard and slices that publish it at the broker, and the Shard that merging
// reads. A record's service is in its labels, its cluster is the namespace it lies in. Pure. Fields that make no sense are
// left out: another cluster wrote them.

import { traceAnnotations } from '../../base/telemetry/carried-trace.ts';
import { boundedName } from '../../kube/objects/bounded-name.ts';
import {
  type EndpointSlice,
  importedServiceNameLabel,
  sliceManagedByLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { isHeadless, type Service } from '../../kube/objects/service.ts';
import { endpointShardType } from '../kinds/endpoint-shard.ts';
import type { ServiceExport } from '../kinds/service-export.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { type OwnAddressRules, translate } from './address-translation.ts';
import { sliceManager } from './agent-marks.ts';
import { portsMax, readExportRequest } from './export-request.ts';
import { readExportedMetadata } from './exported-metadata.ts';
import type { Shard, ShardPort } from './merge/shard.ts';
import { formatServiceKey, recordName, type ServiceKey } from './names.ts';
import type { PublishedSlice } from './plan-export-slices.ts';
import { type ShardAddresses, usableAddresses } from './shard-addresses.ts';

export interface ShardPlanRequest {
  readonly service: Service;
  readonly serviceExport: ServiceExport;
  readonly readyCount: number;
  /** How many EndpointShards it has; undefined if its endpoints are EndpointSlices alone. */
  readonly endpointShards?: number | undefined;
  /** Clusterset IPs that this cluster holds for the service, so that others may take the same. */
  readonly clusterSetIps: readonly string[];
  /** This member's namespace at the broker. */
  readonly namespace: string;
  readonly rules: OwnAddressRules;
  /** Addresses for clients in this cluster; undefined where its cluster IPs are routed. */
  readonly localIps?: readonly string[] | undefined;
  /** Set when a record is created; later it stays as it is. */
  readonly traceparent?: string | undefined;
}

export function planShard(request: ShardPlanRequest): ServiceShard {
  const { service, serviceExport, readyCount, endpointShards, clusterSetIps, namespace, localIps } = request;
  const spec = service.spec ?? {};
  const { labels, annotations, exportTo, onStale, isDraining, share } = readExportRequest(serviceExport);
  const affinity = spec.sessionAffinity ?? 'None';
  const addresses = shardAddresses(service, request.rules);
  const isClientIp = affinity === 'ClientIP' && spec.sessionAffinityConfig !== undefined;
  return {
    apiVersion: apiVersionOf(serviceShardType),
    kind: serviceShardType.kind,
    metadata: { name: recordName(keyOfService(service)), namespace, ...metadataOfTrace(request.traceparent) },
    spec: {
      exportedAt: serviceExport.metadata.creationTimestamp ?? '',
      type: isHeadless(service) ? 'Headless' : 'ClusterSetIP',
      ports: (spec.ports ?? []).map(({ name, protocol, port, appProtocol }) => ({
        ...(name === undefined || name === '' ? {} : { name }),
        protocol: protocol ?? 'TCP',
        port,
        appProtocol,
      })),
      sessionAffinity: affinity,
      ...(isClientIp ? { sessionAffinityConfig: spec.sessionAffinityConfig } : {}),
      internalTrafficPolicy: spec.internalTrafficPolicy,
      trafficDistribution: spec.trafficDistribution,
      ipFamilies: spec.ipFamilies ?? ['IPv4'],
      ...(serviceExport.spec?.exportedLabels === undefined ? {} : { exportedLabels: { ...labels } }),
      ...(serviceExport.spec?.exportedAnnotations === undefined ? {} : { exportedAnnotations: { ...annotations } }),
      ...(isHeadless(service) ? {} : { clusterIPs: localIps === undefined ? [...addresses.clusterIPs] : [] }),
      ...(isHeadless(service) || localIps === undefined ? {} : { localIPs: [...localIps] }),
      ...(addresses.loadBalancer.length === 0 ? {} : { loadBalancer: [...addresses.loadBalancer] }),
      ...(clusterSetIps.length === 0 ? {} : { clusterSetIPs: [...clusterSetIps] }),
      readyEndpoints: readyCount,
      endpointShards,
      exportTo,
      onStale,
      ...(isDraining ? { draining: true } : {}),
      ...(share === undefined ? {} : { share }),
    },
  };
}

function metadataOfTrace(traceparent: string | undefined) {
  return traceparent === undefined ? {} : { annotations: traceAnnotations(traceparent) };
}

/** Why a record cannot be counted, whoever wrote it; undefined if it can. One that is too large would hold up all. */
export function recordProblem({ spec }: ServiceShard): string | undefined {
  const count = spec.ports?.length ?? 0;
  return count > portsMax ? `has ${count} ports, more than ${portsMax}` : undefined;
}

/** Its age counts from when the broker stored it: what the member itself says of that could be anything. */
export function readShard(record: ServiceShard, cluster: string): Shard {
  const { spec } = record;
  const { labels, annotations } = readExportedMetadata({
    labels: spec.exportedLabels,
    annotations: spec.exportedAnnotations,
  });
  return {
    cluster,
    exportedAt: record.metadata.creationTimestamp ?? spec.exportedAt,
    type: spec.type === 'Headless' ? 'Headless' : 'ClusterSetIP',
    ports: (spec.ports ?? []).map(readPort),
    sessionAffinity: spec.sessionAffinity === 'ClientIP' ? 'ClientIP' : 'None',
    affinityTimeoutSeconds: spec.sessionAffinityConfig?.clientIP?.timeoutSeconds,
    internalTrafficPolicy: spec.internalTrafficPolicy,
    trafficDistribution: spec.trafficDistribution,
    ipFamilies: (spec.ipFamilies ?? []).filter((family) => family === 'IPv4' || family === 'IPv6'),
    labels,
    annotations,
  };
}

/** The service's own addresses as others may use them. */
export function shardAddresses(service: Service, rules: OwnAddressRules): ShardAddresses {
  const own = isHeadless(service) ? [] : (service.spec?.clusterIPs ?? []);
  const clusterIPs = own
    .map((address) => translate(address, rules.translations))
    .filter((address) => address !== undefined);
  // A service changed to another type may keep the status of its last load balancer, whose address is free by now.
  const isBalanced = service.spec?.type === 'LoadBalancer';
  const ingress = isBalanced ? (service.status?.loadBalancer?.ingress ?? []) : [];
  const loadBalancer = ingress.map(({ ip, hostname }) => ({
    ...(ip ? { ip } : {}),
    ...(hostname ? { hostname } : {}),
  }));
  return usableAddresses({ clusterIPs, loadBalancer }, rules);
}

function keyOfService(service: Service): ServiceKey {
  return { name: service.metadata.name, namespace: service.metadata.namespace ?? '' };
}

function readPort(port: {
  name?: string;
  protocol?: ShardPort['protocol'];
  port: number;
  appProtocol?: string;
}): ShardPort {
  return {
    name: port.name ?? '',
    protocol: port.protocol ?? 'TCP',
    port: port.port,
    appProtocol: port.appProtocol,
  };
}

const serviceNamespaceLabel = 'portolan.dev/service-namespace';

export interface PublishedRecordRequest {
  readonly service: ServiceKey;
  /** This member's namespace at the broker. */
  readonly namespace: string;
}

export function publishedRecord(slice: PublishedSlice, request: PublishedRecordRequest): EndpointSlice {
  const { service, namespace } = request;
  return {
    apiVersion: apiVersionOf(endpointShardType),
    kind: endpointShardType.kind,
    metadata: {
      name: boundedName(slice.name),
      namespace,
      labels: {
        [importedServiceNameLabel]: service.name,
        [serviceNamespaceLabel]: service.namespace,
        [sliceManagedByLabel]: sliceManager,
      },
    },
    addressType: slice.addressType,
    endpoints: [...slice.endpoints],
    ports: [...slice.ports],
  };
}

/** Key of the service a slice at the broker belongs to; undefined for slices that are none of ours. */
export function publishedServiceKey(slice: EndpointSlice): string | undefined {
  const name = slice.metadata.labels?.[importedServiceNameLabel];
  const namespace = slice.metadata.labels?.[serviceNamespaceLabel];
  return name === undefined || namespace === undefined ? undefined : formatServiceKey({ name, namespace });
}
