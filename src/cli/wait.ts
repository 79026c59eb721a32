// `--wait` and `--timeout`, which every command has that changes something: wait until the change has taken effect. A
// command that waits names what it waits for on a terminal, and in the error when time is up.

import type { Command } from 'commander';
import { sleep } from '../base/world.ts';
import { CommandError, usageError } from './exit-codes.ts';
import type { CliDeps } from './with-home.ts';

export interface WaitFlags {
  readonly wait?: boolean;
  readonly timeout: string;
}

/** `until` completes the sentence "wait until …". */
export function addWaitOptions(command: Command, until: string, timeoutSeconds = 60): Command {
  return command
    .option('--wait', `wait until ${until}`)
    .option('--timeout <seconds>', 'how long to wait', String(timeoutSeconds));
}

export function parseTimeout(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw usageError(`--timeout ${JSON.stringify(text)}: write a number of seconds`);
  return Number(text) * 1000;
}

/** `done` is a line for the person; `waiting` says for what. */
export type Look = { readonly done: string } | { readonly waiting: string };

export interface WaitRequest {
  /** The attempted action, for the error: `export shop/checkout`. */
  readonly what: string;
  readonly timeoutMs: number;
  look(): Promise<Look>;
}

const lookMs = 200;

/** Resolves with the last line. Throws `notReady` when time is up. */
export async function waitUntil(deps: CliDeps, { what, timeoutMs, look }: WaitRequest): Promise<string> {
  const { clock, timers } = deps.world;
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  let said = '';
  for (;;) {
    const found = await look();
    if ('done' in found) return found.done;
    if (clock.monotonicMs() >= deadlineMs)
      throw new CommandError('notReady', `${what}: not done after ${timeoutMs / 1000} s: ${found.waiting}`);
    if (found.waiting !== said) deps.progress?.(`waiting: ${found.waiting}`);
    said = found.waiting;
    await sleep(timers, lookMs);
  }
}

/** Waits if `--wait` was given, and prints the last line. */
export async function waitIfAsked(
  deps: CliDeps,
  flags: WaitFlags,
  request: Omit<WaitRequest, 'timeoutMs'>,
): Promise<void> {
  if (flags.wait) deps.print(await waitUntil(deps, { ...request, timeoutMs: parseTimeout(flags.timeout) }));
}
