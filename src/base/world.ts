// Everything a process gets from outside. Code outside the edges takes what it needs from its World and from
// nowhere else, so that a whole clusterset can run in one process under a virtual clock and replay from a seed.

import type { HttpAccess, HttpTransport } from './http.ts';

export interface World {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly network: Network;
  readonly disk: Disk;
  /** Absent where nobody is told of changes. */
  readonly tracing?: Tracing;
}

export interface Clock {
  /** Milliseconds since 1970, for what people and other machines read. It may jump. */
  wallMs(): number;
  /** Milliseconds since some fixed moment, for measuring how long something took. It never goes back. */
  monotonicMs(): number;
}

export interface Timer {
  cancel(): void;
}

export interface Timers {
  after(delayMs: number, run: () => void): Timer;
}

export interface Random {
  /** Uniform in [0, 1). */
  float(): number;
  /** Unpredictable in the real world: good for ids and tokens. */
  bytes(count: number): Uint8Array;
  uuid(): string;
}

/** Tells of the way of changes, by spans. */
export interface Tracing {
  begin(name: string, start: SpanStart): TraceSpan;
}

interface SpanStart {
  /** As `traceparent` of the span that this one follows from; a new trace begins without one. */
  readonly parent: string | undefined;
  /** Wall time. */
  readonly startMs: number;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface TraceSpan {
  /** To be carried to those who go on. */
  readonly traceparent: string;
  /** It is sent when it has ended; one that never does is forgotten. */
  end(atMs: number): void;
}

export interface Network {
  /** Opens nothing yet; connections are made when the first request is sent, and again after they break. */
  http(access: HttpAccess): HttpTransport;
}

export interface Disk {
  /** Resolves to undefined if there is no such file. */
  read(path: string): Promise<Uint8Array | undefined>;
  /**
   * Replaces the file in one step and is on disk when it resolves. Large contents are read piece by piece, with time
   * for others in between; each piece is valid until the next one is read.
   */
  write(path: string, bytes: Uint8Array | Iterable<Uint8Array>, options?: WriteOptions): Promise<void>;
  remove(path: string): Promise<void>;
  /** The files of a folder, in no order; none if there is no such folder. */
  list(path: string): Promise<readonly ListedFile[]>;
  /** Room that a file in this folder, which need not exist yet, may take. */
  freeBytes(path: string): Promise<number>;
}

export interface ListedFile {
  readonly name: string;
  readonly sizeBytes: number;
}

export interface WriteOptions {
  readonly mode?: number;
  /** There is no other writer of this file: the next write overwrites the leftovers of an interrupted one. */
  readonly isOnlyWriter?: boolean;
}

export function sleep(timers: Timers, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = timers.after(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
