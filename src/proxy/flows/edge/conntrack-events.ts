// The kernel's events of connections, by the program conntrack. It also reads the events of connections that are none of ours, so its
// CPU time is bounded: beyond a tenth of a core it rests, and the kernel makes no events meanwhile.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import type { Timer, Timers } from '../../../base/world.ts';
import { programPath } from '../../nft/edge/programs.ts';

export interface ConntrackEventsOptions {
  readonly timers: Timers;
  readonly onLine: (line: string) => void;
}

const lookMs = 2_000;
const cpuShareMax = 0.1;
const restartMs = 5_000;
const restMsMax = 60_000;
/** Unit of the kernel's times in /proc, on every platform that Linux runs on today. */
const ticksPerSecond = 100;
const lineMax = 2_000;

export class ConntrackEvents {
  readonly #options: ConntrackEventsOptions;
  #child: ChildProcess | undefined;
  #timer: Timer | undefined;
  #rest = '';
  #ticks = 0;
  #isStopped = false;
  #overflows = 0;
  #pausedMs = 0;
  #problem = '';

  constructor(options: ConntrackEventsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#countBytes();
    this.#open();
  }

  get overflows(): number {
    return this.#overflows;
  }

  get pausedMs(): number {
    return this.#pausedMs;
  }

  /** Why nothing, or not everything, is read; empty if all is well. */
  get problem(): string {
    return this.#problem;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    return this.#end();
  }

  /** For new connections of this network namespace. Without it flows have no sizes. */
  #countBytes(): void {
    const path = '/proc/sys/net/netfilter/nf_conntrack_acct';
    try {
      if (readFileSync(path, 'utf8').trim() !== '1') writeFileSync(path, '1');
    } catch (error) {
      this.#problem = `sizes of flows are not known: set sysctl net.netfilter.nf_conntrack_acct=1 on the node (${(error as Error).message})`;
    }
  }

  #open(): void {
    const env = { ...process.env, PATH: programPath(process.env), LC_ALL: 'C' };
    const args = ['-E', '-e', 'NEW,UPDATES,DESTROY', '-o', 'id,timestamp'];
    const child = spawn('conntrack', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    this.#rest = '';
    this.#ticks = 0;
    child.stdout.setEncoding('latin1').on('data', (chunk: string) => this.#read(chunk));
    child.stderr.setEncoding('latin1').on('data', (chunk: string) => {
      if (/overrun|ENOBUFS|No buffer space/.test(chunk)) this.#overflows += 1;
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === 'ENOENT';
      this.#ended(child, isMissing ? 'conntrack is not installed: install conntrack' : error.message);
    });
    child.once('exit', (code, signal) => this.#ended(child, `conntrack ended with ${signal ?? code}`));
    this.#later(lookMs, () => this.#look(child));
  }

  #later(ms: number, act: () => void): void {
    this.#timer?.cancel();
    if (!this.#isStopped) this.#timer = this.#options.timers.after(ms, act);
  }

  #ended(child: ChildProcess, why: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#problem = why;
    this.#later(restartMs, () => {
      this.#pausedMs += restartMs;
      this.#problem = '';
      this.#countBytes();
      this.#open();
    });
  }

  /** Rests so long that its share is kept on average. */
  #look(child: ChildProcess): void {
    const ticks = ticksOf(child.pid) ?? this.#ticks;
    const usedMs = ((ticks - this.#ticks) * 1000) / ticksPerSecond;
    this.#ticks = ticks;
    if (usedMs <= lookMs * cpuShareMax) return this.#later(lookMs, () => this.#look(child));
    const restMs = Math.min(restMsMax, usedMs / cpuShareMax - lookMs);
    void this.#end();
    this.#later(restMs, () => {
      this.#pausedMs += restMs;
      this.#open();
    });
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = (lines.pop() ?? '').slice(-lineMax);
    for (const line of lines) this.#options.onLine(line);
  }

  #end(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.pid === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.kill('SIGTERM');
    });
  }
}

/** CPU time of a process. */
function ticksOf(pid: number | undefined): number | undefined {
  try {
    // After the name, which may hold anything: fields 14 and 15 of proc(5).
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').pop()!.split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return undefined;
  }
}
