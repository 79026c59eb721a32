// One demo per folder: a lock that ends with its process, however that ends.

import { DatabaseSync } from 'node:sqlite';
import { CommandError } from '../../cli/exit-codes.ts';

export interface FolderLock {
  release(): void;
}

/** Throws if another process, or another demo of this one, has it. */
export function lockFolder(directory: string): FolderLock {
  const database = new DatabaseSync(`${directory}/lock.db`);
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    throw new CommandError('refused', `a demo runs in ${directory}; stop it first, or give this one another --dir`, {
      cause,
    });
  }
  return { release: () => database.close() };
}
