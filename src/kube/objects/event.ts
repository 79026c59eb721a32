// The Kubernetes Event: one thing that happened to one object, for people to read.

import type { KubernetesObject, ResourceType } from './object.ts';

export const eventType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  isNamespaced: true,
};

export interface KubernetesEvent extends KubernetesObject {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  involvedObject: {
    apiVersion: string;
    kind: string;
    namespace?: string;
    name: string;
    uid?: string;
    resourceVersion?: string;
  };
  source?: { component?: string };
  reportingComponent?: string;
  reportingInstance?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
}
