// The Kubernetes Namespace, and the ones that are nobody's application.

import type { KubernetesObject, ResourceType } from './object.ts';

export const namespaceType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  isNamespaced: false,
};

export interface Namespace extends KubernetesObject {
  status?: { phase?: 'Active' | 'Terminating' };
}

/** Nothing is exported from these unless somebody says so: `kube-system` and `default` (KEP-1645, Restricting Exports). */
export const guardedNamespaces: readonly string[] = ['kube-system', 'default'];

export function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating';
}
