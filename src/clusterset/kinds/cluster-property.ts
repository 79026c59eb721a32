// ClusterProperty of the About API: what a cluster says of itself, its id and its clusterset first of all.

import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const clusterPropertyType: ResourceType = {
  group: 'about.k8s.io',
  version: 'v1beta1',
  plural: 'clusterproperties',
  kind: 'ClusterProperty',
  isNamespaced: false,
};

export const clusterIdProperty = 'cluster.clusterset.k8s.io';
export const clusterSetProperty = 'clusterset.k8s.io';

export interface ClusterProperty extends KubernetesObject {
  spec: { value: string };
}
