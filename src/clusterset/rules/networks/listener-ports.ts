// The port of a node's Envoy for each cluster behind gateways, the same on all nodes of a home. A cluster keeps its port for
// as long as it has gateways, whoever else comes or goes; a new one starts its search at a place that its id decides, so that
// a port that became free is not soon another cluster's. Pure.

import { createHash } from 'node:crypto';

/** Below the ports that kernels give to clients and that a Kubernetes gives to Services. */
const listenerPorts = { first: 15_101, count: 800 } as const;

/** Where a node's Envoy answers, on loopback, whether it carries connections to a cluster: GET of `healthPath`. */
export const healthPort: number = listenerPorts.first - 1;

/** Where a node's Envoy accepts connections for which the gateways of that cluster are asked by name. */
export function namedListenerPort(listenerPort: number): number {
  return listenerPort + listenerPorts.count;
}

export function healthPath(cluster: string): string {
  return `/gateway/${encodeURIComponent(cluster)}`;
}

/** Clusters beyond the number of ports get none. */
export function assignListenerPorts(
  ids: Iterable<string>,
  present: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const ports = new Map<string, number>();
  const taken = new Set<number>();
  const waiting: string[] = [];
  for (const id of [...ids].sort()) {
    const port = present.get(id);
    if (port === undefined || !isListenerPort(port) || taken.has(port)) waiting.push(id);
    else {
      ports.set(id, port);
      taken.add(port);
    }
  }
  for (const id of waiting) {
    const port = freePort(id, taken);
    if (port === undefined) break;
    ports.set(id, port);
    taken.add(port);
  }
  return ports;
}

function isListenerPort(port: number): boolean {
  return port >= listenerPorts.first && port < listenerPorts.first + listenerPorts.count;
}

function freePort(id: string, taken: ReadonlySet<number>): number | undefined {
  const start = createHash('sha256').update(id).digest().readUInt32BE();
  for (let step = 0; step < listenerPorts.count; step += 1) {
    const port = listenerPorts.first + ((start + step) % listenerPorts.count);
    if (!taken.has(port)) return port;
  }
  return undefined;
}
