// Files that are either the old or the new one, whatever happens in between: written beside, synced, renamed, and the
// directory synced, because the new name is a fact about the directory.

import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Disk, ListedFile, WriteOptions } from '../world.ts';
import { makeFolder } from './make-folder.ts';

export function createRealDisk(): Disk {
  return { read, write, remove, list, freeBytes };
}

async function read(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new Error(`read ${path}`, { cause: error });
  }
}

type Content = Uint8Array | Iterable<Uint8Array>;

async function write(path: string, content: Content, options: WriteOptions = {}): Promise<void> {
  const { mode = 0o644, isOnlyWriter = false } = options;
  const temporary = isOnlyWriter ? `${path}.tmp` : `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    makeFolder(dirname(path));
    if (isOnlyWriter) await rm(temporary, { force: true });
    await writeSynced(temporary, content, mode);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    // A failure to clean up is not reported; the first error is.
    await rm(temporary, { force: true }).catch(() => {});
    throw new Error(`write ${path}`, { cause: error });
  }
}

async function writeSynced(path: string, content: Content, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    // The process's umask may have taken bits away.
    await file.chmod(mode);
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function remove(path: string): Promise<void> {
  try {
    await rm(path);
    await syncDirectory(dirname(path));
  } catch (error) {
    if (!isMissing(error)) throw new Error(`remove ${path}`, { cause: error });
  }
}

async function list(path: string): Promise<ListedFile[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ name }) => listed(path, name));
    return (await Promise.all(files)).filter((file) => file !== undefined);
  } catch (error) {
    if (isMissing(error)) return [];
    throw new Error(`list ${path}`, { cause: error });
  }
}

/** Undefined if it has gone meanwhile. */
async function listed(path: string, name: string): Promise<ListedFile | undefined> {
  try {
    return { name, sizeBytes: (await stat(join(path, name))).size };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function freeBytes(path: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize;
  } catch (error) {
    if (isMissing(error) && dirname(path) !== path) return freeBytes(dirname(path));
    throw new Error(`look for room in ${path}`, { cause: error });
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
