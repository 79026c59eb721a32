// Commands of people, run in this process: a program of its own for each of them would keep the machine busy.

import { Command } from 'commander';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import type { addStatusCommand } from '../../src/cli/health/status.ts';

export const world = createRealWorld();

export type AddCommands = (program: Command, deps: Parameters<typeof addStatusCommand>[1]) => void;

/** Returns what the command printed. */
export async function typed(add: AddCommands, words: readonly string[]): Promise<string> {
  const lines: string[] = [];
  const program = new Command().exitOverride();
  add(program, { world, host: createRealHost(), print: (text) => void lines.push(text), setExitCode: () => {} });
  await program.parseAsync([...words], { from: 'user' });
  return lines.join('\n');
}
