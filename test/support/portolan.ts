// Runs `bin/portolan` to its end, or any other program that way.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const portolan = fileURLToPath(new URL('../../bin/portolan', import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  /** For its standard input. */
  readonly input?: string;
}

export function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const { env = process.env, cwd, timeoutMs = 60_000 } = options;
  const child = spawn(program, [...args], { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out, err }));
  });
}

export function runPortolan(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return run(portolan, args, options);
}

export interface PortolanProcess {
  out(): string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Runs `bin/portolan` until it is stopped. */
export function startPortolan(args: readonly string[]): PortolanProcess {
  const child = spawn(portolan, [...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    out: () => out,
    stop: async (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await ended;
    },
  };
}
