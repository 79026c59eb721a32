// Time limits of many things that wait equally long: all of one length share a list and one timer, so that setting and
// clearing one is a few assignments. Most are cleared long before they expire.

import type { Timer, World } from '../../base/world.ts';

export abstract class Deadline {
  list: DeadlineList | undefined = undefined;
  before: Deadline | undefined = undefined;
  after: Deadline | undefined = undefined;
  atMs = 0;

  abstract expire(): void;
}

export class Deadlines {
  readonly #world: Pick<World, 'clock' | 'timers'>;
  readonly #lists = new Map<number, DeadlineList>();

  constructor(world: Pick<World, 'clock' | 'timers'>) {
    this.#world = world;
  }

  /** A deadline that is set already is moved. */
  set(deadline: Deadline, delayMs: number): void {
    this.clear(deadline);
    let list = this.#lists.get(delayMs);
    if (!list) {
      list = new DeadlineList(this.#world, delayMs);
      this.#lists.set(delayMs, list);
    }
    list.add(deadline);
  }

  clear(deadline: Deadline): void {
    deadline.list?.remove(deadline);
  }

  /** Lets none of them expire any more. */
  close(): void {
    for (const list of this.#lists.values()) list.close();
    this.#lists.clear();
  }
}

/** In the order in which they expire, which is the order in which they were set. */
class DeadlineList {
  readonly #world: Pick<World, 'clock' | 'timers'>;
  readonly #delayMs: number;
  #first: Deadline | undefined;
  #last: Deadline | undefined;
  #timer: Timer | undefined;

  constructor(world: Pick<World, 'clock' | 'timers'>, delayMs: number) {
    this.#world = world;
    this.#delayMs = delayMs;
  }

  add(deadline: Deadline): void {
    deadline.list = this;
    deadline.atMs = this.#world.clock.monotonicMs() + this.#delayMs;
    deadline.before = this.#last;
    if (this.#last) this.#last.after = deadline;
    else this.#first = deadline;
    this.#last = deadline;
    if (!this.#timer) this.#arm(this.#delayMs);
  }

  remove(deadline: Deadline): void {
    const { before, after } = deadline;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    deadline.list = undefined;
    deadline.before = undefined;
    deadline.after = undefined;
    if (!this.#first) this.close();
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#world.timers.after(delayMs, () => this.#expire());
  }

  #expire(): void {
    this.#timer = undefined;
    const nowMs = this.#world.clock.monotonicMs();
    for (let first = this.#first; first && first.atMs <= nowMs; first = this.#first) {
      this.remove(first);
      first.expire();
    }
    // Timers may come a little early.
    if (this.#first && !this.#timer) this.#arm(Math.max(1, this.#first.atMs - nowMs));
  }
}
