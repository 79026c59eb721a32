// Keeps a table of counters in the kernel, reads it as a whole at regular looks, and passes on what has come since the last one.

import { errorText, type Log } from '../../base/log.ts';
import type { IpRange } from '../../base/net/ip.ts';
import type { Timer, World } from '../../base/world.ts';

/** Counters of one element, by column. */
type Counted<C> = { readonly [column in keyof C]: number };

export interface CounterLayout<C> {
  /** The table with its rules, whatever is there; counters stay. */
  script(ranges: readonly IpRange[]): string;
  readonly removeScript: string;
  /** From the JSON of the table; what is not understood is left out. */
  read(json: string): ReadonlyMap<string, C>;
}

export interface CounterTableOptions<C> {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly layout: CounterLayout<C>;
  /** What is logged if it cannot be read. */
  readonly problem: string;
  readonly ranges: readonly IpRange[];
  readonly lookMs: number;
  readonly nft: {
    apply(script: string): Promise<void>;
    /** JSON of the table. */
    listCounts(): Promise<string>;
  };
  readonly beforeLook?: () => void;
  /** By the key of the element; elements without a change are left out. */
  readonly onLook: (since: ReadonlyMap<string, C>) => void;
}

/** Reading costs some 30 µs of CPU for each element: it takes at most a seventh of a core, however many there are. */
const lookMsEach = 0.2;
/** Between a look and one that is asked for. */
const soonMs = 50;

export class CounterTable<C extends Counted<C>> {
  readonly #options: CounterTableOptions<C>;
  #ranges: readonly IpRange[];
  #last: ReadonlyMap<string, C> = new Map();
  /** What is in the kernel. */
  #script = '';
  #problem = '';
  #timer: Timer | undefined;
  #isStopped = false;
  #running: Promise<void> | undefined;

  constructor(options: CounterTableOptions<C>) {
    this.#options = options;
    this.#ranges = options.ranges;
  }

  /** What an earlier process left is removed: counters begin at zero. Resolves when the kernel counts, or cannot. */
  async start(): Promise<void> {
    this.#run(async () => {
      await this.#options.nft.apply(this.#options.layout.removeScript);
      await this.#look();
    });
    await this.#running;
  }

  setRanges(ranges: readonly IpRange[]): void {
    this.#ranges = ranges;
  }

  /** Not at the next regular look. */
  lookSoon(): void {
    if (this.#running === undefined && this.#timer !== undefined) this.#later(soonMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
    const { nft, layout } = this.#options;
    if (this.#script !== '') await nft.apply(layout.removeScript).catch((error) => this.#failed(error));
  }

  #later(delayMs: number): void {
    this.#timer?.cancel();
    if (!this.#isStopped) this.#timer = this.#options.world.timers.after(delayMs, () => this.#run(() => this.#look()));
  }

  #run(work: () => Promise<void>): void {
    this.#running = work()
      .catch((error: unknown) => this.#failed(error))
      .then(() => {
        this.#running = undefined;
        this.#later(Math.max(this.#options.lookMs, this.#last.size * lookMsEach));
      });
  }

  async #look(): Promise<void> {
    const { nft, layout } = this.#options;
    this.#options.beforeLook?.();
    const script = layout.script(this.#ranges);
    if (script !== this.#script) {
      await nft.apply(script);
      this.#script = script;
    }
    const now = layout.read(await nft.listCounts());
    const since = changes(this.#last, now);
    this.#last = now;
    this.#problem = '';
    this.#options.onLook(since);
  }

  /** Once for each text. Without counters a shift waits and no endpoint is left: nothing is judged by what is not known. */
  #failed(error: unknown): void {
    // Somebody may have deleted it: it is written again.
    this.#script = '';
    const text = errorText(error);
    if (text === this.#problem) return;
    this.#problem = text;
    this.#options.log.warn(this.#options.problem, { error: text });
  }
}

/** A counter that is lower than before began again. */
function changes<C extends Counted<C>>(before: ReadonlyMap<string, C>, now: ReadonlyMap<string, C>): Map<string, C> {
  const since = new Map<string, C>();
  for (const [key, counts] of now) {
    const known = before.get(key);
    const added: Partial<Record<keyof C, number>> = {};
    let isChanged = false;
    for (const column in counts) {
      const was = known?.[column] ?? 0;
      const more = counts[column] < was ? counts[column] : counts[column] - was;
      added[column] = more;
      isChanged ||= more > 0;
    }
    if (isChanged) since.set(key, added as C);
  }
  return since;
}
