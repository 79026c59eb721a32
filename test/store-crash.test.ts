// The store in a process of its own, killed, on a disk that is really full, and under an fsync that really fails.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createRealWorld } from '../src/base/real/world.ts';
import { openSqliteStore } from '../src/home/open-store.ts';
import { describeWith } from './support/counterparts.ts';
import { StoreWriter, type WriterOptions } from './support/store-process.ts';

const root = mkdtempSync(join(tmpdir(), 'portolan-store-crash-'));
const running: StoreWriter[] = [];
afterEach(async () => {
  for (const writer of running.splice(0)) await writer.kill();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function start(options: WriterOptions): StoreWriter {
  const writer = new StoreWriter(options);
  running.push(writer);
  return writer;
}

async function kill(writer: StoreWriter): Promise<void> {
  running.splice(running.indexOf(writer), 1);
  await writer.kill();
}

/** Opens what a writer left behind: everything acknowledged is there, and readable as history too. */
async function checkAcknowledged(path: string, acknowledged: ReadonlyMap<string, number>): Promise<number> {
  const store = await openSqliteStore({ world: createRealWorld(), path });
  try {
    const { entries, revision } = await store.range({ prefix: '' });
    const found = new Map(entries.map((entry) => [entry.key, entry.revision]));
    const lost = [...acknowledged].filter(([key, at]) => (found.get(key) ?? 0) < at);
    expect(lost).toEqual([]);
    expect(Math.max(0, ...acknowledged.values())).toBeLessThanOrEqual(revision);
    expect(await replayed(store, store.floor())).toEqual(
      Array.from({ length: revision - store.floor() }, (_, i) => i + 1 + store.floor()),
    );
    return revision;
  } finally {
    await store.close();
  }
}

function replayed(store: Awaited<ReturnType<typeof openSqliteStore>>, afterRevision: number): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const revisions = new Set<number>();
    const onEvents = (events: readonly { readonly revision: number }[]) => {
      for (const event of events) revisions.add(event.revision);
    };
    const onProgress = () => resolve([...revisions]);
    if (store.revision() === afterRevision) resolve([]);
    store.watch({ prefix: '', afterRevision, onEvents, onProgress, onEnd: reject });
  });
}

describe('store: killed with -9', () => {
  test('at random moments with 64 writers -> all acknowledged is there, revisions never go back, no gap', async () => {
    const path = join(root, 'killed', 'store.db');
    const acknowledged = new Map<string, number>();
    let revision = 0;
    for (let round = 0; round < 5; round++) {
      const writer = start({ path, round });
      await writer.until(() => writer.startRevision !== undefined);
      expect(writer.startRevision).toBe(revision);
      const enough = 200 + Math.floor(Math.random() * 3000);
      await writer.until(() => writer.count > enough);
      await kill(writer);
      for (const [key, at] of writer.acknowledged) acknowledged.set(key, at);
      revision = await checkAcknowledged(path, acknowledged);
    }
  });

  test('the next process -> can open it at once, while a living one keeps others out', async () => {
    const path = join(root, 'lock', 'store.db');
    const writer = start({ path, round: 0 });
    await writer.until(() => writer.count > 0);
    await expect(openSqliteStore({ world: createRealWorld(), path })).rejects.toThrow('another process has it open');
    await kill(writer);
    await checkAcknowledged(path, writer.acknowledged);
  });
});

const isRoot = process.getuid?.() === 0;
describe.skipIf(!isRoot)('store: a disk that is really full (needs root to mount a small one)', () => {
  const mount = join(root, 'small');
  beforeAll(() => {
    mkdirSync(mount);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', mount]);
  });
  afterAll(() => {
    execFileSync('umount', ['-l', mount]);
  });

  test('full -> refuses and says why; room again -> goes on; killed -> nothing acknowledged is lost', async () => {
    const path = join(mount, 'store.db');
    const ballast = join(mount, 'ballast');
    const writer = start({ path, round: 0 });
    await writer.until(() => writer.count > 100);
    // Fill what is left; a short write is the point.
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k', 'count=1000']);
    await writer.until(() => writer.refusals.length > 0);
    expect(writer.refusals[0]).toMatch(/the disk is full/);
    rmSync(ballast);
    await writer.until(() => writer.againCount > 0);
    const before = writer.count;
    await writer.until(() => writer.count > before + 100);
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k', 'count=1000']);
    const refusals = writer.refusals.length;
    await writer.until(() => writer.refusals.length > refusals);
    await kill(writer);
    rmSync(ballast);
    await checkAcknowledged(path, writer.acknowledged);
  });
});

describeWith(['strace'], 'store: an fsync that really fails', () => {
  test('fsync returns EIO -> writes are refused for good and say why; restarted, all acknowledged is there', async () => {
    const path = join(root, 'fsync', 'store.db');
    mkdirSync(join(root, 'fsync'));
    writeFileSync(path, '');
    const inject = [
      'strace',
      '-f',
      '-o',
      '/dev/null',
      '-e',
      'trace=fsync,fdatasync',
      '-e',
      'inject=fsync,fdatasync:error=EIO:when=40+',
    ];
    const writer = start({ path, round: 0, under: inject });
    await writer.until(() => writer.refusals.length > 0);
    expect(writer.refusals[0]).toMatch(/the store takes no writes: .*disk I\/O error/);
    const { count } = writer;
    expect(count).toBeGreaterThan(0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([writer.againCount, writer.count]).toEqual([0, count]);
    await kill(writer);
    await checkAcknowledged(path, writer.acknowledged);
  });
});
