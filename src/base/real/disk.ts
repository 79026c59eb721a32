// Files that are either the old or the new one, whatever happens in between: written beside, synced, renamed, and the
// directory synced, because the new name is a fact about the directory.

import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Disk } from '../world.ts';

export function createRealDisk(): Disk {
  return { read, write, remove };
}

async function read(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new Error(`read ${path}`, { cause: error });
  }
}

async function write(path: string, bytes: Uint8Array, options?: { readonly mode?: number }): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeSynced(temporary, bytes, options?.mode ?? 0o644);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    // Whatever stands in the way of tidying up too is not news.
    await rm(temporary, { force: true }).catch(() => {});
    throw new Error(`write ${path}`, { cause: error });
  }
}

async function writeSynced(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    // The process's umask may have taken bits away.
    await file.chmod(mode);
    await file.writeFile(bytes);
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
