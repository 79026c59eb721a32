// The account of node proxies in their own home: what they read, and their Leases. An installation on Kubernetes uses the
// same objects. Pure.

import { ticketRule } from '../../kube/objects/admin-ticket.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
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
} from '../../kube/objects/rbac.ts';
import { clusterSetDnsName } from '../rules/clusterset-dns.ts';

export const proxyAccountName = 'portolan-proxy';
const clusterRoleName = 'portolan:proxy';

export function proxyObjects(): Manifest[] {
  const place = { name: proxyAccountName, namespace: systemNamespace };
  const subjects: Subject[] = [{ kind: 'ServiceAccount', ...place }];
  return [
    manifest(namespaceType, { name: systemNamespace }, {}),
    manifest(serviceAccountType, place, {}),
    manifest(clusterRoleType, { name: clusterRoleName }, { rules: clusterRules }),
    manifest(
      clusterRoleBindingType,
      { name: clusterRoleName },
      { subjects, roleRef: roleRefOf('ClusterRole', clusterRoleName) },
    ),
    manifest(roleType, place, { rules: systemRules }),
    manifest(roleBindingType, place, { subjects, roleRef: roleRefOf('Role', place.name) }),
  ];
}

/** By choice: proxies that carry the cluster IPs of Services read them. */
export function proxyServicesObjects(): Manifest[] {
  const name = 'portolan:proxy-services';
  const subjects: Subject[] = [{ kind: 'ServiceAccount', name: proxyAccountName, namespace: systemNamespace }];
  const rules: PolicyRule[] = [{ apiGroups: [''], resources: ['services'], verbs: [...readVerbs] }];
  return [
    manifest(clusterRoleType, { name }, { rules }),
    manifest(clusterRoleBindingType, { name }, { subjects, roleRef: roleRefOf('ClusterRole', name) }),
  ];
}

const clusterRules: PolicyRule[] = [
  { apiGroups: ['multicluster.x-k8s.io'], resources: ['serviceimports', 'serviceexports'], verbs: [...readVerbs] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: [...readVerbs] },
  // Whose address is whose.
  { apiGroups: ['portolan.dev'], resources: ['addressclaims'], verbs: [...readVerbs] },
  { apiGroups: ['about.k8s.io'], resources: ['clusterproperties'], verbs: [...readVerbs] },
  // Names of clients in flows.
  { apiGroups: [''], resources: ['pods'], verbs: [...readVerbs] },
  // Zone and pod range of the node.
  { apiGroups: [''], resources: ['nodes'], verbs: [...readVerbs] },
  { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list'] },
  ticketRule,
];

const systemRules: PolicyRule[] = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update', 'delete'] },
  // Where the clusters are, how far traffic goes, and the set's address ranges.
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [clusterSetDnsName], verbs: [...readVerbs] },
  // With --envoy: whose connections go to the node's Envoy.
  { apiGroups: ['portolan.dev'], resources: ['peerservices', 'meshexternalservices'], verbs: [...readVerbs] },
];
