// ClusterProfile: a cluster of the fleet as tools of the Cluster Inventory API find it, at the broker in the namespace of the
// set. Other cluster managers may keep theirs beside ours.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { AccessProvider } from './cluster.ts';

export const clusterProfileType: ResourceType = {
  group: 'multicluster.x-k8s.io',
  version: 'v1alpha1',
  plural: 'clusterprofiles',
  kind: 'ClusterProfile',
  isNamespaced: true,
};

/** On a profile: the name of its cluster manager. */
export const clusterManagerLabel = 'x-k8s.io/cluster-manager';

/** On the namespace of profiles: the clusterset that they belong to. */
export const profilesSetLabel = 'multicluster.x-k8s.io/clusterset';

export interface ClusterProfile extends KubernetesObject {
  spec?: { displayName?: string; clusterManager?: { name?: string } };
  status?: ClusterProfileStatus;
}

export interface ClusterProfileStatus {
  version?: { kubernetes?: string };
  properties?: ProfileProperty[] | null;
  accessProviders?: AccessProvider[] | null;
  conditions?: Condition[] | null;
}

export interface ProfileProperty {
  name: string;
  value: string;
}
