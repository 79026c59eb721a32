// The data folder of a home, with its keys, belongs to its owner alone. Files and folders that others may read are mended,
// with a warning; where that cannot be, the warning says so.

import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { errorText, type Log } from '../../../base/log.ts';

const othersBits = 0o077;

/** Does nothing where there is nothing yet: the home makes its own files as they should be. */
export function closeToOthers(directory: string, log: Log): void {
  const folders = [directory, join(directory, 'pki'), join(directory, 'store')];
  const files = folders.flatMap((folder) =>
    namesIn(folder)
      .filter(isSecret)
      .map((name) => join(folder, name)),
  );
  for (const path of [...folders, ...files]) mend(path, log);
}

/** Certificates are no secret. */
function isSecret(name: string): boolean {
  return name.endsWith('.key') || name.endsWith('.kubeconfig') || /\.db(-wal|-shm)?$/.test(name);
}

function mend(path: string, log: Log): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.isSymbolicLink() || (found.mode & othersBits) === 0) return;
  const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
  try {
    chmodSync(path, found.mode & 0o7777 & ~othersBits);
    log.warn('others could read this; it is closed to them now', { path, mode });
  } catch (error) {
    log.warn('others can read this; close it to them', { path, mode, error: errorText(error) });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
