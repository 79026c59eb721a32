// `portolan peer export`: shares a Service of this cluster with peers, by a PeerExport of its name.

import { getOrUndefined } from '../../kube/client/absent.ts';
import { install } from '../../kube/client/apply.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { type PeerExport, peerExportType } from '../../peering/kinds/peer-export.ts';
import { notFoundError, usageError } from '../exit-codes.ts';
import { isKnown, type PeerHome } from './add.ts';

export interface PeerExportRequest {
  readonly service: { readonly namespace: string; readonly name: string };
  readonly peers: readonly string[];
}

export async function exportToPeers(home: PeerHome, { service, peers }: PeerExportRequest): Promise<string[]> {
  const key = `${service.namespace}/${service.name}`;
  if (peers.length === 0) throw usageError(`peer export ${key}: name the peers with --to`);
  for (const peer of peers) {
    if (await isKnown(home, peer)) continue;
    throw notFoundError(`peer export ${key}: there is no Peer ${peer}; portolan peer list shows the peers`);
  }
  if ((await getOrUndefined(home.client, serviceType, service)) === undefined)
    throw notFoundError(`peer export ${key}: there is no Service ${key}; create it first`);
  const spec = { services: [service.name], peers: [...peers] };
  const { outcome } = await install<PeerExport>(home.client, manifest(peerExportType, service, { spec }) as never);
  const done = outcome === 'unchanged' ? 'is shared already' : 'is shared';
  return [`${key} ${done} with ${peers.join(', ')}; kubectl get peerexports -n ${service.namespace} shows who took it`];
}
