// Starts store-writer.ts and keeps what it says.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('./store-writer.ts', import.meta.url));

export interface WriterOptions {
  readonly path: string;
  readonly round: number;
  /** A program and its arguments that run the writer, such as strace. */
  readonly under?: readonly string[];
}

export class StoreWriter {
  /** The highest revision acknowledged for each key. */
  readonly acknowledged = new Map<string, number>();
  readonly refusals: string[] = [];
  readonly #child: ChildProcess;
  #unfinished = '';
  #errors = '';
  startRevision: number | undefined;
  againCount = 0;

  constructor({ path, round, under = [] }: WriterOptions) {
    const [program, ...args] = [...under, process.execPath, script, path, String(round)];
    this.#child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#child.stdout!.setEncoding('utf8').on('data', (chunk: string) => this.#take(chunk));
    this.#child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (this.#errors += chunk));
  }

  get count(): number {
    return this.acknowledged.size;
  }

  /** Waits until it holds; fails if the process ends first or it takes too long. */
  async until(holds: () => boolean): Promise<void> {
    for (let wait = 0; wait < 3000; wait++) {
      if (holds()) return;
      if (this.#child.exitCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`the writer did not get there: ${holds}; it said: ${this.#errors}`);
  }

  /** Kill -9, of the writer and what it runs under, and the last of what it said. */
  async kill(): Promise<void> {
    const closed = once(this.#child, 'close');
    if (this.#child.exitCode === null) process.kill(-this.#child.pid!, 'SIGKILL');
    await closed;
  }

  #take(chunk: string): void {
    const lines = (this.#unfinished + chunk).split('\n');
    this.#unfinished = lines.pop()!;
    for (const line of lines) this.#takeLine(line);
  }

  #takeLine(line: string): void {
    const [first = '', second = ''] = line.split(' ');
    if (first === 'ready') this.startRevision = Number(second);
    else if (first === 'refused') this.refusals.push(line.slice('refused '.length));
    else if (first === 'again') this.againCount += 1;
    else this.acknowledged.set(first, Math.max(Number(second), this.acknowledged.get(first) ?? 0));
  }
}
