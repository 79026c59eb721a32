// When a copy of names is written, and when one is taken up.

import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { recordType } from '../../base/dns/codes.ts';
import { createLog, type LogFields } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { order, plainRecord } from '../names/answers.ts';
import { NameTable } from '../names/name-table.ts';
import { makeZone, type Zone } from '../names/zones.ts';
import { CopyKeeper, type LoadCopyOptions, loadCopy } from './copy-keeper.ts';
import { type CopyFacts, readCopy } from './name-copy.ts';

const clusterZone = makeZone(0, { name: 'cluster.local', source: 'services' });
const clustersetZone = makeZone(1, { name: 'clusterset.local', source: 'imports' });
const dayMs = 86_400_000;
const path = 'state/names';

function setUp() {
  const sim = new Simulation({ seed: 1 });
  const world = sim.world('dns');
  const said: LogFields[] = [];
  const log = createLog({ clock: world.clock, level: 'info', write: (line) => said.push(JSON.parse(line)) });
  const table = new NameTable({ serial: 1 });
  const moods = { isDiskFull: false };
  let writes = 0;
  const disk: World['disk'] = {
    ...world.disk,
    write: async (...args) => {
      if (moods.isDiskFull) throw new Error('disk is full');
      await world.disk.write(...args);
      writes += 1;
    },
  };
  const zones = [clusterZone, clustersetZone];
  const isWhole = () => zones.every(({ id }) => table.isReady(id));
  const parts = { world: { ...world, disk }, log, path, owner: 'cluster west' };
  const keeper = new CopyKeeper({ ...parts, table, zones: () => zones, isWhole });
  const put = (last: number) => {
    const records = [plainRecord(Uint8Array.of(10, 0, 0, last))];
    table.put('web.shop.svc.cluster.local', 0, [{ type: recordType.A, order: order.fixed, records }]);
    table.bumpSerial();
  };
  const sync = () => {
    for (const { id } of zones) table.setReady(id, true);
    put(1);
  };
  const written = async () => {
    const read = readCopy((await world.disk.read(path))!);
    if (read.kind === 'unusable') throw new Error(read.why);
    const last = Buffer.from(read.memoryFor([]).names.bytes).lastIndexOf(Buffer.of(10, 0, 0));
    return { facts: read.facts, last: new Uint8Array(read.memoryFor([]).names.bytes).at(last + 3) };
  };
  const load = (options: Partial<LoadCopyOptions> = {}) => loadCopy({ ...parts, maxAgeMs: dayMs, ...options });
  const warnings = () => said.filter(({ level }) => level === 'warn').map(({ msg, why, error }) => [msg, why ?? error]);
  return { sim, world, table, keeper, put, sync, written, load, moods, warnings, said, writes: () => writes };
}

describe('copy of names: writing', () => {
  test('everything has been read -> written within seconds; then half a minute apart, and only after changes', async () => {
    const { sim, keeper, put, sync, written, writes } = setUp();
    keeper.start();
    await sim.time.advance(60_000);
    expect(writes()).toBe(0);
    sync();
    await sim.time.advance(5000);
    expect(writes()).toBe(1);
    for (let i = 0; i < 50; i++) {
      put(i);
      await sim.time.advance(1000);
    }
    expect(writes()).toBe(2);
    await sim.time.advance(600_000);
    expect(writes()).toBe(3);
    expect((await written()).last).toBe(49);
    await keeper.stop();
  });

  test('nothing changes -> written once an hour, because names that are confirmed are not old', async () => {
    const { sim, keeper, sync, written, writes, world } = setUp();
    keeper.start();
    sync();
    await sim.time.advance(3 * dayMs);
    expect(writes()).toBeGreaterThan(60);
    expect(writes()).toBeLessThan(75);
    expect(world.clock.wallMs() - (await written()).facts.asOfMs).toBeLessThan(3_700_000);
    await keeper.stop();
  });

  test('the home is away -> the copy says until when its names were known to be right', async () => {
    const { sim, keeper, sync, put, written, table, world } = setUp();
    keeper.start();
    sync();
    await sim.time.advance(10_000);
    const awaySinceMs = world.clock.wallMs();
    table.setStale(1, true);
    await sim.time.advance(dayMs);
    put(9);
    await keeper.stop();
    expect((await written()).last).toBe(9);
    expect(Math.abs((await written()).facts.asOfMs - awaySinceMs)).toBeLessThan(5000);
  });

  test('stopped -> the newest names are left behind', async () => {
    const { sim, keeper, sync, put, written } = setUp();
    keeper.start();
    sync();
    await sim.time.advance(5000);
    put(77);
    await keeper.stop();
    expect((await written()).last).toBe(77);
  });

  test('something has not been read, at any time -> the copy that is there stays', async () => {
    const { sim, keeper, world, table, put, writes } = setUp();
    await world.disk.write(path, Buffer.from('what an earlier one left'));
    keeper.start();
    table.setReady(0, true);
    put(1);
    await sim.time.advance(60_000);
    await keeper.stop();
    expect(writes()).toBe(0);
    expect(Buffer.from((await world.disk.read(path))!).toString()).toBe('what an earlier one left');
  });

  test('the disk is full -> said once, tried again, and said when it works', async () => {
    const { sim, keeper, sync, moods, warnings, writes, said } = setUp();
    moods.isDiskFull = true;
    keeper.start();
    sync();
    await sim.time.advance(300_000);
    expect(warnings()).toEqual([['names cannot be copied to disk', 'disk is full']]);
    moods.isDiskFull = false;
    await sim.time.advance(60_000);
    expect(writes()).toBe(1);
    expect(said.at(-1)!['msg']).toBe('names are copied to disk again');
    await keeper.stop();
  });
});

describe('copy of names: taking it up', () => {
  async function left() {
    const all = setUp();
    all.keeper.start();
    all.sync();
    await all.keeper.stop();
    return all;
  }
  const serves = (facts: { serve(table: NameTable, zones: readonly Zone[]): void } | undefined, zones: Zone[]) => {
    const table = new NameTable({ serial: 1 });
    facts?.serve(table, zones);
    const old = table.memory.old;
    return old ? new Int32Array(old.state)[1] : 'nothing';
  };

  test('of the same cluster and domains -> its zones are served', async () => {
    const { load, warnings, said } = await left();
    expect(serves(await load(), [clusterZone, clustersetZone])).toBe(3);
    expect(warnings()).toEqual([]);
    expect(said.at(-1)).toMatchObject({ zones: ['cluster.local', 'clusterset.local'], path });
  });

  test('there is none -> a cold start, and not a word', async () => {
    const { load, said } = setUp();
    expect(await load()).toBeUndefined();
    expect(said).toEqual([]);
  });

  test('another cluster -> not used', async () => {
    const { load, warnings } = await left();
    expect(await load({ owner: 'cluster east' })).toBeUndefined();
    const why = 'its names are those of cluster west, and this is cluster east';
    expect(warnings()).toEqual([['the copy of names on disk is not used', why]]);
  });

  test('another domain of the clusterset -> not used, for the cluster domain neither', async () => {
    const { load, warnings } = await left();
    const other = makeZone(1, { name: 'set.example', source: 'imports' });
    expect(serves(await load(), [clusterZone, other])).toBe('nothing');
    const why = 'its names end in clusterset.local, and here in set.example';
    expect(warnings()).toEqual([['the copy of names on disk is not used', why]]);
  });

  test('a zone that it does not have, or had under another name -> the others are served', async () => {
    const { load } = await left();
    const federation = makeZone(2, { name: 'federation', source: 'federation' });
    expect(serves(await load(), [clusterZone, clustersetZone, federation])).toBe(3);
  });

  test('older than allowed -> not used; the clock was set back by more -> neither', async () => {
    const { sim, load, warnings } = await left();
    await sim.time.advance(dayMs - 1000);
    expect(await load()).toBeDefined();
    await sim.time.advance(2000);
    expect(await load()).toBeUndefined();
    expect(warnings()[0]).toEqual([
      'the copy of names on disk is not used',
      'it is 24.0 h old, and up to 24.0 h is allowed',
    ]);
    expect(await load({ world: sim.world('dns', { wallSkewMs: -2 * dayMs }) })).toBeDefined();
    expect(await load({ world: sim.world('dns', { wallSkewMs: -3 * dayMs }) })).toBeUndefined();
  });

  test('damaged at every 1000th byte, or cut off there -> not used, and the log says so', async () => {
    const { load, world, warnings } = await left();
    const file = Buffer.from((await world.disk.read(path))!);
    let tries = 0;
    for (let at = 0; at < file.length; at += 1000) {
      const damaged = Buffer.from(file);
      damaged[at]! ^= 1;
      for (const content of [damaged, file.subarray(0, at)]) {
        await world.disk.write(path, content);
        expect(await load(), `at ${at}`).toBeUndefined();
        tries += 1;
      }
    }
    expect(tries).toBeGreaterThan(10);
    expect(warnings()).toHaveLength(tries);
    await world.disk.write(path, file);
    expect(await load()).toBeDefined();
  });

  test('the file cannot be read -> a cold start, and the log says why', async () => {
    const { load, world, warnings } = await left();
    const disk = { ...world.disk, read: () => Promise.reject(new Error('read state/names: EACCES')) };
    expect(await load({ world: { ...world, disk } })).toBeUndefined();
    expect(warnings()).toEqual([['the copy of names on disk is not used', 'read state/names: EACCES']]);
  });
});

test('copy of names: what it says of itself can be read by a person', async () => {
  const { keeper, sync, world } = setUp();
  keeper.start();
  sync();
  await keeper.stop();
  const text = Buffer.from((await world.disk.read(path))!).toString('latin1');
  expect(text).toMatch(/^portolan names\n\n/);
  const facts: Pick<CopyFacts, 'owner'> = { owner: 'cluster west' };
  expect(text).toContain(JSON.stringify(facts).slice(0, -1));
});
