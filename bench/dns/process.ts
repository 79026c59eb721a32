// Processes that the DNS benchmark starts: scripts of ours that print their port in a line of JSON, and the CPU and memory
// that any of them takes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const ticksPerSecond = 100;

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

export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

export function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1000;
}
