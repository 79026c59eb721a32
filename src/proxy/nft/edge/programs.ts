// Runs nft, conntrack or ip once, to its end.

import type { Host } from '../../../base/host.ts';

export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Its text says which program is missing. */
export class MissingProgram extends Error {}

/** The PATH of a server often lacks the folders where Debian keeps these programs. */
export function programPath(environment: Host['environment']): string {
  return `${environment['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/local/sbin`;
}

const timeoutMs = 60_000;
/** A hundred thousand services. */
const outputBytesMax = 1 << 30;

export async function runProgram(host: Host, program: string, args: readonly string[]): Promise<Finished> {
  const environment = { PATH: programPath(host.environment), LC_ALL: 'C' };
  const result = await host.run({ program, args, environment, timeoutMs, outputBytesMax });
  if (result.kind === 'exited') return { code: result.code, out: result.stdout, err: result.stderr.trim() };
  if (result.kind === 'timed out')
    throw new Error(`${program} ${args.join(' ')}: not done after ${timeoutMs / 1000} s`);
  if (result.isMissing) throw new MissingProgram(`${program} is not installed`);
  throw new Error(`${program} ${args.join(' ')}: ${result.reason}`);
}
