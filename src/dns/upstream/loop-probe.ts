// Whether what we pass on comes back to us. Plain forwarding carries no word of who has passed a query on, so a name
// that only this server can answer is asked for: `<mark>.portolan-loop.<zone>`. A client that asks us for the name
// got it from us, so the answer reaches the sender and shows the loop. Pure.

import { classIn, recordType } from '../../base/dns/codes.ts';
import { encodeName } from '../../base/dns/name.ts';
import type { Answer } from '../message/answer.ts';
import { headerBytes, type Query } from '../message/wire.ts';

/** Leaves room for the two labels before it. */
const zoneLengthMax = 200;

/** `mark` is this server's own; the zone is the one that is passed on, empty for all names. Undefined if it is too long. */
export function loopProbeFor(options: { readonly mark: string; readonly zone: string }): LoopProbe | undefined {
  return options.zone.length > zoneLengthMax ? undefined : new LoopProbe(options);
}

export class LoopProbe {
  readonly #name: Uint8Array;
  /** The part of the answer that is not in the question. */
  readonly #seen: Buffer;

  constructor(options: { readonly mark: string; readonly zone: string }) {
    // Not below `.invalid`: a resolver answers that itself (RFC 6761), this one too, so the probe would never come back.
    const zone = options.zone === '' ? '' : `.${options.zone}`;
    this.#name = encodeName(`${options.mark}.portolan-loop${zone}`);
    this.#seen = Buffer.from(`came back to ${options.mark}`);
  }

  question(): Uint8Array {
    const name = this.#name;
    const bytes = Buffer.alloc(headerBytes + name.length + 4);
    bytes.writeUInt16BE(0x0100, 2);
    bytes.writeUInt16BE(1, 4);
    bytes.set(name, headerBytes);
    bytes.writeUInt16BE(recordType.TXT, headerBytes + name.length);
    bytes.writeUInt16BE(classIn, headerBytes + name.length + 2);
    return bytes;
  }

  /** Whether a query is this very probe. */
  isIn(query: Query): boolean {
    const name = this.#name;
    if (query.nameLength !== name.length) return false;
    for (let i = 0; i < name.length; i++) if (query.name[i] !== name[i]) return false;
    return true;
  }

  fill(answer: Answer): void {
    const rdata = Buffer.concat([Buffer.from([this.#seen.length]), this.#seen]);
    answer.recordOf('answer', { owner: this.#name, type: recordType.TXT, ttl: 0, rdata });
  }

  /** Whether a reply is what `fill` wrote. */
  hasComeBack(reply: Uint8Array): boolean {
    return Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength).includes(this.#seen);
  }
}
