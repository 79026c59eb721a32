// Which names of a service need an entry of their own: `_http._tcp.<service>` and `_tcp.<service>` mostly do not, because the
// entry of the service tells which of its SRV records belong to which port (src/dns/zones/ports.ts reads it). Pure.

import { recordType } from '../../base/dns/codes.ts';
import {
  areSameRecords,
  order,
  type PackedRecord,
  plainRecord,
  portHeadBytes,
  portKind,
  portsType,
  type RecordSet,
  srvPort,
} from './answers.ts';

export type Sets = ReadonlyMap<string, readonly RecordSet[]>;

/** The names of one service as the table has them. */
export function storedNames(names: Sets, service: string): Sets {
  const ports: PackedRecord[] = [];
  const protocols = new Set<string>();
  const stored = new Map<string, readonly RecordSet[]>();
  const all = srvOf(names.get(service)) ?? noSrv;
  for (const [name, sets] of names) {
    const labels = name.charCodeAt(0) === underscore ? labelsBefore(name, service) : 0;
    if (labels !== 2) {
      stored.set(name, sets);
      continue;
    }
    const port = portRecord(name, sets, { service, all });
    // One that is not like the others keeps all of them in the table.
    if (!port) return names;
    ports.push(port);
    protocols.add(name.slice(name.indexOf('.') + 1));
  }
  if (ports.length === 0) return names;
  for (const protocol of protocols) {
    if (stored.get(protocol)?.length !== 0) return names;
    stored.delete(protocol);
  }
  stored.set(service, [...(names.get(service) ?? []), { type: portsType, order: order.fixed, records: ports }]);
  return stored;
}

/** Its characters are its bytes. */
const isPlain = /^[!-Z^-z]*$/;
const underscore = '_'.charCodeAt(0);
const noSrv: RecordSet = { type: recordType.SRV, order: order.fixed, records: [] };

/** How many labels stand in front of the service; 0 if another label than those of ports is among them. */
function labelsBefore(name: string, service: string): number {
  const end = name.length - service.length;
  let labels = 0;
  for (let at = 0; at < end; at = name.indexOf('.', at) + 1) {
    if (name.charCodeAt(at) !== underscore) return 0;
    labels += 1;
  }
  return labels;
}

/** Undefined if its records cannot be found among those of the service. */
function portRecord(
  name: string,
  sets: readonly RecordSet[],
  { service, all }: { readonly service: string; readonly all: RecordSet },
): PackedRecord | undefined {
  const own = sets.length === 0 ? noSrv : srvOf(sets);
  if (!own || sets.length > 1 || !isPlain.test(name)) return undefined;
  const record = (kind: number, port: number) =>
    plainRecord(portData({ kind, port }, name, name.length - service.length));
  if (own.records.length === 0) return record(portKind.none, 0);
  if (own.order !== all.order) return undefined;
  if (areSameRecords(own.records, all.records)) return record(portKind.all, 0);
  const port = srvPort(own.records[0]!.rdata);
  const some = all.records.filter(({ rdata }) => srvPort(rdata) === port);
  // Other orders choose among all records of a set before one is left out.
  return own.order === order.fixed && areSameRecords(own.records, some) ? record(portKind.one, port) : undefined;
}

/** The labels are the first `end` characters of the name, each with a dot behind it. */
function portData({ kind, port }: { readonly kind: number; readonly port: number }, name: string, end: number) {
  const data = new Uint8Array(portHeadBytes + end);
  data[0] = kind;
  data[1] = port >> 8;
  data[2] = port & 255;
  for (let at = 0; at < end; ) {
    const dot = name.indexOf('.', at);
    data[portHeadBytes + at] = dot - at;
    for (let i = at; i < dot; i++) data[portHeadBytes + 1 + i] = name.charCodeAt(i);
    at = dot + 1;
  }
  return data;
}

function srvOf(sets: readonly RecordSet[] | undefined): RecordSet | undefined {
  return sets?.find(({ type }) => type === recordType.SRV);
}
