// LivenessReport: the members that an observer has not heard of lately, at the broker in the observer's namespace. Its readers
// check each of them before they act on it.

import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const livenessReportType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'livenessreports',
  kind: 'LivenessReport',
  isNamespaced: true,
};

export interface LivenessReport extends KubernetesObject {
  spec?: {
    /** RFC 3339, by the observer's clock: changes with each round, and readers use it for nothing else. */
    renewTime?: string;
    /** Ids of members. */
    silent?: string[] | null;
  };
}
