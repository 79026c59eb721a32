import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRealDisk } from './disk.ts';

const disk = createRealDisk();
let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'portolan-disk-'));
});
afterEach(() => rm(directory, { recursive: true }));

test('disk: written, replaced, removed -> the newest or nothing, no leavings, the mode that was asked for', async () => {
  const path = join(directory, 'new', 'file');
  expect(await disk.read(path)).toBeUndefined();
  await disk.write(path, Buffer.from('one'));
  await disk.write(path, Buffer.from('two'), { mode: 0o600 });
  expect(Buffer.from((await disk.read(path))!).toString()).toBe('two');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(join(directory, 'new'))).toEqual(['file']);
  await disk.remove(path);
  await disk.remove(path);
  expect(await disk.read(path)).toBeUndefined();
});

test('disk: what cannot be written -> an error that names the file, the old one stays, no leavings', async () => {
  await disk.write(join(directory, 'file'), Buffer.from('old'));
  await expect(disk.write(join(directory, 'file', 'below'), Buffer.from('x'))).rejects.toThrow(
    `write ${directory}/file/below`,
  );
  expect(await readdir(directory)).toEqual(['file']);
});
