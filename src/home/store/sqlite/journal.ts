// The main thread's side of the database's thread.

import { Worker } from 'node:worker_threads';
import { siblingModule } from '../../../base/sibling-module.ts';
import {
  type DiskUse,
  type Journal,
  type JournalBatch,
  JournalBrokenError,
  JournalFullError,
  JournalLockedError,
  type JournalRow,
} from '../journal.ts';
import type { Answer, DatabaseOptions, Request, Trouble } from './protocol.ts';
import { packRows, unpackRows } from './rows.ts';

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

export class SqliteJournal implements Journal {
  onBroken: Journal['onBroken'];
  readonly #path: string;
  readonly #worker: Worker;
  #waiting: Waiting | undefined;
  /** Why nothing more is possible. */
  #broken: Error | undefined;

  private constructor(path: string) {
    this.#path = path;
    this.#worker = new Worker(siblingModule(import.meta.url, 'worker'), {
      execArgv: [],
      // It holds next to nothing for longer than a batch; room for young objects would only lie around.
      resourceLimits: { maxYoungGenerationSizeMb: 6 },
    });
    this.#worker.on('message', (answer: Answer) => this.#take(answer));
    this.#worker.on('error', (error) =>
      this.#break(new JournalBrokenError(`store ${path}: its thread died`, { cause: error })),
    );
    this.#worker.on('exit', () => this.#break(new JournalBrokenError(`store ${path}: its thread has ended`)));
  }

  static async open(options: DatabaseOptions): Promise<{ readonly journal: SqliteJournal; readonly floor: number }> {
    const journal = new SqliteJournal(options.path);
    try {
      const answer = await journal.#ask({ kind: 'open', options });
      return { journal, floor: (answer as Answer & { kind: 'opened' }).floor };
    } catch (error) {
      await journal.#worker.terminate();
      throw error;
    }
  }

  /** Hands over every row in order. The next rows are read while these are taken in. */
  async readAll(take: (row: JournalRow) => void): Promise<void> {
    let next = this.#ask({ kind: 'read', afterRow: 0 });
    for (;;) {
      const { rows, lastRow } = (await next) as Answer & { kind: 'rows' };
      if (lastRow === undefined) return;
      next = this.#ask({ kind: 'read', afterRow: lastRow });
      unpackRows(rows, take);
    }
  }

  async append({ moves, rows, forget, floor }: JournalBatch): Promise<DiskUse> {
    const packed = packRows(rows);
    const batch = { moves: moves.map(({ from, to }) => ({ from, to })), rows: packed, forget, floor };
    const answer = await this.#ask({ kind: 'append', batch }, [packed.numbers.buffer, packed.bytes.buffer]);
    return (answer as Answer & { kind: 'appended' }).use;
  }

  async probe(): Promise<void> {
    await this.#ask({ kind: 'probe' });
  }

  async close(): Promise<void> {
    if (this.#broken === undefined) await this.#ask({ kind: 'close' }).catch(() => undefined);
    await this.#worker.terminate();
  }

  #ask(request: Request, transfer: ArrayBuffer[] = []): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== undefined) return reject(this.#broken);
      this.#waiting = { resolve, reject };
      this.#worker.postMessage(request, transfer);
    });
  }

  #take(answer: Answer): void {
    if (answer.kind === 'trouble' && answer.trouble.kind !== 'full') this.#break(this.#errorOf(answer.trouble));
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (answer.kind === 'trouble') waiting?.reject(this.#errorOf(answer.trouble));
    else waiting?.resolve(answer);
  }

  #break(error: Error): void {
    if (this.#broken !== undefined) return;
    this.#broken = error;
    this.onBroken?.(error);
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  #errorOf({ kind, message }: Trouble): Error {
    if (kind === 'full') return new JournalFullError(`store ${this.#path}: the disk is full: ${message}`);
    if (kind === 'locked')
      return new JournalLockedError(`store ${this.#path}: another process has it open; stop that one first`);
    return new JournalBrokenError(`store ${this.#path}: ${message}`);
  }
}
