// The kinds that the dashboard watches: those of a cluster's home, and those of a broker. Secrets are not among them.
// Only the fields that pages and checks read are kept.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { type Heartbeat, heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../../clusterset/kinds/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { type ServiceShard, serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { verdictsName } from '../../clusterset/membership/membership.ts';
import { memberRecordName } from '../../clusterset/rules/broker-layout.ts';
import { parseRecordName } from '../../clusterset/rules/names.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { type Federation, federationType } from '../../federation/kinds/federation.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  serviceNameLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { eventType, type KubernetesEvent } from '../../kube/objects/event.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { partLabel } from '../../kube/objects/part-lease.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { describeDiff, diffWithSent } from '../../peering/explain/explain.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import { type PeerExport, peerExportType } from '../../peering/kinds/peer-export.ts';
import { type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import type { KindOptions } from './kind-copy.ts';

export interface MemberKinds {
  readonly exports: ServiceExport;
  readonly imports: ServiceImport;
  readonly services: Service;
  readonly slices: EndpointSlice;
  readonly namespaces: Namespace;
  readonly policies: ServiceExportPolicy;
  readonly leases: Lease;
  readonly verdicts: ConfigMap;
  readonly claims: AddressClaim;
  readonly peers: Peer;
  readonly peerExports: PeerExport;
  readonly peerServices: PeerService;
  readonly external: MeshExternalService;
  readonly events: KubernetesEvent;
}

export interface BrokerKinds {
  readonly clusters: Cluster;
  readonly shards: ServiceShard;
  readonly heartbeats: Heartbeat;
  readonly records: ConfigMap;
  readonly federations: Federation;
  /** Parts that report at the broker: authorities. */
  readonly parts: Lease;
}

type KindTable<Kinds> = { readonly [Name in keyof Kinds]: KindOptions<Kinds[Name]> };

export const byService = 'service';

export const memberKinds: KindTable<MemberKinds> = {
  exports: { type: serviceExportType, keep: slim },
  imports: { type: serviceImportType, keep: slim },
  services: { type: serviceType, keep: slim },
  slices: { type: endpointSliceType, keep: slim, indexes: { [byService]: (slice) => serviceOf(slice) } },
  namespaces: { type: namespaceType, keep: slim },
  policies: { type: serviceExportPolicyType, keep: slim },
  leases: {
    type: leaseType,
    namespace: systemNamespace,
    keep: partLease,
  },
  verdicts: { type: configMapType, namespace: systemNamespace, fieldSelector: `metadata.name=${verdictsName}` },
  claims: { type: addressClaimType, keep: slim },
  peers: { type: peerType, keep: slim },
  peerExports: { type: peerExportType, keep: slim },
  peerServices: { type: peerServiceType, keep: withDifference },
  external: { type: meshExternalServiceType, keep: withoutSecrets },
  events: { type: eventType, keep: slim },
};

export const brokerKinds: KindTable<BrokerKinds> = {
  clusters: { type: clusterType, keep: slim },
  shards: {
    type: serviceShardType,
    keep: slim,
    indexes: { [byService]: ({ metadata }) => keyOfRecord(metadata.name) },
  },
  heartbeats: { type: heartbeatType, keep: slim },
  records: { type: configMapType, fieldSelector: `metadata.name=${memberRecordName}`, keep: slim },
  federations: { type: federationType, keep: slim },
  parts: { type: leaseType, namespace: systemNamespace, keep: partLease },
};

export function keyOfRecord(record: string): string[] {
  const service = parseRecordName(record);
  return service === undefined ? [] : [`${service.namespace}/${service.name}`];
}

/** Key of the service that a slice is of. */
export function serviceOf({ metadata }: EndpointSlice): string[] {
  const name = metadata.labels?.[importedServiceNameLabel] ?? metadata.labels?.[serviceNameLabel];
  return name === undefined ? [] : [`${metadata.namespace}/${name}`];
}

function partLease(lease: Lease): Lease | undefined {
  return lease.metadata.labels?.[partLabel] === undefined ? undefined : slim(lease);
}

function slim<T extends KubernetesObject>(object: T): T {
  const { managedFields: _fields, ...metadata } = object.metadata as T['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
}

/** On a kept PeerService: how it differs from what its owner sent. */
export const differenceAnnotation = 'dashboard/difference';

/** Judged once for each change, because it takes a digest of the whole content, which is then left out. */
function withDifference(object: PeerService): PeerService {
  const { lines, isEqual } = describeDiff(diffWithSent([object]), { isAll: false });
  const { metadata, ...rest } = slim(object);
  const { peer, id, name, fqdn } = object.spec;
  const annotations: Record<string, string> = isEqual
    ? {}
    : { [differenceAnnotation]: (lines[0] ?? '').replace(/\s+/g, ' ') };
  return { ...rest, metadata: { ...metadata, annotations }, spec: { peer, id, name, fqdn } };
}

/** Keys, certificates and a plugin's configuration may be written into the object itself; pages do not need them. */
function withoutSecrets(object: MeshExternalService): MeshExternalService {
  const { type, endpoints, tls, extension } = object.spec.destination ?? {};
  const destination = {
    ...(type && { type }),
    ...(endpoints && { endpoints }),
    ...(tls && { tls: { enabled: tls.enabled } }),
    ...(extension && { extension: { type: extension.type } }),
  };
  return { ...slim(object), spec: { ...object.spec, destination } };
}
