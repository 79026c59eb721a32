// Which changes of our table are our own. The kernel names the process behind a change by its number on the node, and in a
// Pod we do not know ours: so we ask our own nft for a change that nobody else makes, and see under which number it comes.

import type { Timer, World } from '../../base/world.ts';
import { markPrefix, type SeenTransaction } from './edge/monitor.ts';

interface ForeignChange {
  readonly pid: number;
  readonly line: string;
}

export interface OwnWritersOptions {
  readonly world: Pick<World, 'timers' | 'random'>;
  /** Makes a transaction with this mark through the program that makes all of ours. */
  readonly introduce: (mark: string) => Promise<void>;
  readonly onForeign: (change: ForeignChange) => void;
}

/** After so long without an answer a change counts as another's. */
const answerMs = 5000;
const ownMax = 100;
const suspectsMax = 100;

export class OwnWriters {
  readonly #options: OwnWritersOptions;
  readonly #own = new Set<number>();
  /** Changes by processes that may be ours, until that is known; the first of each. */
  readonly #suspects = new Map<number, string>();
  #asked: { readonly mark: string; readonly timer: Timer } | undefined;

  constructor(options: OwnWritersOptions) {
    this.#options = options;
  }

  seen({ pid, line, mark }: SeenTransaction): void {
    if (mark !== undefined && mark === this.#asked?.mark) this.#learn(pid);
    if (line === undefined || this.#own.has(pid)) return;
    if (this.#suspects.size < suspectsMax && !this.#suspects.has(pid)) this.#suspects.set(pid, line);
    if (this.#asked === undefined) this.#ask();
  }

  stop(): void {
    this.#asked?.timer.cancel();
    this.#suspects.clear();
  }

  #ask(): void {
    const { world, introduce } = this.#options;
    const mark = `${markPrefix}${Buffer.from(world.random.bytes(8)).toString('hex')}`;
    const asked = { mark, timer: world.timers.after(answerMs, () => this.#judge()) };
    this.#asked = asked;
    introduce(mark).catch(() => {
      if (this.#asked === asked) this.#judge();
    });
  }

  #learn(pid: number): void {
    this.#own.add(pid);
    if (this.#own.size > ownMax) this.#own.delete(this.#own.values().next().value!);
    this.#judge();
  }

  #judge(): void {
    this.#asked?.timer.cancel();
    this.#asked = undefined;
    const suspects = [...this.#suspects];
    this.#suspects.clear();
    for (const [pid, line] of suspects) if (!this.#own.has(pid)) this.#options.onForeign({ pid, line });
  }
}
