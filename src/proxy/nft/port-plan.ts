// One address and port of a service as map elements: which backend has which slot, under which chain. Pure. Slots are kept
// as they are when a backend comes or goes, so that one change is a few elements however many there are.

import type { Backend, PortChoice } from '../port-choice.ts';

/** Backends that are alike, with their share of new connections. */
export interface PlannedLot {
  /** Its slots have indices from `number * lotStride`; it never changes while one of its backends is there. */
  readonly number: number;
  /** 1000 for the only one; those of a port add up to that. */
  readonly perMille: number;
  /** `ADDRESS . PORT`, in the order of their indices. */
  readonly slots: readonly string[];
}

export interface PortPlan {
  readonly ip: string;
  readonly version: 4 | 6;
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  readonly port: number;
  /** None if connections are refused. */
  readonly lots: readonly PlannedLot[];
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

/** More backends than that no lot has. */
export const lotStride = 65_536;

export function planPort(choice: PortChoice, previous: PortPlan | undefined): PortPlan {
  const lots = planLots(choice, previous?.lots ?? []);
  const isAffine = choice.affinitySeconds > 0;
  return {
    ip: choice.ip,
    version: choice.family === 'IPv4' ? 4 : 6,
    protocol: choice.protocol.toLowerCase() as PortPlan['protocol'],
    port: choice.port,
    lots,
    affinitySeconds: choice.affinitySeconds,
    ids: isAffine ? idsOf(slotsOf(lots), previous?.ids) : new Map(),
  };
}

export function slotsOf(lots: readonly PlannedLot[]): readonly string[] {
  return lots.length === 1 ? lots[0]!.slots : lots.flatMap(({ slots }) => slots);
}

/** The same array as before if nothing changed. */
function planLots({ backends, lots }: PortChoice, previous: readonly PlannedLot[]): readonly PlannedLot[] {
  if (backends.length === 0) return previous.length === 0 ? previous : [];
  const wanted = lots === undefined ? [{ share: 1, endpoints: backends }] : fewLots(lots);
  const perMille = perMilleOf(wanted.map(({ share }) => share));
  const numbers = numbersOf(
    wanted.map(({ endpoints }) => endpoints),
    previous,
  );
  const planned = wanted.map(({ endpoints }, index): PlannedLot => {
    const before = previous.find(({ number }) => number === numbers[index]);
    const slots = reslot(before?.slots ?? [], endpoints);
    const lot = { number: numbers[index]!, perMille: perMille[index]!, slots };
    return before?.slots === slots && before.perMille === lot.perMille ? before : lot;
  });
  const isSame = planned.length === previous.length && planned.every((lot, index) => lot === previous[index]);
  return isSame ? previous : planned;
}

/** So many fit into the name of a chain. The smallest are put together: the most that an endpoint is wrong by is their share. */
const lotsMax = 12;

type ChosenLot = NonNullable<PortChoice['lots']>[number];

function fewLots(lots: readonly ChosenLot[]): readonly ChosenLot[] {
  if (lots.length <= lotsMax) return lots;
  const bySize = [...lots].sort((one, other) => other.share - one.share);
  const rest = bySize.slice(lotsMax - 1);
  const share = rest.reduce((sum, lot) => sum + lot.share, 0);
  return [...bySize.slice(0, lotsMax - 1), { share, endpoints: rest.flatMap(({ endpoints }) => endpoints) }];
}

/** Whole numbers above 0 that add up to 1000, each less than one off but for the smallest. */
function perMilleOf(shares: readonly number[]): number[] {
  const exact = shares.map((share) => Math.max(1, share * 1000));
  const whole = exact.map(Math.floor);
  const order = exact.map((_, index) => index).sort((a, b) => exact[b]! - whole[b]! - (exact[a]! - whole[a]!));
  let left = 1000 - whole.reduce((sum, each) => sum + each, 0);
  for (let at = 0; left > 0; at = (at + 1) % order.length, left -= 1) whole[order[at]!]! += 1;
  // Shares below one in a thousand were raised: the largest pays for it.
  if (left < 0) whole[whole.indexOf(Math.max(...whole))]! += left;
  return whole;
}

/** A lot has the number of the lot before that had one of its backends; others get the smallest that is free. */
function numbersOf(lots: readonly (readonly Backend[])[], previous: readonly PlannedLot[]): number[] {
  const numbersOfSlot = new Map<string, Set<number>>();
  for (const { number, slots } of previous)
    for (const slot of slots) numbersOfSlot.set(slot, (numbersOfSlot.get(slot) ?? new Set()).add(number));
  const taken = new Set<number>();
  const kept = lots.map((backends) => {
    for (const backend of backends) {
      // Two lots behind one gateway have the same slot.
      const number = [...(numbersOfSlot.get(slotOf(backend)) ?? [])].find((each) => !taken.has(each));
      if (number === undefined) continue;
      taken.add(number);
      return number;
    }
    return undefined;
  });
  let free = 0;
  return kept.map((number) => {
    if (number !== undefined) return number;
    while (taken.has(free)) free += 1;
    taken.add(free);
    return free;
  });
}

/**
 * Backends that stay keep their slots; new ones fill gaps; what gaps remain are filled from the end. Endpoints behind a
 * gateway are one backend, with a slot for each of them.
 */
function reslot(previous: readonly string[], backends: readonly Backend[]): readonly string[] {
  const missing = new Map<string, number>();
  for (const backend of backends) {
    const slot = slotOf(backend);
    missing.set(slot, (missing.get(slot) ?? 0) + 1);
  }
  const slots: (string | undefined)[] = previous.map((slot) => {
    const count = missing.get(slot) ?? 0;
    if (count > 0) missing.set(slot, count - 1);
    return count > 0 ? slot : undefined;
  });
  const fresh = Array.from(missing).flatMap(([slot, count]) => Array.from({ length: count }, () => slot));
  if (fresh.length === 0 && backends.length === previous.length) return previous;
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
export function chainOf({ protocol, version, lots, affinitySeconds }: PortPlan): string | undefined {
  const [only] = lots;
  if (only === undefined) return undefined;
  const kind = `${protocol}${version}`;
  const seconds = affinitySeconds === 0 ? '' : `-${affinitySeconds}s`;
  if (lots.length === 1 && only.number === 0)
    return affinitySeconds === 0 ? `pick-${kind}-${only.slots.length}` : `aff-${kind}-${only.slots.length}${seconds}`;
  const vector = lots.map(({ number, perMille, slots }) => `${number}.${perMille}.${slots.length}`).join('-');
  return `share-${kind}-${vector}${seconds}`;
}

/** All that lead from the map of services to a backend: those that lead to others before them. */
export function chainsOf(plan: PortPlan): readonly string[] {
  const entry = chainOf(plan);
  if (entry === undefined) return [];
  const share = plan.affinitySeconds === 0 ? undefined : readShareChain(entry);
  return share === undefined ? [entry] : [entry, drawChain(share)];
}

export interface ShareChain {
  readonly kind: string;
  readonly lots: readonly { readonly number: number; readonly perMille: number; readonly count: number }[];
  /** 0 without session affinity. */
  readonly seconds: number;
}

export function readShareChain(name: string): ShareChain | undefined {
  const parts = /^(?:share|draw)-((?:tcp|udp|sctp)[46])((?:-\d+\.\d+\.\d+)+)(?:-(\d+)s)?$/.exec(name);
  if (parts === null) return undefined;
  const lots = parts[2]!
    .slice(1)
    .split('-')
    .map((text) => text.split('.').map(Number) as [number, number, number])
    .map(([number, perMille, count]) => ({ number, perMille, count }));
  return { kind: parts[1]!, lots, seconds: Number(parts[3] ?? 0) };
}

/** With session affinity the draw is a chain of its own: what it leads to comes back to the chain that called it. */
export function drawChain({ kind, lots }: ShareChain): string {
  return `draw-${kind}-${lots.map(({ number, perMille, count }) => `${number}.${perMille}.${count}`).join('-')}`;
}

export function* elementsOf(plan: PortPlan): Generator<Element> {
  const { ip, version, protocol, port, lots, affinitySeconds, ids } = plan;
  const chain = chainOf(plan);
  if (chain === undefined) return;
  yield { map: `svc${version}`, key: `${ip} . ${protocol} . ${port}`, value: `goto ${chain}` };
  const seen = new Set<string>();
  for (const { number, slots } of lots) {
    for (const [at, slot] of slots.entries()) {
      const index = number * lotStride + at;
      if (affinitySeconds === 0) {
        yield { map: `${protocol}${version}`, key: `${ip} . ${port} . ${index}`, value: slot };
        continue;
      }
      const id = ids.get(slot)!;
      yield { map: `affid${version}`, key: `${ip} . ${protocol} . ${port} . ${index}`, value: id };
      // A backend with several slots has one id.
      if (!seen.has(slot)) yield { map: `aff${protocol}${version}`, key: `${ip} . ${port} . ${id}`, value: slot };
      seen.add(slot);
    }
  }
}
