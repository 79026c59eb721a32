// Names of ports that have no entry of their own: `_http._tcp.<service>` and `_tcp.<service>` are found by reading the entry
// of the service, which lists its ports (src/catalog/names/port-names.ts).

import { recordType } from '../../base/dns/codes.ts';
import { hashBytes } from '../../base/dns/name.ts';
import {
  findSet,
  portHeadBytes,
  portKind,
  portsType,
  recordHeaderBytes,
  setHeaderBytes,
} from '../../catalog/names/answers.ts';
import type { CatalogReader } from './reader.ts';

const underscore = 0x5f;
const labelsAt = recordHeaderBytes + portHeadBytes;

/** The last port that was found: no object is made for a query. */
export class PortFinder {
  /** Where the SRV records of the port lie in the catalog's bytes; -1 if it has none. */
  setAt = -1;
  /** Only records with this port number belong to it; -1 for all of them. */
  only = -1;

  /** Whether the name is that of a port or a protocol of a service. */
  find({ names }: CatalogReader, name: Uint8Array, length: number): boolean {
    const serviceAt = endOfLabels(name);
    if (serviceAt === 0) return false;
    const service = name.subarray(serviceAt, length);
    const entry = names.find(service, service.length, hashBytes(name, serviceAt, length));
    if (entry < 0) return false;
    const start = names.valueStart(entry);
    const size = names.valueLength(entry);
    const portsAt = findSet(names.bytes, start, size, portsType);
    return portsAt >= 0 && this.#findIn(names.bytes, portsAt, name.subarray(0, serviceAt), { start, size });
  }

  #findIn(bytes: Uint8Array, portsAt: number, prefix: Uint8Array, entry: { start: number; size: number }): boolean {
    const isProtocol = prefix.length === prefix[0]! + 1;
    this.setAt = this.only = -1;
    const count = (bytes[portsAt + 3]! << 8) | bytes[portsAt + 4]!;
    for (let i = 0, record = portsAt + setHeaderBytes; i < count; i++) {
      const end = record + recordHeaderBytes + ((bytes[record + 3]! << 8) | bytes[record + 4]!);
      const start = record + labelsAt;
      const protocolAt = start + bytes[start]! + 1;
      if (isProtocol && holds(bytes, protocolAt, end, prefix)) return true;
      if (!isProtocol && holds(bytes, start, end, prefix)) {
        const kind = bytes[record + recordHeaderBytes];
        if (kind !== portKind.none) this.setAt = findSet(bytes, entry.start, entry.size, recordType.SRV);
        if (kind === portKind.one) this.only = (bytes[start - 2]! << 8) | bytes[start - 1]!;
        return true;
      }
      record = end;
    }
    return false;
  }
}

/** Where the service begins behind one or two labels with an underscore; 0 if there are none or more. */
function endOfLabels(name: Uint8Array): number {
  let at = 0;
  for (let labels = 0; labels <= 2; labels++) {
    if (name[at] === 0 || name[at + 1] !== underscore) return at;
    at += name[at]! + 1;
  }
  return 0;
}

function holds(bytes: Uint8Array, start: number, end: number, part: Uint8Array): boolean {
  if (end - start !== part.length) return false;
  for (let i = 0; i < part.length; i++) if (bytes[start + i] !== part[i]) return false;
  return true;
}
