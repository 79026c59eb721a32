// How much history is kept, and when the journal is rewritten because its rows lie too far apart. Decides only; the
// store carries it out with its batches.

import type { Clock } from '../../base/world.ts';
import type { StoredEvent } from './entry.ts';
import type { HistoryLeft } from './history.ts';
import type { DiskUse } from './journal.ts';

export interface Limits {
  /** History is kept this long, unless one of the bounds below is reached first. */
  readonly historyMs: number;
  readonly historyEventsMax: number;
  /** Space that database and log files may use beyond twice the live data. */
  readonly diskSlackBytes: number;
}

export const defaultLimits: Limits = {
  historyMs: 5 * 60_000,
  historyEventsMax: 100_000,
  diskSlackBytes: 64 * 1024 * 1024,
};

/** The slack shared out. A row of just over half a page takes a whole one, so history counts twice: 6/16 * 2 + 1/16
 *  log + 1/16 free pages leave 2/16 for what is under way. */
export function historyBytesMax({ diskSlackBytes }: Limits): number {
  return (diskSlackBytes * 6) / 16;
}
export function logBytesMax({ diskSlackBytes }: Limits): number {
  return diskSlackBytes / 16;
}
export function freeBytesMax({ diskSlackBytes }: Limits): number {
  return diskSlackBytes / 16;
}

interface TimeMark {
  readonly revision: number;
  /** No change up to the revision was made later than this. */
  readonly untilMs: number;
}

export class Retention {
  readonly #limits: Limits;
  readonly #clock: Clock;
  /** About a hundred of them in `historyMs`, oldest first. */
  readonly #marks: TimeMark[] = [];
  /** Above a bound history is cut to nine tenths of it, so that it happens in lumps. */
  #isTrimming = false;
  /** Before the first sweep the amount left by an earlier process is unknown. */
  #forgottenBytesSinceSweep = Number.POSITIVE_INFINITY;

  constructor(limits: Limits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** The revision has become the newest. */
  mark(revision: number): void {
    const nowMs = this.#clock.monotonicMs();
    const last = this.#marks.at(-1);
    if (last !== undefined && nowMs <= last.untilMs) {
      this.#marks[this.#marks.length - 1] = { revision, untilMs: last.untilMs };
    } else this.#marks.push({ revision, untilMs: nowMs + this.#limits.historyMs / 100 });
  }

  /** The revision that is old enough to become the floor; 0 when none is. */
  expiredRevision(): number {
    const before = this.#clock.monotonicMs() - this.#limits.historyMs;
    const kept = this.#marks.findIndex(({ untilMs }) => untilMs >= before);
    const count = kept < 0 ? this.#marks.length : kept;
    return count === 0 ? 0 : this.#marks[count - 1]!.revision;
  }

  /** The floor has moved up. */
  forgot(floor: number, sizeBytes: number): void {
    this.#forgottenBytesSinceSweep += sizeBytes;
    const kept = this.#marks.findIndex(({ revision }) => revision > floor);
    this.#marks.splice(0, kept < 0 ? this.#marks.length : kept);
  }

  isOverBounds(left: HistoryLeft): boolean {
    const { historyEventsMax } = this.#limits;
    const part = this.#isTrimming ? 0.9 : 1;
    const bytesMax = historyBytesMax(this.#limits);
    this.#isTrimming = left.length > historyEventsMax * part || left.sizeBytes > bytesMax * part;
    return this.#isTrimming;
  }

  isUnwanted(event: StoredEvent, left: HistoryLeft, floorWanted: number): boolean {
    return event.revision <= floorWanted || this.isOverBounds(left);
  }

  /** Rows lie in pages in the order they were written; where most of a page's rows are gone, the page stays. Rewriting
   *  pays off only after much was forgotten: some sizes of rows never fill their pages. */
  isSweepDue(use: DiskUse, rowBytes: number): boolean {
    const isSparse = use.usedBytes > rowBytes * 1.5 + this.#limits.diskSlackBytes / 16;
    return isSparse && this.#forgottenBytesSinceSweep > use.usedBytes / 4;
  }

  sweepBegins(): void {
    this.#forgottenBytesSinceSweep = 0;
  }
}
