// Puts the entries of a snapshot into an empty journal. The revision of the store becomes one that no client can have seen,
// and so does its floor: every watch and every list that goes on from before is told to begin anew.

import type { JournalBatch, JournalRow } from '../store/journal.ts';
import type { SnapshotEntry, SnapshotFacts, SnapshotHead } from './content.ts';
import { paced, readSnapshot } from './read.ts';
import { SnapshotError } from './snapshot-error.ts';

export interface RestoreOptions {
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  readonly secret?: string | undefined;
  readonly nowMs: number;
  readonly journal: { append(batch: JournalBatch): Promise<unknown> };
  /** Throws if this snapshot is not wanted. */
  readonly onHead: (head: SnapshotHead) => void;
  /** Entries that do not come back. */
  readonly isLeftOut: (entry: SnapshotEntry) => boolean;
  readonly ownVersion?: string;
}

export interface Restored {
  readonly facts: SnapshotFacts;
  readonly revision: number;
  readonly entries: number;
  readonly leftOut: number;
}

const batchBytes = 1024 * 1024;
const leap = 1_000_000_000;

/**
 * Microseconds since 1970: a store writes less than one revision in each, so a later restore of the same snapshot is always
 * ahead of an earlier one. The leap holds where a clock was set back.
 */
export function restoredRevision(revision: number, nowMs: number): number {
  return Math.max(revision + leap, Math.floor(nowMs) * 1000);
}

/** Only when this resolves is the journal whole. */
export async function restoreSnapshot(options: RestoreOptions): Promise<Restored> {
  const { journal, isLeftOut } = options;
  let rows: JournalRow[] = [];
  let rowsBytes = 0;
  let nextRow = 1;
  let leftOut = 0;
  const flush = async (floor: number) => {
    const batch = { moves: [], rows, forget: [], floor };
    rows = [];
    rowsBytes = 0;
    await journal.append(batch);
  };
  const onEntry = (entry: SnapshotEntry) => {
    if (isLeftOut(entry)) {
      leftOut += 1;
      return;
    }
    rows.push({ row: nextRow++, ...entry });
    rowsBytes += entry.value.length;
  };
  const read = await readSnapshot(
    paced(options.chunks, async () => {
      if (rowsBytes >= batchBytes) await flush(0);
    }),
    { ...options, onEntry },
  );
  if (read.kind === 'sealed') throw new SnapshotError('it is encrypted; give the key with --key-file');
  const revision = restoredRevision(read.facts.revision, options.nowMs);
  await flush(revision);
  return { facts: read.facts, revision, entries: read.entries - leftOut, leftOut };
}
