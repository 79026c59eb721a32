// The real machine: process environment, file system, child processes.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Command, CommandResult, Host } from '../host.ts';

const outputBytesMax = 4 * 1024 * 1024;

export function createRealHost(): Host {
  return { environment: process.env, readText, run };
}

async function readText(path: string): Promise<string | undefined> {
  try {
    // A socket on standard input, as some programs give their children, cannot be opened by its path.
    if (path === '/dev/stdin') return await text(process.stdin);
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function run(command: Command): Promise<CommandResult> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...command.environment };
    const maxBuffer = command.outputBytesMax ?? outputBytesMax;
    const options = { env, timeout: command.timeoutMs, maxBuffer, encoding: 'utf8' as const };
    const child = execFile(command.program, [...command.args], options, (error, stdout, stderr) => {
      if (error === null) return resolve({ kind: 'exited', code: 0, stdout, stderr });
      if (typeof error.code === 'number') return resolve({ kind: 'exited', code: error.code, stdout, stderr });
      if (error.killed) return resolve({ kind: 'timed out' });
      const code = (error as NodeJS.ErrnoException).code;
      resolve({ kind: 'not started', reason: error.message, isMissing: code === 'ENOENT' });
    });
    // The other program must not wait for input: there is no person at this end.
    child.stdin?.end();
  });
}
