// Peers and external services of a cluster, by what their status in its home shows.

import { listAll } from '../clusterset/explain/set-state.ts';
import { type MeshExternalService, meshExternalServiceType } from '../external/kinds/mesh-external-service.ts';
import type { Client } from '../kube/client/client.ts';
import { isForbidden, isNotFound } from '../kube/objects/api-error.ts';
import { conditionOf } from '../kube/objects/conditions.ts';
import type { KubernetesObject, ResourceType } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { sideSummary } from '../peering/explain/explain.ts';
import { type Peer, peerType } from '../peering/kinds/peer.ts';
import { formatTable } from './table.ts';

export interface OutsideStatus {
  readonly peers: readonly { readonly name: string; readonly state: string; readonly services: number }[];
  readonly external: readonly ExternalStatus[];
}

interface ExternalStatus {
  readonly name: string;
  /** Why it is not usable; `Ready` if it is. */
  readonly state: string;
  readonly hostnames: readonly string[];
}

export async function readOutside(home: Client, nowMs: number): Promise<OutsideStatus> {
  const [peers, external] = await Promise.all([
    listReadable<Peer>(home, peerType),
    listReadable<MeshExternalService>(home, meshExternalServiceType),
  ]);
  return {
    peers: peers.map((peer) => {
      const state = sideSummary(peer, 'taking', nowMs);
      return { name: peer.metadata.name, state, services: peer.status?.consumer?.services ?? 0 };
    }),
    external: external.map(({ metadata, status }) => ({
      name: metadata.name,
      state: stateOf(status?.conditions),
      hostnames: [...new Set((status?.vips ?? []).map(({ hostname }) => hostname))],
    })),
  };
}

export function formatOutside({ peers, external }: OutsideStatus): string[] {
  const peerRows = peers.map(({ name, state, services }) => [name, state, String(services)]);
  const externalRows = external.map(({ name, state, hostnames }) => [name, state, hostnames.join(',') || '-']);
  return [
    ...(peers.length === 0 ? [] : ['', ...formatTable(['PEER', 'TAKING', 'SERVICES'], peerRows)]),
    ...(external.length === 0 ? [] : ['', ...formatTable(['EXTERNAL SERVICE', 'STATE', 'HOSTNAMES'], externalRows)]),
  ];
}

function stateOf(conditions: NonNullable<MeshExternalService['status']>['conditions']): string {
  for (const type of ['Accepted', 'Ready']) {
    const condition = conditionOf(conditions, type);
    if (condition === undefined) return 'Pending';
    if (condition.status !== 'True') return condition.reason;
  }
  return 'Ready';
}

/** Nothing where the caller may not read them, or the home does not have the kind. */
async function listReadable<T extends KubernetesObject>(home: Client, type: ResourceType): Promise<T[]> {
  try {
    return await listAll<T>(home, type, { namespace: systemNamespace });
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return [];
    throw error;
  }
}
