// Scripts of ours that the DNS benchmark starts as processes; they print their port in a line of JSON.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface Running {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Script extends Running {
  /** Writes a line of JSON to its standard input; `ask` resolves with the line that it prints next. */
  tell(request: object): void;
  ask(request: object): Promise<Record<string, unknown>>;
}

export async function startScript(
  nodeArgs: readonly string[],
  { core, env = {} }: { readonly core?: string; readonly env?: Record<string, string> } = {},
): Promise<Script> {
  const all = [...(core === undefined ? [] : ['taskset', '-c', core]), process.execPath, ...nodeArgs];
  const child = spawn(all[0]!, all.slice(1), { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const waiting: ((value: Record<string, unknown>) => void)[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(JSON.parse(line)));
  const next = () => new Promise<Record<string, unknown>>((resolve) => waiting.push(resolve));
  const { port, pid } = (await next()) as { port: number; pid: number };
  const tell = (request: object) => void child.stdin.write(`${JSON.stringify(request)}\n`);
  return {
    port,
    pid,
    tell,
    ask: (request) => {
      const reply = next();
      tell(request);
      return reply;
    },
    stop: () => stop(child),
  };
}

export async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
