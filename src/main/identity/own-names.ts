// Names and addresses that are always this mesh's own: no peer may claim them.

import { networkInterfaces } from 'node:os';
import type { HttpAccess } from '../../base/http.ts';

export const ownZones: readonly string[] = ['cluster.local', 'clusterset.local', 'peers.local'];

/** The hosts of our own API. */
export function serverHosts({ server, otherServers = [] }: Pick<HttpAccess, 'server' | 'otherServers'>): string[] {
  return [server, ...otherServers].map((url) => new URL(url).hostname.replace(/^\[|\]$/g, ''));
}

/** A peer's ingress on one of them would be a port of this machine. */
export function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}
