// Tells secondaries that a zone has changed (RFC 1996), signed if there is a key. One that does not answer is told again, later
// each time; a change meanwhile starts anew.

import { classIn, rcode, rcodeNames, recordType } from '../../base/dns/codes.ts';
import { encodeMessage, tryDecodeMessage } from '../../base/dns/message.ts';
import { signMessage } from '../../base/dns/tsig.ts';
import { errorText, type Log } from '../../base/log.ts';
import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';
import { parseServerAddress, type TransferConfig } from '../config/config.ts';
import type { Exchange } from './exchange.ts';

export interface NotifyOptions extends TransferConfig {
  readonly world: Pick<World, 'timers' | 'clock'>;
  readonly log: Log;
  readonly exchange: Exchange;
  /** The zone as it is now; undefined while it cannot be transferred. */
  readonly current: () => { readonly zone: string; readonly serial: number } | undefined;
}

export interface SecondaryState {
  readonly server: string;
  /** The last serial that it has taken note of. */
  readonly serial: number | undefined;
  /** Why it has not been told of the present one; empty if it has. */
  readonly problem: string;
}

export interface Notifier {
  states(): SecondaryState[];
  stop(): void;
}

/** At most one message a second to each secondary, however often the zone changes. */
const lookMs = 1000;
const timeoutMs = 2000;
const retryMs = { min: 2000, max: 60_000 };
/** Opcode NOTIFY, with authority. */
const flags = 0x2400;

export function runNotify(options: NotifyOptions): Notifier {
  const all = options.secondaries.map((server) => new Secondary(server, options));
  const stop = repeat(options.world.timers, { everyMs: lookMs }, () => {
    for (const secondary of all) secondary.look();
  });
  return { states: () => all.map((secondary) => secondary.state), stop };
}

class Secondary {
  readonly #server: string;
  readonly #options: NotifyOptions;
  #told: { readonly zone: string; readonly serial: number } | undefined;
  #problem = '';
  #isTelling = false;
  #waitMs = retryMs.min;
  #notBeforeMs = 0;

  constructor(server: string, options: NotifyOptions) {
    this.#server = server;
    this.#options = options;
  }

  get state(): SecondaryState {
    return { server: this.#server, serial: this.#told?.serial, problem: this.#problem };
  }

  look(): void {
    const wanted = this.#options.current();
    const isTold = this.#told?.serial === wanted?.serial && this.#told?.zone === wanted?.zone;
    if (wanted === undefined || isTold || this.#isTelling) return;
    if (this.#options.world.clock.monotonicMs() < this.#notBeforeMs) return;
    this.#isTelling = true;
    this.#tell(wanted)
      .then(
        () => {
          if (this.#problem !== '') this.#options.log.info('a secondary takes notice again', { server: this.#server });
          this.#told = wanted;
          this.#problem = '';
          this.#waitMs = retryMs.min;
        },
        (error: unknown) => this.#failed(errorText(error)),
      )
      .finally(() => (this.#isTelling = false));
  }

  #failed(problem: string): void {
    const { world, log } = this.#options;
    if (problem !== this.#problem) log.warn('a secondary was not told of a change', { server: this.#server, problem });
    this.#problem = problem;
    this.#notBeforeMs = world.clock.monotonicMs() + this.#waitMs;
    this.#waitMs = Math.min(2 * this.#waitMs, retryMs.max);
  }

  async #tell({ zone }: { readonly zone: string }): Promise<void> {
    const { exchange, keys, world } = this.#options;
    const questions = [{ name: zone, type: recordType.SOA, class: classIn }];
    const plain = encodeMessage({ id: 0, flags, questions, answers: [], authorities: [], additionals: [] });
    const timeSeconds = Math.floor(world.clock.wallMs() / 1000);
    const [key] = keys;
    const message = key ? signMessage(plain, key, { timeSeconds }).message : plain;
    const server = parseServerAddress(this.#server);
    const reply = tryDecodeMessage(await exchange.ask({ server, message, timeoutMs, isTcp: false }));
    const code = reply ? reply.flags & 15 : rcode.FORMERR;
    if (code !== rcode.NOERROR) throw new Error(`${this.#server} answers ${rcodeNames[code] ?? code}`);
  }
}
