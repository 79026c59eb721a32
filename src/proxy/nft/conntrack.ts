// Ends the connection-tracking entries of backends that are gone: without it a client that keeps its UDP port would stay with
// a dead one, and so would a new TCP connection from a port whose last one was never answered. Established TCP goes on.

import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import { MissingProgram, runProgram } from './edge/programs.ts';
import type { GoneBackend } from './ruleset.ts';

/** More than these at once: all such entries to the address are ended in one go. */
const singleMax = 20;

export class Conntrack {
  readonly #host: Host;
  readonly #log: Log;
  #isMissing = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(host: Host, log: Log) {
    this.#host = host;
    this.#log = log;
  }

  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Resolves when they are gone, or could not be removed. */
  clear(gone: readonly GoneBackend[]): Promise<void> {
    const byAddress = Map.groupBy(gone, ({ ip, protocol }) => `${protocol} ${ip}`);
    for (const backends of byAddress.values()) {
      const { ip, version, protocol } = backends[0]!;
      const family = version === 4 ? [] : ['-f', 'ipv6'];
      const unanswered = protocol === 'tcp' ? ['--state', 'SYN_SENT'] : [];
      const all = ['-D', ...family, '-p', protocol, ...unanswered, '--orig-dst', ip];
      if (backends.length > singleMax) this.#enqueue(all);
      else for (const { backend } of backends) this.#enqueue([...all, '--reply-src', backend.split(' ')[0]!]);
    }
    return this.#turn;
  }

  #enqueue(args: readonly string[]): void {
    this.#turn = this.#turn.then(() => this.#run(args));
  }

  async #run(args: readonly string[]): Promise<void> {
    if (this.#isMissing) return;
    try {
      const { code, err } = await runProgram(this.#host, 'conntrack', args);
      if (code !== 0 && !/0 flow entries have been deleted/.test(err))
        this.#log.warn('connection-tracking entries were not removed', { args: args.join(' '), error: err });
    } catch (error) {
      if (!(error instanceof MissingProgram)) {
        this.#log.warn('connection-tracking entries were not removed', { error: errorText(error) });
        return;
      }
      this.#isMissing = true;
      this.#log.warn('conntrack is not installed: clients may stay with removed endpoints; install conntrack');
    }
  }
}
