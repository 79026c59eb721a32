// Promises of the store on disk alone: data survives a restart, one process owns it, its files stay small, and it
// survives a full disk.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { openSqliteStore, type SqliteStoreOptions } from '../../open-store.ts';
import type { LogStore } from '../log-store.ts';
import { StoreUnavailableError } from '../store.ts';
import { renewLeases } from '../testing/leases.ts';
import { TestWorld } from '../testing/test-world.ts';
import { commit, observe, put, until } from '../testing/tools.ts';

const root = mkdtempSync(join(tmpdir(), 'portolan-sqlite-'));
afterAll(() => rmSync(root, { recursive: true }));
const megabyte = 1024 * 1024;
let count = 0;
const opened: LogStore[] = [];
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

function newDirectory(): string {
  const directory = join(root, String(count++));
  mkdirSync(directory);
  return directory;
}

async function open(options: Partial<SqliteStoreOptions> & { path: string }): Promise<LogStore> {
  const store = await openSqliteStore({ world: new TestWorld().world, ...options });
  opened.push(store);
  return store;
}

function fileBytes(directory: string): number {
  return readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
}

describe('sqlite store: restarts', () => {
  test('closed and reopened -> state, history, revision and floor as they were', async () => {
    const path = join(newDirectory(), 'store.db');
    const first = await open({ path });
    for (let index = 1; index <= 6; index++) await put(first, `/${index % 2}é`, String(index));
    await commit(first, { writes: [{ key: '/0é' }] });
    await commit(first, { writes: [{ key: '/empty', value: new Uint8Array(0) }] });
    await first.compact(3);
    const ranges = (store: LogStore) =>
      Promise.all([3, 4, 5, 6, 7, 8].map((revision) => store.range({ prefix: '', revision })));
    const before = await ranges(first);
    const seen = observe(first, '', 3);
    await until(() => seen.events.length === 5);
    await first.close();
    const second = await open({ path });
    expect([second.revision(), second.floor()]).toEqual([8, 3]);
    expect(await ranges(second)).toEqual(before);
    const replayed = observe(second, '', 3);
    await until(() => replayed.events.length === 5);
    expect(replayed.events).toEqual(seen.events);
  });

  test('all deleted and compacted, reopened -> the revision does not go back', async () => {
    const path = join(newDirectory(), 'store.db');
    const first = await open({ path });
    await put(first, '/a', '1');
    await commit(first, { writes: [{ key: '/a' }] });
    await first.compact(2);
    await first.close();
    const second = await open({ path });
    expect([second.revision(), second.floor(), await second.get('/a')]).toEqual([2, 2, undefined]);
    expect(await put(second, '/a', '1')).toBe(3);
  });

  test('the file -> only its owner can read it', async () => {
    const directory = newDirectory();
    await put(await open({ path: join(directory, 'store.db') }), '/secret', '1');
    for (const name of readdirSync(directory)) expect(statSync(join(directory, name)).mode & 0o077).toBe(0);
  });
});

describe('sqlite store: refusals', () => {
  test('one record below the root of objects is not JSON -> refused with its key; elsewhere, deep or deleted -> opened', async () => {
    const path = join(newDirectory(), 'store.db');
    const first = await open({ path });
    await put(first, '/registry/core/configmaps/x/good', '{"metadata":{"name":"é"}}');
    await put(first, '/registry/core/configmaps/x/deep', `${'['.repeat(3000)}${']'.repeat(3000)}`);
    await put(first, '/addresses/10.0.0.1', 'no JSON');
    await commit(first, { writes: [{ key: '/registry/core/configmaps/x/good' }] });
    await first.close();
    await (await open({ path, jsonBelow: '/registry/' })).close();
    const second = await open({ path });
    await put(second, '/registry/core/configmaps/x/bad', '{"metadata":{"name":"bad"');
    await second.close();
    const refused = openSqliteStore({ world: new TestWorld().world, path, jsonBelow: '/registry/' });
    await expect(refused).rejects.toThrow(/the record "\/registry\/core\/configmaps\/x\/bad" \(row \d+\) is not JSON/);
    // It was let go: another can have it.
    await open({ path });
  });

  test('somebody has it open -> refused and told so; the one that has it is not harmed', async () => {
    const path = join(newDirectory(), 'store.db');
    const first = await open({ path });
    await expect(openSqliteStore({ world: new TestWorld().world, path })).rejects.toThrow(
      `store ${path}: another process has it open; stop that one first`,
    );
    expect(await put(first, '/a', '1')).toBe(1);
    await first.close();
    expect((await open({ path })).revision()).toBe(1);
  });

  test('a file that is no database, or not ours, or from the future -> refused, left as it is', async () => {
    const directory = newDirectory();
    const openIt = (name: string) => openSqliteStore({ world: new TestWorld().world, path: join(directory, name) });
    writeFileSync(join(directory, 'text'), 'not a database at all, but long enough to have a header '.repeat(100));
    await expect(openIt('text')).rejects.toThrow(/store .*text: file is not a database/);
    const other = new DatabaseSync(join(directory, 'other'));
    other.exec('CREATE TABLE log (a); PRAGMA user_version = 1');
    other.close();
    await expect(openIt('other')).rejects.toThrow('it is a database, but not a portolan store');
    await (await openIt('future')).close();
    const future = new DatabaseSync(join(directory, 'future'));
    future.exec('PRAGMA user_version = 99');
    future.close();
    await expect(openIt('future')).rejects.toThrow('its format is 99, this portolan knows 1');
  });

  test('a directory that cannot be made -> refused with the path', async () => {
    const directory = newDirectory();
    writeFileSync(join(directory, 'file'), '');
    const path = join(directory, 'file', 'store.db');
    await expect(openSqliteStore({ world: new TestWorld().world, path })).rejects.toThrow(path);
  });
});

describe('sqlite store: disk full', () => {
  test('no more pages -> writes refused and rolled back, reads go on, all acknowledged is there after a restart', async () => {
    const clock = new TestWorld();
    const path = join(newDirectory(), 'store.db');
    const store = await open({ path, world: clock.world, pagesMax: 200 });
    const value = new Uint8Array(20_000);
    let acknowledged = 0;
    const fill = async () => {
      for (; acknowledged < 1000; acknowledged++) await commit(store, { writes: [{ key: `/${acknowledged}`, value }] });
    };
    const error = await fill().catch((thrown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error.message).toMatch(/^the store takes no writes: store .*store\.db: the disk is full/);
    expect(store.writeFailure()).toBeDefined();
    expect(acknowledged).toBeGreaterThan(10);
    expect((await store.range({ prefix: '' })).entries.length).toBe(acknowledged);
    await store.close();
    const reopened = await open({ path });
    expect(reopened.revision()).toBe(acknowledged);
    expect((await reopened.range({ prefix: '' })).entries.length).toBe(acknowledged);
  });
});

describe('sqlite store: disk use', () => {
  const slack = 4 * megabyte;
  const limits = { diskSlackBytes: slack };

  test('two hours of 50 clusters renewing leases -> files never above twice the live data and the slack', async () => {
    const clock = new TestWorld();
    const directory = newDirectory();
    const store = await open({ path: join(directory, 'store.db'), world: clock.world, limits });
    for (let tick = 0; tick < 720; tick++) {
      await renewLeases(store, tick);
      clock.advance(10_000);
      if (tick % 20 === 0) expect(fileBytes(directory)).toBeLessThan(2 * store.stats().liveBytes + slack);
    }
    expect(store.revision()).toBe(720 * 50);
    expect(store.floor()).toBeGreaterThan(34_000);
  });

  test('values that stay written between values that go -> rewritten, within the bound', async () => {
    const directory = newDirectory();
    const store = await open({ path: join(directory, 'store.db'), limits });
    for (let round = 0; round < 60; round++) {
      // Two rows fill a page and every other one stays: left alone, each page would keep one row of 1.4 KB.
      const writes = Array.from({ length: 200 }, (_, index) => ({
        key: index % 2 === 0 ? `/stays/${round}/${index}` : `/goes/${index}`,
        value: new Uint8Array(1400),
      }));
      await commit(store, { writes });
    }
    await store.compact(store.revision());
    await settled(() => fileBytes(directory) < 2 * store.stats().liveBytes + slack / 2);
    expect((await store.range({ prefix: '/stays/' })).entries.length).toBe(60 * 100);
    await store.close();
    const reopened = await open({ path: join(directory, 'store.db'), limits });
    expect((await reopened.range({ prefix: '/stays/' })).entries.length).toBe(60 * 100);
    expect((await reopened.get('/stays/7/8'))?.createRevision).toBe(8);
  });

  test('a large data set is deleted -> its space is given back', async () => {
    const directory = newDirectory();
    const store = await open({ path: join(directory, 'store.db'), limits });
    const keys = Array.from({ length: 500 }, (_, index) => `/${index}`);
    for (let part = 0; part < 20; part++) {
      const writes = keys.map((key) => ({ key: `/${part}${key}`, value: new Uint8Array(2000) }));
      await commit(store, { writes });
    }
    expect(fileBytes(directory)).toBeGreaterThan(19 * megabyte);
    for (let part = 0; part < 20; part++)
      await commit(store, { writes: keys.map((key) => ({ key: `/${part}${key}` })) });
    await store.compact(store.revision());
    await settled(() => fileBytes(directory) < slack);
  });

  test('one commit of many megabytes -> the log file is cut back afterwards', async () => {
    const directory = newDirectory();
    const store = await open({ path: join(directory, 'store.db'), limits });
    await commit(store, { writes: [{ key: '/large', value: new Uint8Array(16 * megabyte) }] });
    await settled(() => fileBytes(directory) < 17 * megabyte);
  });

  /** Tidying goes on for a while in the database's thread: waits for it, with an end. */
  async function settled(holds: () => boolean): Promise<void> {
    for (let wait = 0; wait < 500 && !holds(); wait++) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(holds()).toBe(true);
  }
});
