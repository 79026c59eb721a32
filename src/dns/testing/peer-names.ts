// For tests: services of peers from a few words, and a way to ask for their names.

import type { Catalog } from '../../catalog/catalog.ts';
import { PeerTable } from '../../catalog/outside/peer-table.ts';
import { firstSeenAnnotation, type PeerService, type PeerServiceStatus } from '../../peering/kinds/peer-service.ts';
import type { PeerNamesConfig } from '../chain/chain.ts';
import { reverseTrees } from '../handlers/reverse.ts';
import { Asker, type AskerOptions, stillClock } from './ask.ts';

export function makePeers(catalog: Catalog): PeerTable {
  return new PeerTable({ table: catalog.table, clock: stillClock, otherZones: () => catalog.zones });
}

export interface PeerServiceSpecText {
  readonly peer?: string;
  readonly id?: string;
  readonly name?: string;
  readonly fqdn?: string;
  readonly protocols?: string[];
  readonly ports?: number[];
  readonly firstSeenMs?: number;
  readonly status?: PeerServiceStatus;
}

/** Its FQDN is `db.east.example` and its address 241.0.0.1 unless it says otherwise. */
export function peerService(spec: PeerServiceSpecText = {}): PeerService {
  const { peer = 'east', fqdn = 'db.east.example', id = fqdn, name = 'db' } = spec;
  const { protocols = ['http'], ports = [15443], firstSeenMs = 1, status } = spec;
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'PeerService',
    metadata: {
      name: `${peer}.${id}`,
      namespace: 'portolan-system',
      resourceVersion: '7',
      annotations: { [firstSeenAnnotation]: String(firstSeenMs) },
    },
    spec: { peer, id, name, fqdn, protocols, endpoints: ports.map((port) => ({ address: '192.0.2.1', port })) },
    status: { ips: ['241.0.0.1'], ...status },
  };
}

export function keyOfPeerService(service: PeerService): string {
  return `${service.metadata.namespace}/${service.metadata.name}`;
}

function peerNamesConfig(catalog: Catalog, peers: PeerTable): PeerNamesConfig {
  return { zone: peers.zone, elsewhere: [...catalog.zones.map(({ bytes }) => bytes), ...reverseTrees] };
}

export function peerAsker(catalog: Catalog, peers: PeerTable, options: AskerOptions = {}): Asker {
  const config = { peerNames: peerNamesConfig(catalog, peers), ...options.config };
  return new Asker(catalog, { ...options, config });
}
