// A token as it is given to a command: in its arguments, in a file, or on standard input. Arguments show in the list of
// processes and in the history of a shell; the other two do not.

import type { Host } from '../base/host.ts';
import { type JoinToken, parseJoinToken } from '../clusterset/membership/join-token.ts';
import { usageError } from './exit-codes.ts';

export interface GivenToken {
  /** The argument; `-` is standard input. */
  readonly argument?: string;
  /** `--token-file`; `-` is standard input. */
  readonly file?: string;
  /** The option that named the file. */
  readonly flag?: string;
}

/** Undefined if none was given. */
export async function readToken(
  host: Host,
  { argument, file, flag = '--token-file' }: GivenToken,
): Promise<string | undefined> {
  if (argument !== undefined && file !== undefined)
    throw usageError('a token and --token-file: give one of them, not both');
  const path = argument === '-' ? '-' : file;
  if (path === undefined) return argument;
  const text = (await host.readText(path === '-' ? '/dev/stdin' : path))?.trim();
  const where = path === '-' ? 'standard input' : `${flag} ${path}`;
  if (text === undefined) throw usageError(`${where}: no such file`);
  if (text === '') throw usageError(`${where}: it is empty, a token was expected`);
  return text;
}

/** A token that is cut or of another kind is a mistake of the command line. */
export function joinTokenIn(text: string): JoinToken {
  try {
    return parseJoinToken(text);
  } catch (error) {
    throw usageError((error as Error).message);
  }
}
