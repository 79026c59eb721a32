// The account that a person may sign in with where there is no other: it reads what the dashboard shows, asks parts through
// the home, and changes nothing. It reads no Secret.

import { verdictsName } from '../clusterset/membership/membership.ts';
import { memberRecordName } from '../clusterset/rules/broker-layout.ts';
import { requestToken } from '../kube/client/account-token.ts';
import { install } from '../kube/client/apply.ts';
import type { Client } from '../kube/client/client.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import type { KubernetesObject } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import {
  clusterRoleBindingType,
  clusterRoleType,
  readVerbs,
  roleRefOf,
  serviceAccountType,
} from '../kube/objects/rbac.ts';

const viewerName = 'portolan-dashboard';

const read = [...readVerbs];

const rules = [
  { apiGroups: [''], resources: ['services', 'namespaces', 'events'], verbs: read },
  { apiGroups: [''], resources: ['configmaps'], resourceNames: [verdictsName, memberRecordName], verbs: read },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: read },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: read },
  { apiGroups: ['multicluster.x-k8s.io', 'about.k8s.io', 'portolan.dev'], resources: ['*'], verbs: read },
  { apiGroups: [''], resources: ['services/proxy', 'pods/proxy'], verbs: ['get'] },
  { nonResourceURLs: ['/readyz', '/version'], verbs: ['get'] },
];

function viewerManifests(): Manifest<KubernetesObject>[] {
  const roleRef = roleRefOf('ClusterRole', viewerName);
  const subjects = [{ kind: 'ServiceAccount', name: viewerName, namespace: systemNamespace }];
  return [
    manifest(namespaceType, { name: systemNamespace }, {}),
    manifest(serviceAccountType, { name: viewerName, namespace: systemNamespace }, {}),
    manifest(clusterRoleType, { name: viewerName }, { rules }),
    manifest(clusterRoleBindingType, { name: viewerName }, { roleRef, subjects }),
  ];
}

/** Makes the account if it is not there, and returns a token of it. */
export async function issueViewerToken(client: Client, lifetimeMs: number): Promise<string> {
  for (const one of viewerManifests()) await install(client, one);
  const { token } = await requestToken(client, { namespace: systemNamespace, name: viewerName, lifetimeMs });
  return token;
}
