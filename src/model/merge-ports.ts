// Merges the ports of one service. Pure; neither the order of the clusters nor that of their lists matters, and the
// result never holds a name (the empty one included) or a (protocol, port) twice.

import { compareText } from './precedence.ts';
import type { Shard, ShardPort } from './shard.ts';

export type PortPolicy = 'union' | 'intersection';

export interface MergedPort extends ShardPort {
  /** The oldest cluster that declares it: its name and appProtocol are the port's. */
  readonly declaredBy: string;
  /** False under `intersection` for a port that some cluster lacks: it is compared, but not part of the import. */
  readonly isExposed: boolean;
}

/** All ports that at least one cluster brings in, oldest first in a clash. Shards come ordered by precedence. */
export function mergePorts(shards: readonly Shard[], policy: PortPolicy): MergedPort[] {
  const union: (ShardPort & { declaredBy: string })[] = [];
  for (const shard of shards) {
    for (const port of distinctPorts(shard.ports)) {
      if (union.some((taken) => taken.name === port.name || isSamePort(taken, port))) continue;
      union.push({ ...port, declaredBy: shard.cluster });
    }
  }
  return union.sort(byNumber).map((port) => ({
    ...port,
    isExposed: policy === 'union' || shards.every((shard) => declares(shard, port)),
  }));
}

/** A cluster serves a merged port only if it declares that protocol and number itself, under whatever name. */
export function declares(shard: Shard, port: ShardPort): boolean {
  return distinctPorts(shard.ports).some((own) => isSamePort(own, port));
}

/** From the names that a cluster's own slices use to the names of the merged ports it serves. */
export function portNames(shard: Shard, merged: readonly MergedPort[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const own of distinctPorts(shard.ports)) {
    const port = merged.find((candidate) => candidate.isExposed && isSamePort(candidate, own));
    if (port !== undefined) names.set(own.name, port.name);
  }
  return names;
}

/** What the API would not have let in twice is taken once, whoever wrote it. */
export function distinctPorts(ports: readonly ShardPort[]): ShardPort[] {
  const distinct: ShardPort[] = [];
  for (const port of [...ports].sort(byNumber)) {
    if (!distinct.some((taken) => taken.name === port.name || isSamePort(taken, port))) distinct.push(port);
  }
  return distinct;
}

export function isSamePort(a: ShardPort, b: ShardPort): boolean {
  return a.protocol === b.protocol && a.port === b.port;
}

function byNumber(a: ShardPort, b: ShardPort): number {
  return (
    a.port - b.port ||
    compareText(a.protocol, b.protocol) ||
    compareText(a.name, b.name) ||
    compareText(a.appProtocol ?? '', b.appProtocol ?? '')
  );
}
