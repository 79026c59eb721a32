// Which names of a service need an entry of their own: `_http._tcp.<service>` and `_tcp.<service>` mostly do not, because the
// entry of the service tells which of its SRV records belong to which port (src/dns/ports.ts reads it). Pure.

import { recordType } from '../base/dns/codes.ts';
import { encodeName } from '../base/dns/name.ts';
import {
  areSameRecords,
  order,
  type PackedRecord,
  plainRecord,
  portKind,
  portsType,
  type RecordSet,
  srvPort,
} from './answers.ts';

export type Sets = ReadonlyMap<string, readonly RecordSet[]>;

/** The names of one service as the table has them. */
export function storedNames(names: Sets, service: string): Sets {
  const ports: PackedRecord[] = [];
  const leftOut: string[] = [];
  const all = srvOf(names.get(service)) ?? noSrv;
  for (const [name, sets] of names) {
    const labels = name.charCodeAt(0) === underscore ? labelsBefore(name, service) : 0;
    if (labels === 0) continue;
    const port = labels === 2 ? portRecord(name, sets, { service, all }) : undefined;
    // One that is not like the others keeps all of them in the table.
    if (labels > 2 || (labels === 2 && !port) || (labels === 1 && sets.length > 0)) return names;
    if (port) ports.push(port);
    leftOut.push(name);
  }
  if (ports.length === 0) return names;
  const stored = new Map(names);
  for (const name of leftOut) stored.delete(name);
  stored.set(service, [...(names.get(service) ?? []), { type: portsType, order: order.fixed, records: ports }]);
  return stored;
}

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
  if (!own || sets.length > 1) return undefined;
  const labels = encodeName(name.slice(0, -service.length));
  const record = (kind: number, port: number) => {
    const rdata = new Uint8Array(3 + labels.length - 1);
    rdata.set([kind, port >> 8, port & 255]);
    rdata.set(labels.subarray(0, -1), 3);
    return plainRecord(rdata);
  };
  if (own.records.length === 0) return record(portKind.none, 0);
  if (own.order !== all.order) return undefined;
  if (areSameRecords(own.records, all.records)) return record(portKind.all, 0);
  const port = srvPort(own.records[0]!.rdata);
  const some = all.records.filter(({ rdata }) => srvPort(rdata) === port);
  // Other orders choose among all records of a set before one is left out.
  return own.order === order.fixed && areSameRecords(own.records, some) ? record(portKind.one, port) : undefined;
}

function srvOf(sets: readonly RecordSet[] | undefined): RecordSet | undefined {
  return sets?.find(({ type }) => type === recordType.SRV);
}
