// The names of one Service or ServiceImport, made from its facts: what each answers, which reverse names point at it, and
// what was left out and why. Shared by the two zones; what differs between them is in cluster-names.ts and clusterset-names.ts.

import { recordType } from '../../base/dns/codes.ts';
import { dashedAddress, dashedGroups, isName, reverseName, tryEncodeName } from '../../base/dns/name.ts';
import type { EndpointFacts, NamedSlice, OwnerFacts } from '../facts/facts.ts';
import type { PortFacts } from '../facts/ports.ts';
import {
  type Order,
  order,
  type PackedRecord,
  plainRecord,
  type RecordSet,
  srvData,
  srvHeadBytes,
  withSums,
} from './answers.ts';
import { type Sets, storedNames } from './port-names.ts';
import { spreadToFit } from './spread.ts';

export interface OwnerInput {
  readonly owner: OwnerFacts;
  /** Read from packed facts when they are first looked at: most services have an address that stands for all of them. */
  readonly slices: readonly NamedSlice[];
  /** Whether any endpoint has a hostname: found without reading the slices. */
  readonly hasHostnames: boolean;
  /** `checkout.shop.svc.clusterset.local` */
  readonly name: string;
  /** A small number for each cluster, the same for as long as the catalog lives. */
  readonly ordinalOf: (cluster: string) => number;
}

export interface LeftOut {
  readonly what: string;
  readonly why: string;
}

const noPointers: ReadonlyMap<string, readonly string[]> = new Map();

/** Sets under construction, by text name. */
export class OwnerNames {
  readonly sets = new Map<string, RecordSet[]>();
  #pointers: Map<string, string[]> | undefined;
  readonly leftOut: LeftOut[] = [];
  readonly #apex: string;

  constructor(apex: string) {
    this.#apex = apex;
  }

  /** Reverse name to the names it points at. Imports have none. */
  get pointers(): ReadonlyMap<string, readonly string[]> {
    return this.#pointers ?? noPointers;
  }

  /** As the table has them: most names of ports are found in the entry of their service. */
  stored(): Sets {
    return storedNames(this.sets, this.#apex);
  }

  /** Adds a set under a name at or below the service's own, and the empty names between them. */
  add(name: string, set: RecordSet): void {
    if (set.records.length === 0) return;
    const known = this.sets.get(name);
    if (known === undefined && !this.#isAllowed(name)) return;
    // Most have one. An empty array would be given room for many with its first.
    if (known === undefined || known.length === 0) this.sets.set(name, [set]);
    else known.push(set);
    if (known === undefined) this.#existAbove(name);
  }

  /** The name exists, with or without records. */
  exist(name: string): void {
    if (this.sets.has(name) || !this.#isAllowed(name)) return;
    this.sets.set(name, []);
    this.#existAbove(name);
  }

  /** RFC 8020: a name with something below it exists. */
  #existAbove(name: string): void {
    for (let parent = parentOf(name); parent.length > this.#apex.length; parent = parentOf(parent)) {
      if (this.sets.has(parent)) break;
      this.sets.set(parent, []);
    }
    if (!this.sets.has(this.#apex)) this.sets.set(this.#apex, []);
  }

  point(address: Uint8Array, target: string): void {
    if (!this.sets.has(target)) return;
    const reverse = reverseName(address);
    const pointers = (this.#pointers ??= new Map());
    const targets = pointers.get(reverse);
    if (!targets) pointers.set(reverse, [target]);
    else if (!targets.includes(target)) targets.push(target);
  }

  /** Those of another object whose targets exist here too. */
  takePointers({ pointers }: OwnerNames): void {
    for (const [reverse, targets] of pointers) {
      const kept = targets.filter((target) => this.sets.has(target));
      if (kept.length > 0) (this.#pointers ??= new Map()).set(reverse, kept);
    }
  }

  #isAllowed(name: string): boolean {
    if (isName(name)) return true;
    this.leftOut.push({ what: name, why: 'no valid domain name: a label over 63 or a name over 255 bytes' });
    return false;
  }
}

function parentOf(name: string): string {
  return name.slice(name.indexOf('.') + 1);
}

/** An answer that does not fit into a message would never arrive. */
function keepWhatFits<T>(names: OwnerNames, what: string, items: readonly T[], bytesOf: (item: T) => number) {
  const kept = spreadToFit(items, bytesOf);
  const left = items.length - kept.length;
  if (left > 0)
    names.leftOut.push({ what: `${left} of ${items.length} ${what}`, why: 'more than fit into one message' });
  return kept;
}

export interface AddressRecord {
  readonly address: Uint8Array;
  readonly cluster: number;
  /** Its share of new connections; only where the order is `weighted`. */
  readonly share?: number;
}

/** One address of several endpoints has all their shares. */
function shareOf(records: readonly AddressRecord[], address: Uint8Array): number {
  let sum = 0;
  for (const record of records) if (areSameBytes(record.address, address)) sum += record.share ?? 0;
  return sum;
}

/** A and AAAA of the same addresses, each address once. */
export function addAddresses(
  names: OwnerNames,
  name: string,
  records: readonly AddressRecord[],
  how: Order,
  namesEndpoints?: boolean,
): void {
  for (const { type, size } of addressTypes) {
    let packed: PackedRecord[] | undefined;
    const seen = records.length > fewRecords ? new Set<string>() : undefined;
    for (const { address, cluster } of records) {
      if (address.length !== size || isAmong(packed ?? none, address, seen)) continue;
      const record = plainRecord(address, cluster);
      if (packed) packed.push(record);
      else packed = [record];
    }
    if (packed === undefined) continue;
    const kept = keepWhatFits(names, `addresses of ${name}`, packed, () => size);
    const ordered =
      how === order.weighted
        ? withSums(
            kept,
            kept.map(({ rdata }) => shareOf(records, rdata)),
          )
        : kept;
    names.add(name, { type, order: how, records: ordered, ...(namesEndpoints ? { namesEndpoints } : {}) });
  }
}

const addressTypes = [
  { type: recordType.A, size: 4 },
  { type: recordType.AAAA, size: 16 },
] as const;
const none: readonly PackedRecord[] = [];

/** Up to this many are compared with each other; beyond, what was seen is remembered. */
const fewRecords = 16;

function isAmong(packed: readonly PackedRecord[], address: Uint8Array, seen: Set<string> | undefined): boolean {
  if (seen === undefined) return packed.some(({ rdata }) => areSameBytes(rdata, address));
  const key = address.join('.');
  if (seen.has(key)) return true;
  seen.add(key);
  return false;
}

function areSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return a.length === b.length;
}

/** The name of a port exists whether an endpoint serves it at the moment or not. */
export function existPorts(names: OwnerNames, name: string, ports: readonly PortFacts[]): void {
  for (const port of ports) if (port.name !== '') names.exist(serviceLabel(port, name));
}

const protocolLabels: Readonly<Partial<Record<string, string>>> = { TCP: '_tcp', UDP: '_udp', SCTP: '_sctp' };

function serviceLabel(port: PortFacts, name: string): string {
  return `_${port.name.toLowerCase()}.${protocolLabels[port.protocol] ?? `_${port.protocol.toLowerCase()}`}.${name}`;
}

/** SRV of a service with addresses of its own: one per named port, pointing at the service. */
export function addServicePorts(names: OwnerNames, name: string, ports: readonly PortFacts[]): void {
  addSrv(names, name, { sources: ports.map((port) => ({ port, target: name, cluster: 0 })) });
}

export interface SrvSource {
  readonly port: PortFacts;
  readonly target: string;
  readonly cluster: number;
  /** Its share of new connections, 0 to 1; all are alike if absent. */
  readonly share?: number;
  /** Address of the endpoint that the target names, if the name is made of it. */
  readonly address?: Uint8Array;
}

export interface SrvOptions {
  readonly sources: readonly SrvSource[];
  readonly how?: Order;
}

/** SRV under `_port._proto` for each named port, and under the bare name one per target and number. */
export function addSrv(names: OwnerNames, name: string, { sources, how = order.fixed }: SrvOptions): void {
  const add = (at: string, some: readonly SrvSource[]) => addSrvSet(names, at, { service: name, sources: some, how });
  const [only] = sources;
  if (only !== undefined && sources.length === 1) {
    if (only.port.name === '') return;
    add(serviceLabel(only.port, name), sources);
    add(name, sources);
    return;
  }
  const byName = new Map<string, Map<string, SrvSource>>();
  const put = (at: string, source: SrvSource) => {
    const known = byName.get(at) ?? new Map<string, SrvSource>();
    byName.set(at, known);
    const key = `${source.port.port} ${source.target}`;
    if (!known.has(key)) known.set(key, source);
  };
  for (const source of sources) {
    if (source.port.name === '') continue;
    put(serviceLabel(source.port, name), source);
    put(name, source);
  }
  for (const [at, known] of byName) add(at, [...known.values()]);
}

function addSrvSet(
  names: OwnerNames,
  at: string,
  { service, sources, how }: { service: string; sources: readonly SrvSource[]; how: Order },
): void {
  // The target is not compressed (RFC 2782): as a message has it, it is two bytes longer than as text.
  const kept = keepWhatFits(names, `SRV records of ${at}`, sources, ({ target }) => srvHeadBytes + target.length + 2);
  const records: PackedRecord[] = [];
  for (const source of kept) {
    const record = srvRecord(source, service);
    if (record) records.push(record);
  }
  names.add(at, { type: recordType.SRV, order: how, records });
}

/** Fits into the 16 bits of a weight. */
const srvWeightsSum = 10_000;

function srvRecord(source: SrvSource, service: string): PackedRecord | undefined {
  const { port } = source.port;
  const weight = source.share === undefined ? 1 : Math.max(1, Math.round(source.share * srvWeightsSum));
  if (source.target === service) return plainRecord(srvData({ port }), source.cluster);
  if (source.address)
    return { ...plainRecord(srvData({ port, target: source.address }), source.cluster), leadsToEndpoint: true };
  const target = tryEncodeName(source.target);
  return target && plainRecord(srvData({ port, target, weight }), source.cluster);
}

export function endpointName(endpoint: EndpointFacts): string {
  return (endpoint.hostname || dashedAddress(endpoint.address)).toLowerCase();
}

/** All that it answers to: its name, and for an IPv6 address the form with all its groups. */
export function endpointNames(endpoint: EndpointFacts): string[] {
  const name = endpointName(endpoint);
  if (endpoint.hostname || endpoint.address.length === 4) return [name];
  const groups = dashedGroups(endpoint.address);
  return groups === name ? [name] : [name, groups];
}

export function noteUnready(names: OwnerNames, slice: NamedSlice, endpoint: EndpointFacts): void {
  const where = slice.cluster === '' ? `slice ${slice.name}` : `slice ${slice.name} of cluster ${slice.cluster}`;
  const which = endpoint.behindGateway === undefined ? `endpoint ${endpointName(endpoint)}` : 'an endpoint';
  names.leftOut.push({ what: `${which} in ${where}`, why: 'not ready' });
}
