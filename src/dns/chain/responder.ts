// From a packet to an answer: reads the query, walks the chain, completes the message. Knows no sockets. Immediate
// answers are written into the given memory; answers that need another server come later as messages of their own.

import { copyOf } from '../../base/bytes/copy.ts';
import { rcode } from '../../base/dns/codes.ts';
import { nameBytesMax } from '../../base/dns/name.ts';
import { signMessage } from '../../base/dns/tsig.ts';
import type { Clock } from '../../base/world.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Later, Observer } from '../message/handler.ts';
import { extendedError, Query, type Transport } from '../message/wire.ts';

export class Responder {
  readonly query = new Query();
  #chain: readonly Handler[];
  readonly #observer: Observer | undefined;
  readonly #clock: Clock | undefined;
  readonly #onFault: (error: unknown) => void;

  constructor(options: {
    /** Only needed by an observer. */
    readonly clock?: Clock;
    readonly chain: readonly Handler[];
    readonly observer?: Observer;
    readonly sourceOption?: number;
    readonly onFault: (error: unknown) => void;
  }) {
    this.#chain = options.chain;
    this.#observer = options.observer;
    this.#clock = options.observer && options.clock;
    this.#onFault = options.onFault;
    if (options.sourceOption !== undefined) this.query.sourceOption = options.sourceOption;
  }

  /** From the next query on. */
  replaceChain(chain: readonly Handler[]): void {
    this.#chain = chain;
  }

  /** Length of the answer written at `start`, 0 to stay silent, or a message that comes later. */
  respond(
    packet: Uint8Array,
    transport: Transport,
    address: string,
    port: number,
    identity: string,
    answer: Answer,
    start: number,
  ): number | Later {
    const { query } = this;
    query.transport = transport;
    query.clientAddress = address;
    query.clientPort = port;
    query.clientIdentity = identity;
    if (this.#clock) query.receivedMs = this.#clock.monotonicMs();
    const result = query.read(packet);
    if (result === 'silence') return 0;
    answer.begin(query, start);
    if (result !== 'ok') refuseUnread(result, answer);
    else {
      const later = this.#walk(query, answer);
      if (later === 'drop') return 0;
      if (later !== 'done') return later;
    }
    const length = answer.finish();
    this.#observer?.answered(query, answer);
    const { signature } = answer;
    if (!signature) return length;
    const message = copyOf(answer.bytes, answer.start, answer.start + length);
    const signed = signMessage(message, signature.key, signature).message;
    return { take: (take) => take(signed) };
  }

  #walk(query: Query, answer: Answer): 'done' | 'drop' | Later {
    try {
      for (const handler of this.#chain) {
        const step = handler.handle(query, answer);
        if (step === 'next') continue;
        answer.handler = handler.name;
        return step;
      }
    } catch (error) {
      this.#onFault(error);
      answer.clear();
      answer.isTruncated = false;
      answer.fail(rcode.SERVFAIL);
    }
    return 'done';
  }
}

function refuseUnread(result: 'formerr' | 'nametoolong' | 'notimp', answer: Answer): void {
  if (result === 'nametoolong')
    answer.fail(rcode.FORMERR, extendedError.other, `the name is longer than ${nameBytesMax} bytes`);
  else answer.fail(result === 'formerr' ? rcode.FORMERR : rcode.NOTIMP);
}
