// Notices when another program changes our table: `nft monitor` names the process behind each transaction.

import { type ChildProcess, spawn } from 'node:child_process';
import { programPath } from './programs.ts';

export interface MonitorOptions {
  readonly isOwn: (pid: number) => boolean;
  /** Another process changed our table. */
  readonly onForeign: (change: { readonly pid: number; readonly line: string }) => void;
  /** It ended by itself; nothing is noticed any more. */
  readonly onEnd: (why: string) => void;
}

const generationLine = /^# new generation \d+ by process (\d+)/;
const ourLine = /\binet portolan\b/;
const bufferMax = 1_000_000;

export class NftMonitor {
  readonly #child: ChildProcess;
  readonly #options: MonitorOptions;
  #isStopped = false;
  #rest = '';
  /** The first line of the transaction under way that is about our table. */
  #line: string | undefined;

  constructor(options: MonitorOptions) {
    this.#options = options;
    const env = { ...process.env, PATH: programPath(process.env), LC_ALL: 'C' };
    this.#child = spawn('nft', ['monitor'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    this.#child.once('error', (error) => this.#ended(error.message));
    this.#child.once('exit', (code, signal) => this.#ended(`ended with ${signal ?? code}`));
  }

  stop(): Promise<void> {
    if (this.#isStopped || this.#child.exitCode !== null) return Promise.resolve();
    this.#isStopped = true;
    return new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.kill('SIGTERM');
    });
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    // One line names all elements of a command; of a long one the beginning is enough.
    this.#rest = (lines.pop() ?? '').slice(-bufferMax);
    for (const line of lines) {
      const pid = Number(generationLine.exec(line)?.[1]);
      if (Number.isNaN(pid)) {
        if (this.#line === undefined && ourLine.test(line.slice(0, 200))) this.#line = line.slice(0, 200);
        continue;
      }
      if (this.#line !== undefined && !this.#options.isOwn(pid)) this.#options.onForeign({ pid, line: this.#line });
      this.#line = undefined;
    }
  }

  #ended(why: string): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#options.onEnd(why);
  }
}
