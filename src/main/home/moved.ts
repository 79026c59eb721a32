// A file in the folder of a home that has moved to etcd, so that nobody starts it from what it left behind.

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

function fileOf(directory: string): string {
  return join(directory, 'moved-to-etcd');
}

/** Why the folder cannot be started from; undefined if it can. */
export function movedFrom(directory: string): string | undefined {
  const path = fileOf(directory);
  if (!existsSync(path)) return undefined;
  return `this home has moved to etcd under ${readFileSync(path, 'utf8').trim()}: start it with --etcd, or bring it back with portolan api migrate --to folder`;
}

export function leaveFolder(directory: string, prefix: string): void {
  writeFileSync(fileOf(directory), `${prefix}\n`, { mode: 0o600, flush: true });
}

export function returnToFolder(directory: string): void {
  rmSync(fileOf(directory), { force: true });
}
