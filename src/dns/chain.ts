// The path of every query, in this order. Each handler answers or hands on; nothing happens outside this list.

import type { CatalogMemory } from '../catalog/name-table.ts';
import type { Zone } from '../catalog/zones.ts';
import type { Handler } from './handler.ts';
import { aclHandler } from './handlers/acl.ts';
import { chaosHandler } from './handlers/chaos.ts';
import { ednsHandler } from './handlers/edns.ts';
import { refuseHandler } from './handlers/refuse.ts';
import { reverseHandler } from './handlers/reverse.ts';
import { zoneHandler } from './handlers/zone.ts';
import { CatalogReader } from './reader.ts';

/** Plain data, so that a worker thread can be given it. */
export interface ChainConfig {
  readonly serverId: string;
  readonly clients: readonly string[];
  readonly clusterZone: Zone;
  readonly clustersetZone: Zone;
  /** Ordinal of the cluster this server stands in. */
  readonly localCluster: number;
}

export interface ChainParts {
  readonly config: ChainConfig;
  readonly reader: CatalogReader;
}

export function buildChain({ config, reader }: ChainParts): Handler[] {
  const { clusterZone, clustersetZone } = config;
  const here = () => reader.places.standAt(config.localCluster);
  const local = here();
  const standpointOf = () => local;
  return [
    aclHandler({ clients: config.clients }),
    ednsHandler(),
    chaosHandler({ serverId: config.serverId }),
    zoneHandler({ name: 'cluster', zone: clusterZone, reader, standpointOf }),
    zoneHandler({ name: 'clusterset', zone: clustersetZone, reader, standpointOf }),
    reverseHandler({ reader, zone: clusterZone }),
    refuseHandler(),
  ];
}

export function openReader(memory: CatalogMemory): CatalogReader {
  return new CatalogReader(memory);
}
