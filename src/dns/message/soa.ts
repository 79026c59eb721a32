// A zone's SOA, compressed against the question: every name in it ends in the zone, and so does the question. A name that is
// a single name outside our zones has its server and mailbox in another zone, and these are written out.

import { recordType } from '../../base/dns/codes.ts';
import { encodeName } from '../../base/dns/name.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import type { Answer, Section } from './answer.ts';
import { headerBytes, type Query } from './wire.ts';

const refreshSeconds = 7200;
const retrySeconds = 1800;
const expireSeconds = 86_400;

/** With all names written out, for a transfer. */
export function soaData(zone: Zone, serial: number): Uint8Array {
  const numbers = Buffer.alloc(20);
  for (const [index, value] of [serial, refreshSeconds, retrySeconds, expireSeconds, zone.ttlSeconds].entries())
    numbers.writeUInt32BE(value, 4 * index);
  const server = zone.source === 'federation' ? zone.name : `ns.dns.${zone.name}`;
  return Buffer.concat([encodeName(server), encodeName(`hostmaster.${zone.name}`), numbers]);
}

export class SoaTemplate {
  readonly #zone: Zone;
  readonly #rdata: Uint8Array;
  readonly #view: DataView;
  readonly #isSingleName: boolean;
  readonly #primaryEnd: number;
  readonly #mailboxEnd: number;

  constructor(zone: Zone, { isSingleName = false } = {}) {
    // Both end in a pointer that is set for each question, or in the zone they lie in.
    const end = isSingleName ? zone.bytes : [0, 0];
    const server = zone.source === 'federation' ? [] : encodeName('ns.dns').subarray(0, -1);
    const primary = [...server, ...end];
    const mailbox = [...encodeName('hostmaster').subarray(0, -1), ...end];
    this.#zone = zone;
    this.#isSingleName = isSingleName;
    this.#primaryEnd = primary.length;
    this.#mailboxEnd = primary.length + mailbox.length;
    this.#rdata = Uint8Array.from([...primary, ...mailbox, ...new Uint8Array(20)]);
    this.#view = new DataView(this.#rdata.buffer);
    const numbers = this.#mailboxEnd;
    this.#view.setUint32(numbers + 4, refreshSeconds);
    this.#view.setUint32(numbers + 8, retrySeconds);
    this.#view.setUint32(numbers + 12, expireSeconds);
    // RFC 2308 section 5: a "no" is remembered for the smaller of this and the record's own TTL.
    this.#view.setUint32(numbers + 16, zone.ttlSeconds);
  }

  /** Its owner is the end of the question that is `apexLength` bytes long. */
  write(answer: Answer, section: Section, query: Query, serial: number, apexLength: number): void {
    this.writeAt(answer, section, serial, headerBytes + query.nameLength - apexLength);
  }

  /** Its owner stands at this offset of the message. */
  writeAt(answer: Answer, section: Section, serial: number, ownerAt: number): void {
    const pointer = 0xc000 | ownerAt;
    if (!this.#isSingleName) {
      this.#view.setUint16(this.#primaryEnd - 2, pointer);
      this.#view.setUint16(this.#mailboxEnd - 2, pointer);
    }
    this.#view.setUint32(this.#mailboxEnd, serial);
    answer.recordAt(section, recordType.SOA, this.#zone.ttlSeconds, this.#rdata, 0, this.#rdata.length, pointer);
  }
}
