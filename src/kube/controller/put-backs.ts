// Reverts changes by others: at once the first time, then later and later. Two who want different things in one place
// (members that both write one merged view, another implementation in the same cluster) would otherwise
// write as fast as the network carries it. New wishes are never delayed.

import { isSameJson } from '../../base/json.ts';
import type { Clock } from '../../base/world.ts';

export interface PutBacks {
  /** How long to wait before `wanted` is written; 0 is now. */
  waitMs(key: string, wanted: unknown): number;
  /** It has been written: a later difference means that another writer disagrees. */
  wrote(key: string, wanted: unknown): void;
}

interface Written {
  readonly wanted: unknown;
  readonly atMs: number;
  /** Before the same may be written again. */
  readonly pauseMs: number;
}

const pauseMsFirst = 1_000;
const pauseMsMax = 30_000;
/** After this time without changes the count starts anew. */
const calmMs = 120_000;

export function createPutBacks(clock: Clock): PutBacks {
  /** Those written longest ago come first. */
  const written = new Map<string, Written>();

  function lastWrite(key: string, wanted: unknown): Written | undefined {
    const last = written.get(key);
    return last !== undefined && isSameJson(last.wanted, wanted) ? last : undefined;
  }

  function waitMs(key: string, wanted: unknown): number {
    const nowMs = clock.monotonicMs();
    forgetUntil(nowMs - calmMs);
    const last = lastWrite(key, wanted);
    return last === undefined ? 0 : Math.max(0, last.atMs + last.pauseMs - nowMs);
  }

  function wrote(key: string, wanted: unknown): void {
    const last = lastWrite(key, wanted);
    const pauseMs = last === undefined ? 0 : Math.min(pauseMsMax, Math.max(pauseMsFirst, 2 * last.pauseMs));
    written.delete(key);
    written.set(key, { wanted, atMs: clock.monotonicMs(), pauseMs });
  }

  function forgetUntil(ms: number): void {
    for (const [key, { atMs }] of written) {
      if (atMs > ms) return;
      written.delete(key);
    }
  }

  return { waitMs, wrote };
}
