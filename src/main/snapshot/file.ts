// Snapshots as files: read piece by piece, and written so that a file of that name is always a whole one.

import { createReadStream, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { notFoundError, usageError } from '../../cli/exit-codes.ts';
import { SnapshotError } from '../../home/snapshot/snapshot-error.ts';

const pieceBytes = 1024 * 1024;

export function snapshotChunks(path: string): AsyncIterable<Uint8Array> {
  if (!existsSync(path)) throw notFoundError(`snapshot ${path}: there is no such file`);
  return createReadStream(path, { highWaterMark: pieceBytes });
}

/** Names the file in what is wrong with it. */
export async function withFileNamed<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SnapshotError) throw new Error(`snapshot ${path}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** What `fill` writes becomes the file when it resolves; otherwise nothing is left. */
export async function writeNewFile(
  path: string,
  fill: (write: (bytes: Uint8Array) => Promise<void>) => Promise<void>,
): Promise<void> {
  if (existsSync(path)) throw usageError(`snapshot ${path}: the file exists; give another name, or remove it first`);
  const temporary = `${path}.part`;
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.chmod(0o600);
    await fill((bytes) => file.writeFile(bytes));
    await file.sync();
    await file.close();
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await file.close().catch(() => {});
    await rm(temporary, { force: true });
    throw error;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync();
  await folder.close();
}
