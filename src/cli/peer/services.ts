// `portolan peer services`: what peers share with us, with all that it takes to use it.

import { type PeerServiceReach, reachOf } from '../../peering/kinds/peer-service.ts';
import type { SharedEndpoint } from '../../peering/kinds/shared-service.ts';
import { formatTable, type OutputFormat } from '../table.ts';
import { isKnown, type PeerHome } from './add.ts';
import { servicesOf } from './show.ts';

/** Of one peer, or of all. */
export async function listServices(home: PeerHome, peer: string | undefined, format: OutputFormat): Promise<string[]> {
  const services = (await servicesOf(home, peer)).map(reachOf);
  if (peer !== undefined && services.length === 0 && !(await isKnown(home, peer)))
    throw new Error(`peer ${peer}: there is no such Peer; portolan peer list shows those there are`);
  if (format === 'json') return [JSON.stringify(services, undefined, 2)];
  if (services.length === 0)
    return [peer === undefined ? 'nothing is held of any peer' : `nothing is held of peer ${peer}`];
  const head = ['ID', 'NAMES', 'ADDRESS', 'PROTOCOLS', 'INGRESS', 'SNI', 'SAN', 'STATE', 'MESSAGE'];
  const rows = services.map(rowOf);
  if (peer !== undefined) return formatTable(head, rows);
  return formatTable(
    ['PEER', ...head],
    rows.map((row, i) => [services[i]!.peer, ...row]),
  );
}

function rowOf({ id, hostnames, ips, protocols, ingress, sni, sans, state, message = '' }: PeerServiceReach): string[] {
  const lists = [hostnames, ips, protocols, ingress.map(endpointText), [sni], sans];
  return [id, ...lists.map((list) => list.join(',') || '-'), state, message];
}

export function endpointText({ address, port }: SharedEndpoint): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
