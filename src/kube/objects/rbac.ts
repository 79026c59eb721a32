// Roles, bindings and service accounts as we write them. The API server interprets the rules.

import type { KubernetesObject, ResourceType } from './object.ts';

export const rbacGroup = 'rbac.authorization.k8s.io';

export const roleType: ResourceType = rbacType('Role', 'roles', true);
export const roleBindingType: ResourceType = rbacType('RoleBinding', 'rolebindings', true);
export const clusterRoleType: ResourceType = rbacType('ClusterRole', 'clusterroles', false);
export const clusterRoleBindingType: ResourceType = rbacType('ClusterRoleBinding', 'clusterrolebindings', false);

export const serviceAccountType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  isNamespaced: true,
};

export interface PolicyRule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

export interface RoleBinding extends KubernetesObject {
  subjects: Subject[];
  roleRef: { apiGroup: string; kind: string; name: string };
}

export type Subject =
  | { kind: 'ServiceAccount'; name: string; namespace: string }
  | { kind: 'Group'; apiGroup: string; name: string };

/** Reading one object shows no more than a list does; it is read again after a conflict. */
export const readVerbs: readonly string[] = ['get', 'list', 'watch'];
export const writeVerbs: readonly string[] = ['create', 'update', 'delete'];

/** Everybody who has an account in the namespace. */
export function accountsOf(namespace: string): Subject {
  return { kind: 'Group', apiGroup: rbacGroup, name: `system:serviceaccounts:${namespace}` };
}

export function roleRefOf(kind: 'Role' | 'ClusterRole', name: string): RoleBinding['roleRef'] {
  return { apiGroup: rbacGroup, kind, name };
}

function rbacType(kind: string, plural: string, isNamespaced: boolean): ResourceType {
  return { group: rbacGroup, version: 'v1', plural, kind, isNamespaced };
}
