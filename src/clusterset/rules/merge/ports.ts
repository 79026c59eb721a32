// Merges the ports of one service. Pure; neither the order of the clusters nor that of their lists matters, and the
// result never holds a name (the empty one included) or a (protocol, port) twice.

import { compareText } from '../../../base/compare-text.ts';
import type { PortPolicy } from '../../kinds/cluster-set.ts';
import type { Shard, ShardPort } from './shard.ts';

export interface MergedPort extends ShardPort {
  /** The oldest cluster that declares it: its name and appProtocol are the port's. */
  readonly declaredBy: string;
  /** False under `intersection` for a port that some cluster lacks: it is compared, but not part of the import. */
  readonly isExposed: boolean;
}

/** All ports that at least one cluster brings in, oldest first in a clash. Shards come ordered by precedence. */
export function mergePorts(shards: readonly Shard[], policy: PortPolicy): MergedPort[] {
  const indexes = shards.map(({ ports }) => indexPorts(ports));
  const union = new PortIndex<ShardPort & { declaredBy: string }>();
  for (const [position, { cluster }] of shards.entries()) {
    for (const port of indexes[position]!.ports) union.add({ ...port, declaredBy: cluster });
  }
  return union.ports.sort(byNumber).map((port) => ({
    ...port,
    // A cluster serves a merged port only if it declares that protocol and number itself, under whatever name.
    isExposed: policy === 'union' || indexes.every((own) => own.sameNumber(port) !== undefined),
  }));
}

/** From the names that a cluster's own slices use to the names of the merged ports it serves. */
export function portNames(shard: Shard, merged: PortIndex<MergedPort>): Map<string, string> {
  const names = new Map<string, string>();
  for (const own of indexPorts(shard.ports).ports) {
    const port = merged.sameNumber(own);
    if (port?.isExposed) names.set(own.name, port.name);
  }
  return names;
}

/** Ports by name and by number. Holds neither twice: the first stays. */
export class PortIndex<Port extends ShardPort> {
  readonly ports: Port[] = [];
  readonly #byName = new Map<string, Port>();
  readonly #byNumber = new Map<string, Port>();

  add(port: Port): void {
    const number = numberOf(port);
    if (this.#byName.has(port.name) || this.#byNumber.has(number)) return;
    this.ports.push(port);
    this.#byName.set(port.name, port);
    this.#byNumber.set(number, port);
  }

  sameName({ name }: ShardPort): Port | undefined {
    return this.#byName.get(name);
  }

  sameNumber(port: ShardPort): Port | undefined {
    return this.#byNumber.get(numberOf(port));
  }
}

/** Duplicates that the API would refuse are taken once, whoever wrote them. */
export function indexPorts(ports: readonly ShardPort[]): PortIndex<ShardPort> {
  const index = new PortIndex<ShardPort>();
  for (const port of [...ports].sort(byNumber)) index.add(port);
  return index;
}

export function indexMerged(ports: readonly MergedPort[]): PortIndex<MergedPort> {
  const index = new PortIndex<MergedPort>();
  for (const port of ports) index.add(port);
  return index;
}

export function isSamePort(a: ShardPort, b: ShardPort): boolean {
  return a.protocol === b.protocol && a.port === b.port;
}

function numberOf({ protocol, port }: ShardPort): string {
  return `${protocol}/${port}`;
}

function byNumber(a: ShardPort, b: ShardPort): number {
  return (
    a.port - b.port ||
    compareText(a.protocol, b.protocol) ||
    compareText(a.name, b.name) ||
    compareText(a.appProtocol ?? '', b.appProtocol ?? '')
  );
}
