// The records of one name, packed: the zone, then one record set per type with its rdata ready for the wire. Each
// record says which cluster it comes from and for whom it is, so that the order can be chosen when a query arrives.
//
//   value  = zone u8 (its number, and marks), set*
//   set    = type u16, order u8 (and marks), count u16, bytes u32, record*
//   record = cluster u16, audience u8 (and a mark), rdlength u16, rdata
//
// An SRV record that leads to the service it belongs to leaves its target out: who asks has just named it. One that leads to
// an endpoint has the endpoint's address there. Endpoints without hostnames have no entries: their names are found by
// reading the address sets of their service (src/dns/zones/endpoint-hosts.ts). Most names of ports have none either: the entry of
// their service lists them (port-names.ts).
//
//   rdata of a port = kind u8, port u16, its labels (`_http._tcp`)

import { copyOf } from '../../base/bytes/copy.ts';
import { ByteWriter } from '../../base/dns/bytes.ts';

/** How the records of a set are chosen and put in order for the one who asks. */
export const order = {
  /** All, as stored. */
  fixed: 0,
  /** All, starting somewhere else each time. */
  rotating: 1,
  /** The asking cluster's own if there are any, else one other cluster after the other. */
  localFirst: 2,
  /** All: own cluster, same zone, same region, the rest. */
  nearestFirst: 3,
  /** Only the nearest tier that has any. */
  nearestOnly: 4,
  /** Only the own cluster's if there are any, else all, nearest first. */
  localOnlyIfHealthy: 5,
  /** All, starting at one that is drawn by its share. In place of a cluster each record has the sum of the shares up to it. */
  weighted: 6,
} as const;
export type Order = (typeof order)[keyof typeof order];

/** Beside the order: the set has equal records, of which an answer holds one. */
export const equalRecordsMark = 0x80;

/** Beside the order: each record of the set is an endpoint with a name of its own, `<dashed address>.<cluster>.<service>`. */
export const endpointsMark = 0x40;

/** The type of a set of endpoints that its service's address sets do not show. No query leads to it: ANY is answered apart. */
export const endpointsType = 255;

/** The type of the set that lists the ports of a service: reserved (RFC 6895 section 3.1); who asks for it is refused. */
export const portsType = 0;

/** Which SRV records of the service belong to a port. */
export const portKind = { all: 0, /** Those with its number. */ one: 1, none: 2 } as const;

/** Kind and number, before the labels of a port. */
export const portHeadBytes = 3;

/** Beside the audience of an SRV record: behind the head is the address of the endpoint it leads to. */
export const endpointTarget = 0x80;

export const audience = { everybody: 0, ownCluster: 1, otherClusters: 2 } as const;
type Audience = (typeof audience)[keyof typeof audience];

/** Beside the number of a name's zone, which is below all of them. */
export const zoneMark = {
  /** The name lies in no zone of ours and is one of its own. */
  singleName: 0x40,
  /** The source of the name is away: it is answered and marked as old. */
  old: 0x80,
} as const;

/** A record that belongs to no cluster in particular. */
const noCluster = 0;

export interface PackedRecord {
  readonly cluster: number;
  readonly audience: Audience;
  readonly rdata: Uint8Array;
  readonly leadsToEndpoint?: boolean;
}

export interface RecordSet {
  readonly type: number;
  readonly order: Order;
  readonly records: readonly PackedRecord[];
  /** Two clusters have a record in common: which of them counts depends on who asks. */
  readonly hasEqualRecords?: boolean;
  /** Each record is an endpoint with a name of its own. */
  readonly namesEndpoints?: boolean;
}

export const setHeaderBytes = 9;
export const recordHeaderBytes = 5;

export function packAnswers(writer: ByteWriter, zone: number, sets: readonly RecordSet[]): Uint8Array {
  writer.reset().u8(zone);
  for (const set of sets) {
    const mark = (set.hasEqualRecords ? equalRecordsMark : 0) | (set.namesEndpoints ? endpointsMark : 0);
    writer
      .u16(set.type)
      .u8(set.order | mark)
      .u16(set.records.length);
    const lengthAt = writer.length;
    writer.u32(0);
    for (const record of set.records) {
      const meant = record.audience | (record.leadsToEndpoint ? endpointTarget : 0);
      writer.u16(record.cluster).u8(meant).u16(record.rdata.length).raw(record.rdata);
    }
    writer.setU32(lengthAt, writer.length - lengthAt - 4);
  }
  return writer.view();
}

export function unpackAnswers(value: Uint8Array): { zone: number; sets: RecordSet[] } {
  const sets: RecordSet[] = [];
  const u16 = (at: number) => (value[at]! << 8) | value[at + 1]!;
  for (let at = 1; at < value.length; ) {
    const count = u16(at + 3);
    const records: PackedRecord[] = [];
    let record = at + setHeaderBytes;
    for (let i = 0; i < count; i++) {
      const start = record + recordHeaderBytes;
      const end = start + u16(record + 3);
      const meant = value[record + 2]!;
      const leads = meant & endpointTarget ? { leadsToEndpoint: true } : {};
      const heard = (meant & ~endpointTarget) as Audience;
      records.push({ cluster: u16(record), audience: heard, rdata: copyOf(value, start, end), ...leads });
      record = end;
    }
    const how = value[at + 2]!;
    const equal = how & equalRecordsMark ? { hasEqualRecords: true } : {};
    const named = how & endpointsMark ? { namesEndpoints: true } : {};
    sets.push({ type: u16(at), order: orderIn(how), records, ...equal, ...named });
    at = record;
  }
  return { zone: value[0]!, sets };
}

/** Without the marks beside it. */
export function orderIn(marked: number): Order {
  return (marked & ~(equalRecordsMark | endpointsMark)) as Order;
}

/** Where the set of this type starts in `bytes`, or -1. Hot path: no objects. */
export function findSet(bytes: Uint8Array, start: number, length: number, type: number): number {
  const end = start + length;
  for (let at = start + 1; at < end; ) {
    if (((bytes[at]! << 8) | bytes[at + 1]!) === type) return at;
    at +=
      setHeaderBytes +
      (((bytes[at + 5]! << 24) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 8) | bytes[at + 8]!) >>> 0);
  }
  return -1;
}

export function plainRecord(rdata: Uint8Array, cluster: number = noCluster): PackedRecord {
  return { cluster, audience: audience.everybody, rdata };
}

/** Priority, weight and port: all there is of an SRV record that leads to its own service. */
export const srvHeadBytes = 6;

/** Without a target it leads to the service the name belongs to. */
export function srvData(options: { port: number; target?: Uint8Array; weight?: number }): Uint8Array {
  const { target = noTarget, weight = 1, port } = options;
  const data = new Uint8Array(srvHeadBytes + target.length);
  data[2] = weight >> 8;
  data[3] = weight;
  data[4] = port >> 8;
  data[5] = port;
  data.set(target, srvHeadBytes);
  return data;
}

export function srvPort(rdata: Uint8Array): number {
  return (rdata[4]! << 8) | rdata[5]!;
}

export function areSameRecords(a: readonly PackedRecord[], b: readonly PackedRecord[]): boolean {
  return a.length === b.length && a.every((record, i) => isSameRecord(record, b[i]!));
}

function isSameRecord(a: PackedRecord, b: PackedRecord): boolean {
  if (a.cluster !== b.cluster || a.audience !== b.audience || a.leadsToEndpoint !== b.leadsToEndpoint) return false;
  if (a.rdata.length !== b.rdata.length) return false;
  for (let i = 0; i < a.rdata.length; i++) if (a.rdata[i] !== b.rdata[i]) return false;
  return true;
}

/** The last sum of shares in a set. */
export const sharesSum = 0xffff;

/** The same records with the sum of the shares up to each, 0 to `sharesSum`. */
export function withSums(records: readonly PackedRecord[], shares: readonly number[]): PackedRecord[] {
  const total = shares.reduce((sum, share) => sum + share, 0);
  let reached = 0;
  return records.map((record, index) => {
    reached += shares[index]!;
    return { ...record, cluster: Math.round((sharesSum * reached) / total) };
  });
}

const noTarget = new Uint8Array(0);

export function txtData(text: string): Uint8Array {
  return new ByteWriter(1 + text.length).text(text).copy();
}
