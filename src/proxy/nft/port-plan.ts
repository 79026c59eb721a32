// One address and port of a service as map elements: which backend has which slot, under which chain. Pure. Slots are kept
// as they are when a backend comes or goes, so that one change is a few elements however many there are.

import type { Backend, PortChoice } from '../choose.ts';

export interface PortPlan {
  readonly ip: string;
  readonly version: 4 | 6;
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  readonly port: number;
  /** `ADDRESS . PORT`, in the order of their indices. */
  readonly slots: readonly string[];
  /** 0 without session affinity. */
  readonly affinitySeconds: number;
  /** With affinity: the id of each slot's backend. It never changes while the backend is there. */
  readonly ids: ReadonlyMap<string, string>;
}

export interface Element {
  readonly map: string;
  readonly key: string;
  readonly value: string;
}

export function planPort(choice: PortChoice, previous: PortPlan | undefined): PortPlan {
  const slots = reslot(previous?.slots ?? [], choice.backends);
  const isAffine = choice.affinitySeconds > 0;
  return {
    ip: choice.ip,
    version: choice.family === 'IPv4' ? 4 : 6,
    protocol: choice.protocol.toLowerCase() as PortPlan['protocol'],
    port: choice.port,
    slots,
    affinitySeconds: choice.affinitySeconds,
    ids: isAffine ? idsOf(slots, previous?.ids) : new Map(),
  };
}

/** Backends that stay keep their slots; new ones fill gaps; what gaps remain are filled from the end. */
function reslot(previous: readonly string[], backends: readonly Backend[]): readonly string[] {
  const wanted = new Set(backends.map(slotOf));
  const arriving = new Set(wanted);
  for (const slot of previous) arriving.delete(slot);
  if (arriving.size === 0 && wanted.size === previous.length) return previous;
  const slots: (string | undefined)[] = previous.map((slot) => (wanted.has(slot) ? slot : undefined));
  const fresh = [...arriving];
  for (let at = 0; at < slots.length && fresh.length > 0; at += 1) slots[at] ??= fresh.shift();
  slots.push(...fresh);
  for (let at = 0; at < slots.length; at += 1) {
    while (slots.length > at && slots.at(-1) === undefined) slots.pop();
    if (at < slots.length) slots[at] ??= slots.pop();
  }
  return slots as string[];
}

function slotOf({ address, port }: Backend): string {
  return `${address} . ${port}`;
}

/** From a hash, so that clients stay where they are when the proxy starts anew. */
function idsOf(slots: readonly string[], previous: ReadonlyMap<string, string> | undefined): Map<string, string> {
  const ids = new Map<string, string>();
  const taken = new Set<string>();
  for (const slot of slots) {
    const id = previous?.get(slot);
    if (id === undefined) continue;
    ids.set(slot, id);
    taken.add(id);
  }
  for (const slot of slots) {
    if (ids.has(slot)) continue;
    let hash = hashOf(slot);
    while (taken.has(formatId(hash))) hash = (hash + 1) >>> 0;
    ids.set(slot, formatId(hash));
    taken.add(formatId(hash));
  }
  return ids;
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** As nft prints a priority: two halves of four digits, so that no version pads them or prints them in another form. */
function formatId(hash: number): string {
  const half = (value: number) => (0x1000 + (value % 0xe000)).toString(16);
  return `${half(hash >>> 16)}:${half(hash & 0xffff)}`;
}

/** The chain that connections to this port are sent to; undefined if they are refused. */
export function chainOf({ protocol, version, slots, affinitySeconds }: PortPlan): string | undefined {
  if (slots.length === 0) return undefined;
  const what = `${protocol}${version}-${slots.length}`;
  return affinitySeconds === 0 ? `pick-${what}` : `aff-${what}-${affinitySeconds}s`;
}

export function* elementsOf(plan: PortPlan): Generator<Element> {
  const { ip, version, protocol, port, slots, affinitySeconds, ids } = plan;
  const chain = chainOf(plan);
  if (chain === undefined) return;
  yield { map: `svc${version}`, key: `${ip} . ${protocol} . ${port}`, value: `goto ${chain}` };
  for (const [index, slot] of slots.entries()) {
    if (affinitySeconds === 0) {
      yield { map: `${protocol}${version}`, key: `${ip} . ${port} . ${index}`, value: slot };
      continue;
    }
    const id = ids.get(slot)!;
    yield { map: `affid${version}`, key: `${ip} . ${protocol} . ${port} . ${index}`, value: id };
    yield { map: `aff${protocol}${version}`, key: `${ip} . ${port} . ${id}`, value: slot };
  }
}
