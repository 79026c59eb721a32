// A clock that can be moved while its process runs, by libfaketime. Timers go by the monotonic clock, which stays.

import { existsSync, renameSync, writeFileSync } from 'node:fs';

const library = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find((file) => existsSync(file));

export const hasMovableClocks = library !== undefined;

export class MovableClock {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
    this.move(0);
  }

  /** Off by so many seconds from now on. */
  move(seconds: number): void {
    const text = `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}`;
    // In one go: it is read at any time.
    writeFileSync(`${this.#file}.new`, `${text}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }

  /** For the process whose clock it is. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: library ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DISABLE_SHM: '1',
    };
  }
}
