// Notices changes of our table: `nft monitor` names the process behind each transaction. own-writers.ts tells ours apart.

import { type ChildProcess, spawn } from 'node:child_process';
import { programPath } from './programs.ts';

/** One transaction, as the kernel reports it. */
export interface SeenTransaction {
  readonly pid: number;
  /** Its first line about each of our tables. */
  readonly line?: string;
  /** A mark that it carried. */
  readonly mark?: string;
}

/** A table of this name is added and removed again in one transaction. */
export const markPrefix = 'portolan_self_';

export interface MonitorOptions {
  /** Something about our table, or with a mark. */
  readonly onTransaction: (transaction: SeenTransaction) => void;
  /** It has lost track of some maps, whose changes it shows without their names: a new one would know them. */
  readonly onLost: () => void;
  /** It ended by itself; nothing is noticed any more. */
  readonly onEnd: (why: string) => void;
}

const generationLine = /^# new generation \d+ by process (\d+)/;
const ourLine = /\binet (portolan|portolan-access)(?=\s|$)/;
const markLine = new RegExp(`\\binet (${markPrefix}[0-9a-f]+)`);
/** nft 1.0.6 forgets maps of a table after rules that use them were deleted. Whose change it was is said all the same. */
const lostLine = /^W: .*(unknown set|Set not found)/;
const otherLine =
  /^(?:add|delete|flush|replace|insert) \w+ (?:ip|ip6|inet|arp|bridge|netdev) (?!portolan(?:-access)?(?:\s|$))/;

/** In place of the line of a change of some map, perhaps of ours. */
export const lostTrack = 'a map that nft lost track of';
const bufferMax = 1_000_000;

export class NftMonitor {
  readonly #child: ChildProcess;
  readonly #options: MonitorOptions;
  #isStopped = false;
  #rest = '';
  /** The first line of the transaction under way about each of our tables. */
  readonly #lines = new Map<string, string>();
  #mark: string | undefined;
  #isLost = false;
  /** The same for the transaction under way. */
  #hasLost = false;
  #isElsewhere = false;
  #isTold = false;

  constructor(options: MonitorOptions) {
    this.#options = options;
    const env = { ...process.env, PATH: programPath(process.env), LC_ALL: 'C' };
    // One stream for both: a warning comes before the end of the transaction that it is about.
    this.#child = spawn('sh', ['-c', 'exec nft monitor 2>&1'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
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
        const start = line.slice(0, 200);
        if (lostLine.test(start)) {
          this.#isLost = true;
          this.#hasLost = true;
        }
        const table = ourLine.exec(start)?.[1];
        if (table !== undefined) this.#lines.set(table, this.#lines.get(table) ?? start);
        else if (otherLine.test(start)) this.#isElsewhere = true;
        this.#mark ??= markLine.exec(start)?.[1];
        continue;
      }
      // Maps without a name, in a transaction that names other tables and never ours, are theirs.
      const unnamed = this.#hasLost && !this.#isElsewhere ? lostTrack : undefined;
      const [about, mark] = [[...this.#lines.values()].join('; ') || unnamed, this.#mark];
      this.#lines.clear();
      this.#mark = undefined;
      this.#hasLost = false;
      this.#isElsewhere = false;
      if (about !== undefined || mark !== undefined)
        this.#options.onTransaction({ pid, ...(about && { line: about }), ...(mark && { mark }) });
      if (this.#isLost && !this.#isTold) {
        this.#isTold = true;
        this.#options.onLost();
      }
    }
  }

  #ended(why: string): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#options.onEnd(why);
  }
}
