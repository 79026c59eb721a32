// The parts of a federation's authority: the table of its names, the watches at the broker that feed it, and a DNS server
// that answers for them.

import type { Log } from '../base/log.ts';
import type { World } from '../base/world.ts';
import { attachFederation } from '../catalog/attach-federation.ts';
import { FederationTable } from '../catalog/federation-table.ts';
import { NameTable } from '../catalog/name-table.ts';
import type { Client } from '../client/client.ts';
import type { PeerConfig } from '../dns/peers.ts';
import { startDns } from '../dns/server.ts';
import { Parts } from './parts.ts';

export interface AuthorityOptions {
  readonly world: World;
  readonly log: Log;
  readonly broker: Client;
  readonly clusterset: string;
  /** Name of the Federation object at the broker. */
  readonly federation: string;
  readonly suffix?: string;
  readonly hosts: readonly string[];
  readonly port: number;
  /** Whose word about the asking cluster is taken. */
  readonly peers: PeerConfig;
}

export interface Authority {
  readonly port: number;
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

export async function startAuthority(options: AuthorityOptions): Promise<Authority> {
  const { world, log, broker, clusterset, federation, suffix } = options;
  const parts = new Parts(log);
  const names = new NameTable({ serial: Math.floor(world.clock.wallMs() / 1000) });
  const table = new FederationTable({ table: names, ...(suffix === undefined ? {} : { suffix }) });
  const server = await startDns({
    world,
    log,
    federations: [table],
    listen: { hosts: options.hosts, port: options.port },
    serverId: `authority of ${federation}`,
    peers: options.peers,
  });
  parts.add('dns server', () => server.close());
  const attachment = attachFederation({ table, federation, broker, clusterset, world, log });
  parts.add('federation', () => attachment.stop());
  return { port: server.udpPort, whenSynced: () => attachment.whenSynced(), stop: () => parts.stop() };
}
