// `portolan up` as a process of its own, in a folder of the test.

import { type ChildProcess, spawn } from 'node:child_process';
import { portolan } from './portolan.ts';

export interface UpProcess {
  readonly child: ChildProcess;
  out(): string;
  err(): string;
  readonly ended: Promise<number | null>;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface UpOptions {
  readonly cwd: string;
  readonly input?: string;
  /** Called at once, so that one that never gets ready ends too. */
  readonly onStart?: (stop: () => Promise<number | null>) => void;
}

/** Resolves when it prints that it is ready. */
export function startUp(args: readonly string[], { cwd, input = '', onStart }: UpOptions): Promise<UpProcess> {
  const child = spawn(portolan, ['up', ...args], { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(input);
  let [out, err] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  const stop = (signal: NodeJS.Signals = 'SIGINT') => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return ended;
  };
  onStart?.(stop);
  return new Promise((resolve, reject) => {
    ended.then((code) => reject(new Error(`portolan up ${args.join(' ')} ended with ${code}: ${out}${err}`)));
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      out += chunk;
      if (out.includes('Ctrl-C')) resolve({ child, out: () => out, err: () => err, ended, stop });
    });
  });
}
