// A zone's SOA, compressed against the question: every name in it ends in the zone, and so does the question.

import { recordType } from '../catalog/answers.ts';
import type { Zone } from '../catalog/zones.ts';
import type { Answer, Section } from './answer.ts';
import { headerBytes, type Query } from './wire.ts';

const refreshSeconds = 7200;
const retrySeconds = 1800;
const expireSeconds = 86_400;

export class SoaTemplate {
  readonly #zone: Zone;
  readonly #rdata: Uint8Array;
  readonly #view: DataView;
  readonly #primaryPointerAt: number;
  readonly #mailboxPointerAt: number;

  constructor(zone: Zone) {
    const primary = [2, ...Buffer.from('ns'), 3, ...Buffer.from('dns')];
    const mailbox = [10, ...Buffer.from('hostmaster')];
    this.#zone = zone;
    this.#primaryPointerAt = primary.length;
    this.#mailboxPointerAt = primary.length + 2 + mailbox.length;
    this.#rdata = Uint8Array.from([...primary, 0, 0, ...mailbox, 0, 0, ...new Uint8Array(20)]);
    this.#view = new DataView(this.#rdata.buffer);
    const numbers = this.#mailboxPointerAt + 2;
    this.#view.setUint32(numbers + 4, refreshSeconds);
    this.#view.setUint32(numbers + 8, retrySeconds);
    this.#view.setUint32(numbers + 12, expireSeconds);
    // RFC 2308 section 5: a "no" is remembered for the smaller of this and the record's own TTL.
    this.#view.setUint32(numbers + 16, zone.ttlSeconds);
  }

  write(answer: Answer, section: Section, query: Query, serial: number): void {
    const pointer = 0xc000 | (headerBytes + query.nameLength - this.#zone.bytes.length);
    this.#view.setUint16(this.#primaryPointerAt, pointer);
    this.#view.setUint16(this.#mailboxPointerAt, pointer);
    this.#view.setUint32(this.#mailboxPointerAt + 2, serial);
    answer.recordAt(section, recordType.SOA, this.#zone.ttlSeconds, this.#rdata, 0, this.#rdata.length, pointer);
  }
}
