// Starts any role of `bin/portolan` as a process of its own, and reads the addresses that it prints.

import { type ChildProcess, spawn } from 'node:child_process';
import { portolan } from './portolan.ts';

export interface RoleProcess {
  readonly child: ChildProcess;
  /** URL of its admin endpoint; empty for a home. */
  readonly admin: string;
  out(): string;
  log(): string;
  /** Status and text of /readyz. */
  readyz(): Promise<{ readonly status: number; readonly text: string }>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Resolves when it has printed that line. */
export function startRole(
  args: readonly string[],
  printed: RegExp = /^admin http\S+$/m,
  env: NodeJS.ProcessEnv = process.env,
): Promise<RoleProcess> {
  const child = spawn(portolan, [...args], { stdio: ['ignore', 'pipe', 'pipe'], env });
  let out = '';
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`portolan ${args[0]} ended with ${code}: ${out}${log}`)));
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      out += chunk;
      if (!printed.test(out)) return;
      const admin = /^admin (\S+)$/m.exec(out)?.[1] ?? '';
      resolve({
        child,
        admin,
        out: () => out,
        log: () => log,
        readyz: async () => {
          const response = await fetch(`${admin}/readyz`);
          return { status: response.status, text: await response.text() };
        },
        stop: async (signal = 'SIGTERM') => {
          if (child.exitCode === null && child.signalCode === null) child.kill(signal);
          await ended;
        },
      });
    });
  });
}
