// Reads the counters of connections with a process of its own.

import type { Host } from '../../../base/host.ts';
import { runProgram } from './programs.ts';

/** JSON of the whole table, given as family and name. */
export async function listCounts(host: Host, table: readonly string[]): Promise<string> {
  const { code, out, err } = await runProgram(host, 'nft', ['-j', 'list', 'table', ...table]);
  if (code !== 0) throw new Error(`nft: ${err.slice(0, 200)}`);
  return out;
}
