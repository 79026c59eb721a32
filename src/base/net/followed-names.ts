// Host names whose addresses are kept current: looked up, and again before their answer runs out. While a name cannot be
// looked up, the addresses it had stay. Few are looked up at a time, however many there are.

import { errorText, type Log } from '../log.ts';
import type { Timer, Timers } from '../world.ts';

/** Rejects if nobody answered; a name without addresses has an empty list. */
export type LookUp = (host: string) => Promise<{ readonly addresses: readonly string[]; readonly ttlSeconds: number }>;

export interface FollowedNamesOptions {
  readonly lookUp: LookUp;
  readonly timers: Timers;
  readonly log: Log;
  /** The addresses of a name changed; these follow it. */
  readonly onChange: (owners: Iterable<string>) => void;
}

interface FollowedName {
  readonly owners: Set<string>;
  /** Undefined until the first answer. */
  addresses: readonly string[] | undefined;
  timer: Timer | undefined;
  /** Asked at least once, with or without success. */
  wasAsked: boolean;
}

export const refreshSeconds = { min: 5, max: 300 };
const askedAtOnceMax = 8;

export class FollowedNames {
  readonly #options: FollowedNamesOptions;
  readonly #names = new Map<string, FollowedName>();
  readonly #namesOf = new Map<string, readonly string[]>();
  readonly #waiting = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #asked = 0;

  constructor(options: FollowedNamesOptions) {
    this.#options = options;
  }

  /** All names that this owner follows, in place of those before. */
  follow(owner: string, names: readonly string[]): void {
    const before = this.#namesOf.get(owner) ?? [];
    if (names.length === 0) this.#namesOf.delete(owner);
    else this.#namesOf.set(owner, names);
    for (const name of names) {
      const known = this.#names.get(name);
      if (known !== undefined) known.owners.add(owner);
      else {
        this.#names.set(name, {
          owners: new Set([owner]),
          ...{ addresses: undefined, timer: undefined, wasAsked: false },
        });
        this.#waiting.add(name);
      }
    }
    for (const name of before) if (!names.includes(name)) this.#leave(owner, name);
    this.#askSome();
  }

  /** Undefined until the name was answered once. */
  addresses(name: string): readonly string[] | undefined {
    return this.#names.get(name)?.addresses;
  }

  /** Resolves when every name was asked once, or after this time. */
  async whenAsked(patienceMs: number): Promise<void> {
    const isDone = () => [...this.#names.values()].every(({ wasAsked }) => wasAsked);
    if (isDone()) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        timer.cancel();
        this.#listeners.delete(look);
        resolve();
      };
      const look = () => isDone() && end();
      const timer = this.#options.timers.after(patienceMs, end);
      this.#listeners.add(look);
    });
  }

  stop(): void {
    for (const owner of [...this.#namesOf.keys()]) this.follow(owner, []);
  }

  #leave(owner: string, name: string): void {
    const known = this.#names.get(name);
    known?.owners.delete(owner);
    if (known === undefined || known.owners.size > 0) return;
    known.timer?.cancel();
    this.#names.delete(name);
    this.#waiting.delete(name);
  }

  #askSome(): void {
    for (const name of this.#waiting) {
      if (this.#asked >= askedAtOnceMax) return;
      this.#waiting.delete(name);
      this.#asked += 1;
      void this.#ask(name, this.#names.get(name)!);
    }
  }

  async #ask(name: string, known: FollowedName): Promise<void> {
    const { lookUp, timers, log, onChange } = this.#options;
    let waitSeconds = refreshSeconds.min;
    try {
      const { addresses, ttlSeconds } = await lookUp(name);
      waitSeconds = Math.min(refreshSeconds.max, Math.max(refreshSeconds.min, ttlSeconds));
      const sorted = [...new Set(addresses)].sort();
      const isOther = known.addresses?.join() !== sorted.join();
      known.addresses = sorted;
      if (isOther && this.#names.get(name) === known) onChange([...known.owners]);
    } catch (error) {
      log.warn('a name cannot be looked up; the addresses it had stay', { name, error: errorText(error) });
    }
    known.wasAsked = true;
    this.#asked -= 1;
    for (const listener of [...this.#listeners]) listener();
    if (this.#names.get(name) === known)
      known.timer = timers.after(1000 * waitSeconds, () => {
        this.#waiting.add(name);
        this.#askSome();
      });
    this.#askSome();
  }
}
