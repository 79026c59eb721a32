// Parts as local processes with the token of their own account, as their Pods would have it.

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { portolan } from '../support/portolan.ts';
import { spawnTied } from '../support/tied-process.ts';
import type { FlowHome } from './homes.ts';

export interface RunningPart {
  readonly child: ChildProcess;
  /** Its whole output so far. */
  log(): string;
  /** The text behind this word at the beginning of a line, such as `listening`. */
  said(word: string): string;
}

export interface PartOptions {
  /** portolan-PART unless given. */
  readonly account?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** On all addresses unless given. */
  readonly adminListen?: string;
  readonly isWithoutAdmin?: boolean;
}

export class RunningParts {
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-parts-'));
  readonly #parts = new Map<string, RunningPart>();
  readonly #podsOf: string;

  /** The parts of the home of that name report as if they were in Pods. */
  constructor({ podsOf = '' } = {}) {
    this.#podsOf = podsOf;
  }

  start(home: FlowHome, part: string, args: readonly string[], options: PartOptions = {}): RunningPart {
    const kubeconfig = home.account(options.account ?? `portolan-${part}`);
    const admin = options.isWithoutAdmin ? [] : ['--admin-listen', options.adminListen ?? '0.0.0.0:0'];
    const words = [...args, '--kubeconfig', kubeconfig, ...admin];
    const pod = home.name === this.#podsOf ? { POD_NAME: `${home.name}-${part}` } : {};
    const env = { ...process.env, ...pod, ...options.env };
    const child = spawnTied(portolan, words, { stdio: ['ignore', 'pipe', 'pipe'], cwd: this.#directory, env });
    let log = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (log += chunk));
    const running: RunningPart = {
      child,
      log: () => log,
      said: (word) => new RegExp(`^${word} (\\S+)`, 'm').exec(log)?.[1] ?? '',
    };
    this.#parts.set(`${home.name} ${part} ${child.pid}`, running);
    return running;
  }

  /** All that run. */
  of(home: FlowHome, part = ''): RunningPart[] {
    return [...this.#parts].filter(([key]) => key.startsWith(`${home.name} ${part}`)).map(([, one]) => one);
  }

  /** The last lines of every part, for a test that failed. */
  lastWords(): string {
    return [...this.#parts].map(([key, part]) => `--- ${key}\n${part.log().slice(-4_000)}`).join('\n');
  }

  async end({ child }: RunningPart, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.signalCode === null && child.kill(signal)) await gone;
    for (const [key, one] of this.#parts) if (one.child === child) this.#parts.delete(key);
  }

  async stop(): Promise<void> {
    for (const { child } of this.#parts.values()) child.kill('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
