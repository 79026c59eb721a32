// The Kubernetes Lease: who says that it lives, and when it last said so.

import type { KubernetesObject, ResourceType } from './object.ts';

export const leaseType: ResourceType = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  isNamespaced: true,
  isRenewed: true,
};

export interface Lease extends KubernetesObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

/** RFC 3339 with microseconds, as metav1.MicroTime writes it. */
export function formatMicroTime(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, -1)}000Z`;
}
