// The key that snapshots are encrypted with, as it is given to a command: in a file or on standard input.

import type { Host } from '../../base/host.ts';
import { usageError } from '../../cli/exit-codes.ts';
import { readToken } from '../../cli/given-token.ts';
import { secretProblem } from '../../home/snapshot/envelope.ts';

export async function readSnapshotKey(host: Host, file: string | undefined, flag = '--key-file') {
  if (file === undefined) return undefined;
  const secret = await readToken(host, { file, flag });
  const problem = secretProblem(secret!);
  if (problem !== undefined) throw usageError(`${flag} ${file}: the key is too short: ${problem}`);
  return secret;
}
