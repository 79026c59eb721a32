// The objects of an agent in its own home, on a Kubernetes: its namespace, its account, and no more rights than its
// controllers use. On the embedded home the same, where the agent is not the admin. Pure.

import { ticketRule } from '../../kube/objects/admin-ticket.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { externalNamespace, sealingNamespace, systemNamespace } from '../../kube/objects/ours.ts';
import {
  clusterRoleBindingType,
  clusterRoleType,
  type PolicyRule,
  readVerbs,
  roleBindingType,
  roleRefOf,
  roleType,
  type Subject,
  serviceAccountType,
  writeVerbs,
} from '../../kube/objects/rbac.ts';
import { clusterIdProperty, clusterSetProperty } from '../kinds/cluster-property.ts';
import { homeAccessName } from '../rules/access/home-access.ts';
import { clusterSetDnsName } from '../rules/clusterset-dns.ts';
import { gatewayName } from '../rules/networks/gateway-report.ts';
import { membershipSecretName, sealedMemoryName, sealingSecretName, verdictsName } from './membership.ts';

export const agentAccountName = 'portolan-agent';
const own = 'portolan.dev';
const mcs = 'multicluster.x-k8s.io';

export function homeObjects(): Manifest[] {
  const place = { name: agentAccountName, namespace: systemNamespace };
  return [
    manifest(namespaceType, { name: systemNamespace }, {}),
    manifest(namespaceType, { name: externalNamespace }, {}),
    manifest(namespaceType, { name: sealingNamespace }, {}),
    manifest(serviceAccountType, place, {}),
    ...grantedEverywhere('portolan:agent', clusterRules),
    ...grantedIn(systemNamespace, systemRules),
    ...grantedIn(externalNamespace, externalRules),
    ...grantedIn(sealingNamespace, sealingRules),
  ];
}

/**
 * The right to write Services, given by choice: without it no FederatedService is placed in this cluster, and no import gets
 * a Service where the set says `clusterSetIP: derived`.
 */
export function serviceWriterObjects(): Manifest[] {
  return grantedEverywhere('portolan:agent-services', servicesRules);
}

const self: Subject = { kind: 'ServiceAccount', name: agentAccountName, namespace: systemNamespace };

function grantedIn(namespace: string, rules: PolicyRule[]): Manifest[] {
  const place = { name: agentAccountName, namespace };
  return [
    manifest(roleType, place, { rules }),
    manifest(roleBindingType, place, { subjects: [self], roleRef: roleRefOf('Role', place.name) }),
  ];
}

function grantedEverywhere(name: string, rules: PolicyRule[]): Manifest[] {
  return [
    manifest(clusterRoleType, { name }, { rules }),
    manifest(clusterRoleBindingType, { name }, { subjects: [self], roleRef: roleRefOf('ClusterRole', name) }),
  ];
}

const all = [...readVerbs, ...writeVerbs];

const servicesRules: PolicyRule[] = [{ apiGroups: [''], resources: ['services'], verbs: [...writeVerbs] }];

const clusterRules: PolicyRule[] = [
  { apiGroups: [''], resources: ['namespaces'], verbs: [...readVerbs] },
  { apiGroups: [''], resources: ['services'], verbs: [...readVerbs] },
  { apiGroups: [''], resources: ['events'], verbs: ['create'] },
  // Whether every node limits calls of other clusters, where they are limited.
  { apiGroups: [''], resources: ['nodes'], verbs: ['list'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: all },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices/restricted'], verbs: ['create'] },
  { apiGroups: [mcs], resources: ['serviceexports', 'serviceimports'], verbs: all },
  // The order of exporters, as this cluster saw it, is noted on the export.
  { apiGroups: [mcs], resources: ['serviceexports'], verbs: ['patch'] },
  // An import's slices are owned by it, and some clusters let only those block an owner who may write its finalizers.
  {
    apiGroups: [mcs],
    resources: ['serviceexports/status', 'serviceimports/status', 'serviceimports/finalizers'],
    verbs: ['update'],
  },
  { apiGroups: [own], resources: ['addressclaims'], verbs: all },
  {
    apiGroups: [own],
    resources: ['serviceaccesspolicies', 'serviceexportpolicies', 'serviceimportpolicies', 'trafficshifts'],
    verbs: [...readVerbs],
  },
  {
    apiGroups: [own],
    resources: ['serviceaccesspolicies', 'serviceexportpolicies', 'serviceimportpolicies', 'trafficshifts'].map(
      (plural) => `${plural}/status`,
    ),
    verbs: ['update'],
  },
  { apiGroups: ['about.k8s.io'], resources: ['clusterproperties'], verbs: [...readVerbs, 'create'] },
  {
    apiGroups: ['about.k8s.io'],
    resources: ['clusterproperties'],
    resourceNames: [clusterIdProperty, clusterSetProperty],
    verbs: ['update'],
  },
  ticketRule,
];

const systemRules: PolicyRule[] = [
  // The Leases of parts: it renews its own, and sees whether a proxy carries the traffic of an import.
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...readVerbs, 'create', 'update', 'delete'] },
  // Its last verdicts on other members' leases, and the DNS options of the clusterset.
  { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
  {
    apiGroups: [''],
    resources: ['configmaps'],
    resourceNames: [verdictsName, clusterSetDnsName],
    verbs: ['get', 'update'],
  },
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [clusterSetDnsName], verbs: ['list', 'watch'] },
  // This cluster's gateways and the roots of its trust domain, which it reports.
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [gatewayName], verbs: [...readVerbs] },
  // What the cluster's own admin says about access.
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [homeAccessName], verbs: [...readVerbs] },
  // External services: copies of the broker's, their status and that of peers' services which lose a name to them.
  { apiGroups: [own], resources: ['meshexternalservices', 'hostnamegenerators'], verbs: all },
  {
    apiGroups: [own],
    resources: ['meshexternalservices/status', 'hostnamegenerators/status', 'peerservices/status'],
    verbs: ['update'],
  },
  // External services may not take the hostnames of these.
  { apiGroups: [own], resources: ['peerservices'], verbs: [...readVerbs] },
  // Its membership, whose token it renews.
  {
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: [membershipSecretName],
    verbs: [...readVerbs, 'patch'],
  },
];

// Its keys for sealed exports, which it makes, and what it has seen of those of others.
const sealingRules: PolicyRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
  {
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: [sealingSecretName, sealedMemoryName],
    verbs: ['get', 'patch'],
  },
];

const externalRules: PolicyRule[] = [{ apiGroups: [''], resources: ['secrets'], verbs: all }];
