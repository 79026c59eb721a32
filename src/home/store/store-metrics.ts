// The metrics of a store. Observing costs a few additions a batch; sizes are computed when they are read.

import type { Metrics } from '../../base/metrics.ts';

/** One batch that is on disk. */
export interface LandedBatch {
  readonly commits: number;
  readonly durationMs: number;
  /** History was forgotten with it. */
  readonly hasCompacted: boolean;
}

export interface StoreStats {
  readonly revision: number;
  readonly floor: number;
  /** Keys and values that are there now, with what a row costs. */
  readonly liveBytes: number;
  /** Database and log files, as of the last batch; 0 before it. */
  readonly diskBytes: number;
  readonly isWritable: boolean;
}

export function observeStore(metrics: Metrics, stats: () => StoreStats): (batch: LandedBatch) => void {
  const commits = metrics.counter({ name: 'store_commits_total', help: 'Commits that were answered.' });
  const compactions = metrics.counter({
    name: 'store_compactions_total',
    help: 'Batches with which history was forgotten.',
  });
  const sizes = metrics.histogram({
    name: 'store_batch_commits',
    help: 'Commits that were written to disk together.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  });
  const durations = metrics.histogram({
    name: 'store_batch_duration_seconds',
    help: 'Time until a batch was on disk.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  });
  describe(metrics, stats);
  return (batch) => {
    commits.inc(batch.commits);
    if (batch.hasCompacted) compactions.inc();
    if (batch.commits > 0) sizes.observe(batch.commits);
    durations.observe(batch.durationMs / 1000);
  };
}

function describe(metrics: Metrics, stats: () => StoreStats): void {
  const gauge = (name: string, help: string, read: (now: StoreStats) => number) =>
    metrics.gauge({ name: `store_${name}`, help, collect: (to) => to.set(read(stats())) });
  gauge('revision', 'The newest revision on disk.', ({ revision }) => revision);
  gauge('floor_revision', 'The oldest revision that can still be read.', ({ floor }) => floor);
  gauge('live_bytes', 'Keys and values that are there now.', ({ liveBytes }) => liveBytes);
  gauge('disk_bytes', 'Size of the database and its log.', ({ diskBytes }) => diskBytes);
  gauge('writable', '1 while writes are taken.', ({ isWritable }) => Number(isWritable));
}
