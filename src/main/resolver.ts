// The parts of a cluster's resolver: a catalog of names, three watches on the home that feed it, and the DNS server.

import type { Log } from '../base/log.ts';
import type { World } from '../base/world.ts';
import { attachCatalog } from '../catalog/attach.ts';
import { Catalog } from '../catalog/catalog.ts';
import type { ClusterPlace } from '../catalog/places.ts';
import type { Client } from '../client/client.ts';
import { type DnsServer, startDns } from '../dns/server.ts';
import type { StubZone } from '../dns/stub-zones.ts';
import { Parts } from './parts.ts';

export interface ResolverOptions {
  readonly world: World;
  readonly log: Log;
  readonly home: Client;
  readonly cluster: ClusterPlace;
  readonly hosts: readonly string[];
  /** 0 takes a free one, the same for UDP and TCP. */
  readonly port: number;
  readonly workers?: number;
  readonly clients?: readonly string[];
  /** Nameservers for names that are nobody's here; without any they are refused. */
  readonly forwardTo?: readonly string[];
  readonly stubZones?: readonly StubZone[];
  readonly hasClusterNames?: boolean;
}

export interface Resolver {
  readonly port: number;
  readonly server: DnsServer;
  /** Resolves when both zones can be answered; until then the answer is SERVFAIL. */
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

export async function startResolver(options: ResolverOptions): Promise<Resolver> {
  const { world, log, home, cluster } = options;
  const parts = new Parts(log);
  const catalog = new Catalog({
    clock: world.clock,
    timers: world.timers,
    cluster,
    hasClusterNames: options.hasClusterNames,
  });
  const server = await startDns({
    world,
    log,
    catalog,
    listen: { hosts: options.hosts, port: options.port },
    serverId: cluster.id,
    ...(options.workers === undefined ? {} : { workers: options.workers }),
    ...(options.clients === undefined ? {} : { clients: options.clients }),
    ...(options.stubZones === undefined ? {} : { stubZones: options.stubZones }),
    ...(options.forwardTo?.length ? { forward: { nameservers: options.forwardTo } } : {}),
  });
  parts.add('dns server', () => server.close());
  const attachment = attachCatalog({ catalog, client: home, world, log });
  parts.add('catalog', () => attachment.stop());
  return { port: server.udpPort, server, whenSynced: () => attachment.whenSynced(), stop: () => parts.stop() };
}
