// An audit log in a file: a line per event, the file renamed away when it is full, a few old ones kept. It never holds
// up a request: when the disk cannot follow, lines wait, then lines are dropped, and how many is written down as soon as
// it can. A write that fails is tried again every second.

import { closeSync, fstatSync, openSync, renameSync, rmSync, write } from 'node:fs';
import { dirname } from 'node:path';
import { errorText, type Log } from '../../../base/log.ts';
import { makeFolder } from '../../../base/real/make-folder.ts';
import type { AuditEvent, AuditSink } from '../audit.ts';

export interface AuditFileOptions {
  readonly path: string;
  readonly log: Log;
  readonly fileBytesMax?: number;
  /** Besides the one being written. */
  readonly oldFilesMax?: number;
  readonly waitingBytesMax?: number;
  readonly retryMs?: number;
}

export interface AuditFile extends AuditSink {
  /** What keeps lines from being written; undefined if nothing does. */
  problem(): string | undefined;
  /** Lines that were dropped since it was opened. */
  readonly lost: number;
  /** Writes what is waiting, then lets go of the file. */
  close(): Promise<void>;
}

export function openAuditFile(options: AuditFileOptions): AuditFile {
  return new RotatingFile(options);
}

class RotatingFile implements AuditFile {
  readonly #path: string;
  readonly #log: Log;
  readonly #fileBytesMax: number;
  readonly #oldFilesMax: number;
  readonly #waitingBytesMax: number;
  readonly #retryMs: number;
  #file: number;
  #fileBytes: number;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #lost = 0;
  #isWriting = false;
  #problem: string | undefined;
  #retry: NodeJS.Timeout | undefined;
  #again: (() => void) | undefined;
  #isClosing = false;
  #onIdle: (() => void) | undefined;

  constructor(options: AuditFileOptions) {
    this.#path = options.path;
    this.#log = options.log;
    this.#fileBytesMax = options.fileBytesMax ?? 100 * 1024 * 1024;
    this.#oldFilesMax = options.oldFilesMax ?? 5;
    this.#waitingBytesMax = options.waitingBytesMax ?? 8 * 1024 * 1024;
    this.#retryMs = options.retryMs ?? 1000;
    makeFolder(dirname(this.#path));
    this.#file = this.#open();
    this.#fileBytes = fstatSync(this.#file).size;
  }

  record(event: AuditEvent): void {
    const line = `${JSON.stringify(event)}\n`;
    if (this.#waitingBytes + line.length > this.#waitingBytesMax) {
      this.#dropped++;
      this.#lost++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (!this.#isWriting) this.#flush();
  }

  get lost(): number {
    return this.#lost;
  }

  problem(): string | undefined {
    if (this.#problem !== undefined) return this.#problem;
    return this.#dropped > 0 ? `the disk of ${this.#path} does not keep up` : undefined;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#retry !== undefined) {
      // The last try.
      clearTimeout(this.#retry);
      this.#again?.();
    }
    if (this.#isWriting) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    closeSync(this.#file);
  }

  #flush(): void {
    const bytes = this.#take();
    if (bytes.length === 0) {
      this.#isWriting = false;
      this.#onIdle?.();
      return;
    }
    this.#isWriting = true;
    this.#writeAll(bytes, 0);
  }

  #take(): Buffer {
    if (this.#dropped > 0) this.#waiting.push(`${JSON.stringify({ kind: 'Dropped', events: this.#dropped })}\n`);
    const bytes = Buffer.from(this.#waiting.join(''));
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#dropped = 0;
    return bytes;
  }

  #writeAll(bytes: Buffer, from: number): void {
    write(this.#file, bytes, from, bytes.length - from, null, (error, written) => {
      if (error !== null) return this.#failed(error, () => this.#writeAll(bytes, from));
      if (from + written < bytes.length) return this.#writeAll(bytes, from + written);
      this.#worked();
      this.#fileBytes += bytes.length;
      this.#rotateIfFull();
      this.#flush();
    });
  }

  #failed(error: Error, again: () => void): void {
    if (this.#problem === undefined)
      this.#log.error('the audit log cannot be written', { path: this.#path, error: errorText(error) });
    this.#problem = `${this.#path} cannot be written: ${errorText(error)}`;
    if (this.#isClosing) {
      this.#isWriting = false;
      this.#onIdle?.();
      return;
    }
    this.#again = again;
    this.#retry = setTimeout(again, this.#retryMs).unref();
  }

  #worked(): void {
    if (this.#problem !== undefined) this.#log.info('the audit log is written again', { path: this.#path });
    this.#problem = undefined;
    this.#retry = undefined;
    this.#again = undefined;
  }

  #rotateIfFull(): void {
    if (this.#fileBytes < this.#fileBytesMax) return;
    try {
      this.#shiftOldFiles();
      const next = this.#open();
      closeSync(this.#file);
      this.#file = next;
    } catch (error) {
      this.#log.error('the audit log cannot be rotated', { path: this.#path, error: errorText(error) });
    }
    this.#fileBytes = 0;
  }

  #shiftOldFiles(): void {
    rmSync(`${this.#path}.${this.#oldFilesMax}`, { force: true });
    for (let age = this.#oldFilesMax - 1; age >= 0; age--) {
      const from = age === 0 ? this.#path : `${this.#path}.${age}`;
      try {
        renameSync(from, `${this.#path}.${age + 1}`);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  }

  #open(): number {
    return openSync(this.#path, 'a', 0o600);
  }
}
