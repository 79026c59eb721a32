// The account that a person may sign in with where there is no other: it reads what the dashboard shows, asks parts through
// the home, and changes nothing. It reads no Secret.

import { verdictsName } from '../clusterset/membership/membership.ts';
import { memberRecordName } from '../clusterset/rules/broker-layout.ts';
import { requestToken } from '../kube/client/account-token.ts';
import { install } from '../kube/client/apply.ts';
import type { Client } from '../kube/client/client.ts';
import { flowReaderRules, ticketAccount } from '../kube/objects/admin-ticket.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import type { KubernetesObject } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import {
  clusterRoleBindingType,
  clusterRoleType,
  readVerbs,
  roleBindingType,
  roleRefOf,
  roleType,
  serviceAccountType,
} from '../kube/objects/rbac.ts';

const viewerName = 'portolan-dashboard';

const read = [...readVerbs];

/** As homes/kinds.ts watches them, of homes and of the broker. */
const ownKinds = [
  ...['addressclaims', 'meshexternalservices', 'peerexports', 'peers', 'peerservices', 'serviceexportpolicies'],
  ...['clusters', 'clustersets', 'federations', 'heartbeats', 'serviceshards'],
];

/** Homes and brokers alike: members' records lie in namespaces of their own. */
const rules = [
  { apiGroups: [''], resources: ['services', 'namespaces', 'events'], verbs: read },
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [memberRecordName], verbs: read },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: read },
  { apiGroups: ['multicluster.x-k8s.io'], resources: ['serviceexports', 'serviceimports'], verbs: read },
  { apiGroups: ['about.k8s.io'], resources: ['clusterproperties'], verbs: read },
  { apiGroups: ['portolan.dev'], resources: ownKinds, verbs: read },
  { nonResourceURLs: ['/readyz'], verbs: ['get'] },
];

const systemRules = [
  // Those of parts; what members renew at the broker are heartbeats.
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: read },
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [verdictsName], verbs: read },
  // The admin endpoints of parts, by way of the home.
  { apiGroups: [''], resources: ['services/proxy', 'pods/proxy'], verbs: ['get'] },
  // A part in a Pod answers only who shows a ticket.
  { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [ticketAccount.name], verbs: ['create'] },
  ...flowReaderRules,
];

function viewerManifests(): Manifest<KubernetesObject>[] {
  const roleRef = roleRefOf('ClusterRole', viewerName);
  const own = { name: viewerName, namespace: systemNamespace };
  const subjects = [{ kind: 'ServiceAccount', ...own }];
  return [
    manifest(namespaceType, { name: systemNamespace }, {}),
    manifest(serviceAccountType, own, {}),
    manifest(clusterRoleType, { name: viewerName }, { rules }),
    manifest(clusterRoleBindingType, { name: viewerName }, { roleRef, subjects }),
    manifest(roleType, own, { rules: systemRules }),
    manifest(roleBindingType, own, { roleRef: roleRefOf('Role', viewerName), subjects }),
  ];
}

/** Makes the account if it is not there, and returns a token of it. */
export async function issueViewerToken(client: Client, lifetimeMs: number): Promise<string> {
  for (const one of viewerManifests()) await install(client, one);
  const { token } = await requestToken(client, { namespace: systemNamespace, name: viewerName, lifetimeMs });
  return token;
}
