// The file in which names outlive their server: read back as it was, and never by halves.

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { recordType } from '../../base/dns/codes.ts';
import { encodeName } from '../../base/dns/name.ts';
import { order, plainRecord } from '../names/answers.ts';
import { NameTable, stateWord } from '../names/name-table.ts';
import { PackedReader } from '../packed/packed-map.ts';
import { PlacesReader } from '../packed/places.ts';
import { type CopyFacts, copyPieces, readCopy } from './name-copy.ts';

const facts: CopyFacts = {
  owner: 'cluster west',
  zones: [{ id: 1, name: 'clusterset.local', source: 'imports', isRead: true }],
  asOfMs: 1_700_000_000_000,
};

function put(table: NameTable, name: string, last: number): void {
  const records = [plainRecord(Uint8Array.of(10, 0, 0, last), table.places.ordinalOf('east'))];
  table.put(name, 1, [{ type: recordType.A, order: order.localFirst, records }]);
}

function makeTable(count: number): NameTable {
  const table = new NameTable({ serial: 7 });
  table.places.place({ id: 'west', zone: 'b', region: 'eu' });
  for (let i = 0; i < count; i++) put(table, `svc-${i}.shop.svc.clusterset.local`, i & 255);
  return table;
}

const fileOf = (table: NameTable) =>
  Buffer.concat(Array.from(copyPieces(table.snapshot(), facts), (piece) => Buffer.from(piece)));

function memoryOf(file: Uint8Array) {
  const read = readCopy(file);
  if (read.kind === 'unusable') throw new Error(read.why);
  return read.memoryFor([1]);
}

describe('copy of names', () => {
  test('written and read -> the same names, places and serial; its zones are stale and none is ready', () => {
    const table = makeTable(3000);
    table.remove('svc-7.shop.svc.clusterset.local');
    put(table, 'svc-8.shop.svc.clusterset.local', 99);
    const memory = memoryOf(fileOf(table));
    const names = new PackedReader(memory.names);
    for (let i = 0; i < 3000; i++) {
      const key = encodeName(`svc-${i}.shop.svc.clusterset.local`);
      expect(names.get(key)?.at(-1)).toBe(i === 7 ? undefined : i === 8 ? 99 : i & 255);
    }
    const places = new PlacesReader(memory.places);
    expect(places.find('c', 'east')).toBe(2);
    expect(places.standAt(places.find('c', 'west'))).toEqual({ cluster: 1, zone: 1, region: 1 });
    const state = new Int32Array(memory.state);
    expect([state[stateWord.readyZones], state[stateWord.staleZones], state[stateWord.serial]]).toEqual([0, 2, 7]);
  });

  test('names change while it is written -> the copy is as things were when it began', () => {
    const table = makeTable(3000);
    const before = fileOf(table);
    const pieces: Buffer[] = [];
    for (const piece of copyPieces(table.snapshot(), facts)) {
      pieces.push(Buffer.from(piece));
      for (let i = 0; i < 3000; i++) put(table, `svc-${i}.shop.svc.clusterset.local`, 200);
      table.remove(`svc-${pieces.length}.shop.svc.clusterset.local`);
    }
    expect(Buffer.compare(Buffer.concat(pieces), before)).toBe(0);
  });

  test('a byte is damaged, anywhere -> not used', () => {
    const file = fileOf(makeTable(500));
    expect(readCopy(file).kind).toBe('copy');
    for (let at = 0; at < file.length; at += at < 1000 ? 1 : 101) {
      file[at]! ^= 0x10;
      expect(readCopy(file).kind, `byte ${at}`).toBe('unusable');
      file[at]! ^= 0x10;
    }
    file[file.length - 1]! ^= 1;
    expect(readCopy(file)).toEqual({ kind: 'unusable', why: 'it is damaged or cut off' });
  });

  test('cut off, anywhere, or with something behind it -> not used', () => {
    const file = fileOf(makeTable(500));
    for (let length = 0; length < file.length; length += 97)
      expect(readCopy(file.subarray(0, length)).kind, `${length} bytes`).toBe('unusable');
    expect(readCopy(Buffer.concat([file, Buffer.from('x')])).kind).toBe('unusable');
  });

  test('something else, or another format -> not used, and the reason says which', () => {
    expect(readCopy(Buffer.alloc(5000))).toEqual({ kind: 'unusable', why: 'it is no copy of names' });
    const file = fileOf(makeTable(1));
    file.writeUInt32LE(99, 16);
    expect(readCopy(file)).toEqual({ kind: 'unusable', why: 'its format is 99, and 4 is read here' });
  });

  test('the bytes mean what they meant -> whoever changes them raises copyVersion', () => {
    const digest = createHash('sha256')
      .update(fileOf(makeTable(2)))
      .digest('hex');
    expect(digest.slice(0, 16), 'packed-map, answers, places or name-copy: raise copyVersion, then this').toBe(
      '06778ec52c358fef',
    );
  });
});
