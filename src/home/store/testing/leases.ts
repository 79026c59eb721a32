// The load that every broker has: fifty clusters renew their leases. Shared by the tests of disk use.

import type { Store } from '../store.ts';

export const leaseCount = 50;

/** One renewal of every lease; values have the size and the changing digits of a real Lease. */
export async function renewLeases(store: Store, tick: number): Promise<void> {
  const renewTime = new Date(1_800_000_000_000 + tick * 10_000).toISOString();
  const renewals = Array.from({ length: leaseCount }, (_, cluster) => {
    const key = `/registry/coordination.k8s.io/leases/prod-m-cluster-${cluster}/cluster-${cluster}`;
    const value = new TextEncoder().encode(JSON.stringify(leaseOf(cluster, renewTime, tick)));
    return store.commit({ compares: [], writes: [{ key, value }] });
  });
  await Promise.all(renewals);
}

function leaseOf(cluster: number, renewTime: string, tick: number) {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: `cluster-${cluster}`,
      namespace: `prod-m-cluster-${cluster}`,
      uid: `3b1f7a52-77f0-4f0e-9a35-0000000000${String(cluster).padStart(2, '0')}`,
      creationTimestamp: '2026-11-15T04:42:00Z',
      generation: tick,
      labels: { 'app.kubernetes.io/managed-by': 'portolan' },
    },
    spec: { holderIdentity: `agent-${cluster}`, leaseDurationSeconds: 40, renewTime },
  };
}
