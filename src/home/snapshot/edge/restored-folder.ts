// The folder of a home while it is restored. Everything new is made in `restoring/`; one file there says that it is whole.
// From then on the exchange is only a matter of renaming, which the next start goes on with if it was interrupted: a home
// never starts with half of each. The former files stay, in a folder of their own.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../../base/real/make-folder.ts';

const newFolder = 'restoring';
const wholeFile = 'whole';
/** The process that makes it. */
const ownerFile = 'process';
const exchanged = ['store', 'pki'] as const;

/** An empty folder for what is restored; leavings of an attempt that was not whole go away. */
export function beginRestore(directory: string): string {
  refuseDuringRestore(directory);
  finishRestore(directory);
  const path = join(directory, newFolder);
  rmSync(path, { recursive: true, force: true });
  makeFolder(path, 0o700);
  writeFileSync(join(path, ownerFile), String(process.pid));
  return path;
}

/** Throws while another process restores into the folder: a home must not start on what is about to be replaced. */
export function refuseDuringRestore(directory: string): void {
  const path = join(directory, newFolder, ownerFile);
  if (!existsSync(path) || existsSync(join(directory, newFolder, wholeFile))) return;
  const pid = Number(readFileSync(path, 'utf8'));
  if (pid !== process.pid && isAlive(pid)) throw new Error(`${directory}: process ${pid} is restoring a snapshot here`);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

export function abandonRestore(directory: string): void {
  rmSync(join(directory, newFolder), { recursive: true, force: true });
}

export function writeRestored(folder: string, name: string, content: string): void {
  makeFolder(join(folder, 'pki'), 0o700);
  const path = join(folder, 'pki', name);
  writeFileSync(path, content, { mode: name.endsWith('.key') ? 0o600 : 0o644 });
  sync(path);
}

/** The point of no return. `formerFolder` takes the files that were there. */
export function commitRestore(directory: string, formerFolder: string): void {
  const path = join(directory, newFolder);
  for (const name of exchanged) sync(join(path, name));
  const whole = join(path, wholeFile);
  writeFileSync(`${whole}.tmp`, formerFolder, { mode: 0o600 });
  sync(`${whole}.tmp`);
  renameSync(`${whole}.tmp`, whole);
  sync(path);
  finishRestore(directory);
}

/** Completes an exchange that was interrupted; does nothing if there is none. */
export function finishRestore(directory: string): boolean {
  const path = join(directory, newFolder);
  const whole = join(path, wholeFile);
  if (!existsSync(whole)) return false;
  const former = join(directory, readFileSync(whole, 'utf8'));
  for (const name of exchanged) {
    const restored = join(path, name);
    if (!existsSync(restored)) continue;
    const present = join(directory, name);
    if (existsSync(present)) {
      makeFolder(former, 0o700);
      renameSync(present, join(former, name));
      sync(former);
    }
    renameSync(restored, present);
  }
  sync(directory);
  rmSync(path, { recursive: true });
  sync(directory);
  return true;
}

function sync(path: string): void {
  const file = openSync(path, 'r');
  fsyncSync(file);
  closeSync(file);
}
