// Processes that end with the one that started them, however that ends: a run of tests that is killed leaves nothing behind.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/** The kernel kills it when its parent is gone. */
export function spawnTied(program: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  return spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...args], options);
}
