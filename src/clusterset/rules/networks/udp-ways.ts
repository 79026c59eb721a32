// UDP between networks. A datagram that the kernel hands on does not say for which address it was meant, so a node's Envoy has a
// port for each UDP port of an import and each cluster behind gateways: the same on all nodes of a home, and written on the import.
// A way keeps its port; a new one starts its search at a place that a hash decides, so that a port that became free is not soon
// another service's. Pure.

import { createHash } from 'node:crypto';

export interface UdpWay {
  /** The cluster behind gateways. */
  readonly cluster: string;
  /** Of the service. */
  readonly port: number;
  /** Of the node's Envoy. */
  readonly listenerPort: number;
}

/** Of all imports of a home. */
export const udpWaysMax = 100;
const ports = { first: 15_101, count: 1600 } as const;

export function isUdpListenerPort(port: unknown): port is number {
  return Number.isInteger(port) && (port as number) >= ports.first && (port as number) < ports.first + ports.count;
}

export interface UdpWish {
  /** `namespace/name` of the import. */
  readonly key: string;
  readonly wanted: readonly Omit<UdpWay, 'listenerPort'>[];
  /** What it has now. */
  readonly present: readonly UdpWay[];
  /** Ports that other imports have. */
  readonly taken: ReadonlySet<number>;
}

/** Those beyond the bound have no way. */
export function assignUdpWays({ key, wanted, present, taken }: UdpWish): UdpWay[] {
  const used = new Set(taken);
  const kept = wanted.map(({ cluster, port }) => {
    const before = present.find((way) => way.cluster === cluster && way.port === port)?.listenerPort;
    if (before === undefined || !isUdpListenerPort(before) || used.has(before)) return undefined;
    used.add(before);
    return before;
  });
  return wanted.flatMap(({ cluster, port }, index) => {
    const listenerPort = kept[index] ?? freePort(`${key} ${cluster} ${port}`, used);
    if (listenerPort === undefined) return [];
    used.add(listenerPort);
    return [{ cluster, port, listenerPort }];
  });
}

function freePort(key: string, used: ReadonlySet<number>): number | undefined {
  if (used.size >= udpWaysMax) return undefined;
  const start = createHash('sha256').update(key).digest().readUInt32BE();
  for (let step = 0; step < ports.count; step += 1) {
    const port = ports.first + ((start + step) % ports.count);
    if (!used.has(port)) return port;
  }
  return undefined;
}
