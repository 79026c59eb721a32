// The kinds in a bug report, and the fields of each. Everything else stays out: Secrets, ConfigMaps and Pods as a whole, labels
// and annotations of others, inline keys of external services, tokens and bundles of peers. Pure.

import { addressClaimType } from '../../addresses/address-claim.ts';
import { clusterType } from '../../clusterset/kinds/cluster.ts';
import { clusterPropertyType } from '../../clusterset/kinds/cluster-property.ts';
import { clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { federatedServiceType } from '../../clusterset/kinds/federated-service.ts';
import { serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { serviceExportPolicyType } from '../../clusterset/kinds/service-export-policy.ts';
import { serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { hostnameGeneratorType } from '../../external/kinds/hostname-generator.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { federationType } from '../../federation/kinds/federation.ts';
import { endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { eventType } from '../../kube/objects/event.ts';
import { leaseType } from '../../kube/objects/lease.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import type { ResourceType } from '../../kube/objects/object.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { peerExportType } from '../../peering/kinds/peer-export.ts';
import { peerServiceType } from '../../peering/kinds/peer-service.ts';

export interface KeptKind {
  readonly type: ResourceType;
  readonly fields: readonly string[];
}

const conditions = 'status.conditions.**';
const under = (place: string, ...fields: string[]) => fields.map((field) => `${place}.${field}`);

export const keptKinds: readonly KeptKind[] = [
  { type: namespaceType, fields: ['status.phase'] },
  { type: clusterPropertyType, fields: ['spec.value'] },
  { type: clusterSetType, fields: ['spec.**', conditions] },
  {
    type: clusterType,
    fields: [
      ...under('spec', 'namespace', 'region', 'zone', 'allowedRanges.*', 'clusterSetIP', 'draining', 'mayExport.*'),
      ...['spec.translations.**', 'spec.resolver.endpoint', 'status.resolver.endpoint', conditions],
    ],
  },
  {
    type: serviceShardType,
    fields: [
      ...under('spec', 'type', 'exportedAt', 'ports.**', 'sessionAffinity', 'sessionAffinityConfig.**', 'ipFamilies.*'),
      ...under(
        'spec',
        'clusterIPs.*',
        'loadBalancer.**',
        'clusterSetIPs.*',
        'readyEndpoints',
        'exportTo.*',
        'draining',
      ),
      ...under('spec', 'onStale', 'trafficDistribution', 'internalTrafficPolicy'),
    ],
  },
  { type: serviceExportType, fields: [conditions] },
  {
    type: serviceImportType,
    fields: [
      ...under('spec', 'type', 'ports.**', 'ips.*', 'ipFamilies.*', 'sessionAffinity', 'trafficDistribution'),
      ...['status.clusters.**', conditions],
    ],
  },
  { type: serviceExportPolicyType, fields: ['spec.namespaces.*', 'status.**'] },
  { type: federatedServiceType, fields: ['status.**'] },
  {
    type: federationType,
    fields: [
      ...under('spec', 'suffix', 'clusters.*', 'nameservers.*', 'policy', 'ttlSeconds', 'public.domain'),
      ...['spec.source.optionCode', 'spec.source.ranges.*', 'status.services', 'status.publicRecords'],
      ...['status.stubZones.**', conditions],
    ],
  },
  { type: addressClaimType, fields: ['spec.**', 'status.**'] },
  {
    type: peerType,
    fields: [
      ...under('spec', 'address', 'serverName', 'suspended', 'versions.*', 'takeOverItsStream', 'allowedDomains.*'),
      ...under('spec', 'trust.domain', 'trust.identities.*', 'retentionSeconds', 'servicesMax', 'window', 'foreign.**'),
      'status.**',
    ],
  },
  {
    type: peerExportType,
    fields: [...under('spec', 'services.*', 'peers.*', 'fqdn', 'san', 'tls', 'ingress.**'), 'status.**'],
  },
  {
    type: peerServiceType,
    fields: [
      ...under('spec', 'peer', 'id', 'sni', 'name', 'fqdn', 'sans.*', 'protocols.*', 'endpoints.**'),
      'status.**',
    ],
  },
  {
    type: meshExternalServiceType,
    fields: [
      ...['spec.match.**', 'spec.destination.type', 'spec.destination.extension.type', 'spec.destination.endpoints.**'],
      ...under('spec.destination.tls', 'enabled', 'version.**', 'verification.skip', 'verification.subjectAltNames.*'),
      'status.**',
    ],
  },
  { type: hostnameGeneratorType, fields: ['spec.**', 'status.**'] },
  { type: leaseType, fields: ['spec.**'] },
  {
    type: serviceType,
    fields: [
      ...under('spec', 'type', 'clusterIP', 'clusterIPs.*', 'ports.**', 'sessionAffinity', 'ipFamilies.*'),
      'status.loadBalancer.**',
    ],
  },
  {
    type: endpointSliceType,
    fields: ['addressType', 'ports.**', ...under('endpoints.*', 'addresses.*', 'conditions.**', 'nodeName', 'zone')],
  },
  {
    type: eventType,
    fields: ['type', 'reason', 'message', 'involvedObject.**', 'count', 'firstTimestamp', 'lastTimestamp'],
  },
];

export const keptMetadata: readonly string[] = [
  ...under('metadata', 'name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'),
  ...under('metadata', 'deletionTimestamp', 'finalizers.*', 'ownerReferences.*.kind', 'ownerReferences.*.name'),
];

const ownPrefixes = ['portolan.dev/', 'multicluster.kubernetes.io/', 'endpointslice.kubernetes.io/', 'kubernetes.io/'];
const ownAnnotations = ['node', 'mode', 'version', 'admin', 'pod', 'not-ready', 'export-to', 'broker-restored'].map(
  (name) => `portolan.dev/${name}`,
);

/** Labels of our own; of annotations, those that we know. */
export function isKeptMark(place: 'labels' | 'annotations', key: string): boolean {
  if (place === 'annotations') return ownAnnotations.includes(key);
  return ownPrefixes.some((prefix) => key.startsWith(prefix));
}
