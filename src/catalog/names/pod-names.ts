// Names of Pods by their addresses: `10-244-0-7.shop.pod.cluster.local`. Each exists while a Pod of that namespace has the
// address. Only the addresses of a Pod are kept.

import { recordType } from '../../base/dns/codes.ts';
import { dashedAddress } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import type { Pod } from '../../kube/objects/pod.ts';
import { order, plainRecord } from './answers.ts';
import type { NameTable } from './name-table.ts';
import type { Zone } from './zones.ts';

export class PodNames {
  readonly #table: NameTable;
  readonly #zone: Zone;
  /** Names of each Pod, by `namespace/name`. */
  readonly #byPod = new Map<string, readonly string[]>();
  /** How many Pods have each name. */
  readonly #uses = new Map<string, number>();

  constructor(table: NameTable, zone: Zone) {
    this.#table = table;
    this.#zone = zone;
    table.put(`pod.${zone.name}`, zone.id, []);
  }

  keys(): IterableIterator<string> {
    return this.#byPod.keys();
  }

  upsert(pod: Pod): void {
    const { namespace = '', name } = pod.metadata;
    const key = `${namespace}/${name}`;
    const addresses = hasEnded(pod) ? [] : addressesOf(pod);
    const next = addresses.map((address) => `${dashedAddress(address)}.${namespace}.pod.${this.#zone.name}`);
    const before = this.#byPod.get(key) ?? [];
    for (const [i, each] of next.entries()) if (!before.includes(each)) this.#add(each, addresses[i]!);
    for (const each of before) if (!next.includes(each)) this.#remove(each);
    if (next.length === 0) this.#byPod.delete(key);
    else this.#byPod.set(key, next);
  }

  remove(key: string): void {
    for (const name of this.#byPod.get(key) ?? []) this.#remove(name);
    this.#byPod.delete(key);
  }

  #add(name: string, address: Uint8Array): void {
    const type = address.length === 4 ? recordType.A : recordType.AAAA;
    if (this.#use(name, 1) > 1) return;
    this.#table.hold(name, this.#zone);
    this.#table.put(name, this.#zone.id, [{ type, order: order.fixed, records: [plainRecord(address)] }]);
  }

  #remove(name: string): void {
    if (this.#use(name, -1) > 0) return;
    this.#table.remove(name);
    this.#table.release(name, this.#zone);
  }

  #use(name: string, step: 1 | -1): number {
    const count = (this.#uses.get(name) ?? 0) + step;
    if (count === 0) this.#uses.delete(name);
    else this.#uses.set(name, count);
    return count;
  }
}

/** `10-244-0-7` and `fd00-240--1-13`, as addresses are written. */
export function addressOfPodLabel(label: string): string | undefined {
  const dotted = label.replaceAll('-', '.');
  const address = /^[0-9.]+$/.test(dotted) && dotted.split('.').length === 4 ? dotted : label.replaceAll('-', ':');
  return parseAddress(address) && address;
}

function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function addressesOf({ status }: Pod): Uint8Array[] {
  const texts = new Set([...(status?.podIPs ?? []).map(({ ip }) => ip), status?.podIP]);
  return [...texts].flatMap((text) => (text ? (parseAddress(text) ?? []) : []));
}
