// How much one request may ask for. A client that exceeds its share is refused; the others do not notice.

export interface ApiLimits {
  readonly bodyBytesMax: number;
  /** Members of maps and items of lists in a body or a stored object, together. Each costs microseconds at every step. */
  readonly valuesMax: number;
  readonly openWatchesMax: number;
  /** Limit on events waiting for a slow watcher. */
  readonly watchQueueEventsMax: number;
  readonly watchQueueBytesMax: number;
  /** A watch without timeoutSeconds ends after a random time between this and twice this. */
  readonly watchMsMin: number;
  /** A longer timeoutSeconds counts as this. */
  readonly watchMsMax: number;
  readonly bookmarkMs: number;
  /** How long a request waits for a revision that has not happened yet. */
  readonly futureRevisionMs: number;
  /** An Event is deleted this long after its last write. */
  readonly eventMs: number;
}

export const defaultLimits: ApiLimits = {
  bodyBytesMax: 3 * 1024 * 1024,
  valuesMax: 40_000,
  openWatchesMax: 10_000,
  watchQueueEventsMax: 10_000,
  watchQueueBytesMax: 16 * 1024 * 1024,
  watchMsMin: 30 * 60_000,
  watchMsMax: 60 * 60_000,
  bookmarkMs: 60_000,
  futureRevisionMs: 3_000,
  eventMs: 3_600_000,
};
