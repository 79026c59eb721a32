// The Kubernetes Namespace, as far as we read it.

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

export function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating';
}
