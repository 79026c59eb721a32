import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog, silentLog } from '../../base/log.ts';
import { Turns } from '../../base/turns.ts';
import { createMemoryStore } from '../open-store.ts';
import { openPki } from '../security/pki.ts';
import { put } from '../store/testing/tools.ts';
import { readSnapshot } from './read.ts';
import { Snapshots, type SnapshotsOptions } from './snapshots.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

async function setUp(more: Partial<SnapshotsOptions> = {}) {
  const sim = new Simulation({ seed: 1 });
  const world = sim.world('home');
  const mood = { freeBytes: 1e9, isDiskFull: false };
  const disk = {
    ...world.disk,
    freeBytes: async () => mood.freeBytes,
    write: async (...args: Parameters<typeof world.disk.write>) => {
      if (mood.isDiskFull) throw new Error('the disk is full');
      await world.disk.write(...args);
    },
  };
  const said: string[] = [];
  const log = createLog({ clock: world.clock, level: 'info', write: (line) => said.push(line) });
  const pki = await openPki({ world, directory: '/data', hosts: ['localhost'], log: silentLog });
  pki.close();
  const store = createMemoryStore({ world });
  const make = () =>
    new Snapshots({
      ...{ world: { ...world, disk }, log, store, storeBytes: () => 1000, turns: new Turns(world) },
      ...{ directory: '/data', homeName: 'east', folder: '/data/snapshots', ...more },
    });
  const names = async () => (await world.disk.list('/data/snapshots')).map(({ name }) => name).sort();
  return { sim, world, store, snapshots: make(), make, names, mood, said };
}

describe('snapshots: on a schedule', () => {
  test('snapshots: a new home -> one after a minute, then one an hour while it changes', async () => {
    const { sim, store, snapshots, names } = await setUp();
    await put(store, '/registry/core/configmaps/x/a', '{}');
    await snapshots.start();
    await sim.time.advance(59_000);
    expect(await names()).toEqual([]);
    await sim.time.advance(2_000);
    expect(await names()).toEqual(['20260101T000100Z-1.snapshot']);
    await sim.time.advance(5 * hourMs);
    expect(await names(), 'nothing has changed').toHaveLength(1);
    await put(store, '/registry/core/configmaps/x/a', '{"a":1}');
    await sim.time.advance(hourMs);
    expect(await names()).toEqual(['20260101T000100Z-1.snapshot', '20260101T060100Z-2.snapshot']);
    await snapshots.stop();
  });

  test('snapshots: started again -> goes on where the last one was taken', async () => {
    const { sim, store, snapshots, make, names } = await setUp();
    await put(store, '/a', '1');
    await snapshots.start();
    await sim.time.advance(61_000);
    await snapshots.stop();
    await put(store, '/a', '2');
    const again = make();
    await again.start();
    await sim.time.advance(10 * 60_000);
    expect(await names()).toHaveLength(1);
    await sim.time.advance(hourMs);
    expect(await names()).toHaveLength(2);
    await again.stop();
  });

  test('snapshots: a week -> the last 3 and one a day, whole and readable, with the keys', async () => {
    const { sim, world, store, snapshots, names } = await setUp({ storeBytes: () => 100_000 });
    await snapshots.start();
    for (let hour = 0; hour < 24 * 7; hour++) {
      await put(store, '/registry/core/configmaps/x/a', String(hour));
      await sim.time.advance(hourMs);
    }
    const left = await names();
    expect(left).toHaveLength(3 + 6);
    for (const name of left) {
      let files: string[] = [];
      const bytes = (await world.disk.read(`/data/snapshots/${name}`))!;
      const read = await readSnapshot([bytes], { onHead: (head) => (files = Object.keys(head.files)) });
      expect(read).toMatchObject({ kind: 'read', entries: 1, facts: { homeName: 'east' } });
      expect(files.sort()).toEqual(['ca.crt', 'ca.key', 'service-account.key']);
    }
    await snapshots.stop();
  });

  test('snapshots: with a key -> encrypted', async () => {
    const secret = 'a key of more than 16 characters';
    const { world, sim, snapshots, names } = await setUp({ secret });
    await snapshots.start();
    await sim.time.advance(61_000);
    // The key is derived in a thread, which virtual time does not wait for.
    await expect.poll(async () => (await names()).length, { timeout: 30_000 }).toBe(1);
    const bytes = (await world.disk.read(`/data/snapshots/${(await names())[0]}`))!;
    expect(await readSnapshot([bytes], {})).toEqual({ kind: 'sealed' });
    expect(await readSnapshot([bytes], { secret })).toMatchObject({ kind: 'read' });
    await snapshots.stop();
  });

  test('snapshots: little room or a disk that fails -> none is taken, said once, and again when there is room', async () => {
    const { sim, store, snapshots, names, mood, said } = await setUp();
    await put(store, '/a', '1');
    await snapshots.start();
    mood.freeBytes = 1999;
    await sim.time.advance(hourMs);
    expect(await names()).toEqual([]);
    expect((await snapshots.list()).problem).toMatch(/1999 bytes left/);
    expect(said.filter((line) => line.includes('could not be taken'))).toHaveLength(1);
    mood.freeBytes = 1e9;
    mood.isDiskFull = true;
    await sim.time.advance(10 * 60_000);
    expect((await snapshots.list()).problem).toMatch(/disk is full/);
    mood.isDiskFull = false;
    await sim.time.advance(10 * 60_000);
    expect(await names()).toHaveLength(1);
    expect((await snapshots.list()).problem).toBe('');
    await snapshots.stop();
  });

  test('snapshots: none for more than a day -> a warning with the reason, and none after the next good one', async () => {
    const { sim, store, snapshots, mood } = await setUp();
    await put(store, '/a', '1');
    await snapshots.start();
    mood.isDiskFull = true;
    await sim.time.advance(dayMs);
    expect(snapshots.warning()).toBeUndefined();
    await sim.time.advance(hourMs);
    expect(snapshots.warning()).toBe('snapshots: there is none; the disk is full');
    mood.isDiskFull = false;
    await sim.time.advance(hourMs);
    expect(snapshots.warning()).toBeUndefined();
    mood.isDiskFull = true;
    await put(store, '/a', '2');
    await sim.time.advance(2 * dayMs);
    expect(snapshots.warning()).toMatch(
      /^snapshots: the last good one is of 2026-01-02T0\d:\d\d:\d\dZ; the disk is full$/,
    );
    await snapshots.stop();
  });

  test('snapshots: turned off -> none is taken, and one that a client took counts', async () => {
    const { sim, snapshots, names } = await setUp({ folder: undefined });
    await snapshots.start();
    await sim.time.advance(dayMs + hourMs);
    expect(await names()).toEqual([]);
    expect(snapshots.warning()).toBe('snapshots: there is none');
    for await (const _piece of (await snapshots.stream())!);
    expect(snapshots.warning()).toBeUndefined();
    await snapshots.stop();
  });
});

describe('snapshots: for a client', () => {
  test('snapshots: one at a time; a client that goes away makes room, and its snapshot does not count', async () => {
    const { snapshots, sim } = await setUp({ folder: undefined });
    await sim.time.advance(2 * dayMs);
    const first = (await snapshots.stream())!;
    expect(await snapshots.stream()).toBeUndefined();
    await first[Symbol.asyncIterator]().return!();
    const second = (await snapshots.stream())![Symbol.asyncIterator]();
    await second.next();
    await second.return!();
    expect(snapshots.warning()).toBe('snapshots: there is none');
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await snapshots.stream())!) chunks.push(chunk);
    expect(await readSnapshot(chunks, {})).toMatchObject({ kind: 'read', entries: 0 });
    expect(snapshots.warning()).toBeUndefined();
  });

  test('snapshots: writes while it is sent -> the state of one revision', async () => {
    const { store, snapshots } = await setUp({ folder: undefined });
    for (let index = 1000; index < 3000; index++) await put(store, `/k/${index}`, 'x'.repeat(500));
    const values = new Set<string>();
    const seen: number[] = [];
    const chunks: Uint8Array[] = [];
    let index = 1000;
    for await (const chunk of (await snapshots.stream())!) {
      chunks.push(chunk);
      for (let count = 0; count < 200; count++) await put(store, `/k/${index++}`, 'new');
    }
    const read = await readSnapshot(chunks, {
      onEntry: ({ value, revision }) => {
        values.add(Buffer.from(value).toString('utf8').slice(0, 3));
        seen.push(revision);
      },
    });
    expect(read).toMatchObject({ entries: 2000, facts: { revision: 2000 } });
    expect([...values]).toEqual(['xxx']);
    expect(Math.max(...seen)).toBe(2000);
  });
});
