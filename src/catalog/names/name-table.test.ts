// Empty non-terminals: names that exist because something lies below them.

import { expect, test } from 'vitest';
import { recordType } from '../../base/dns/codes.ts';
import { order, plainRecord, zoneMark } from './answers.ts';
import { NameTable } from './name-table.ts';
import { makeZone } from './zones.ts';

const zone = makeZone(3, { name: 'peers.local', source: 'peers' });
const sets = [{ type: recordType.A, order: order.fixed, records: [plainRecord(new Uint8Array([10, 0, 0, 1]))] }];

function namesOf(table: NameTable): string[] {
  const names = ['a.b.c.peers.local', 'b.c.peers.local', 'c.peers.local', 'peers.local', 'local'];
  return names.filter((name) => table.has(name));
}

test('name table: two names below one -> it exists until both are released', () => {
  const table = new NameTable({ serial: 1 });
  table.hold('a.b.c.peers.local', zone);
  table.hold('z.c.peers.local', zone);
  expect(namesOf(table)).toEqual(['b.c.peers.local', 'c.peers.local']);
  expect(table.get('c.peers.local')).toEqual({ zone: 3, sets: [] });
  table.release('a.b.c.peers.local', zone);
  expect(namesOf(table)).toEqual(['c.peers.local']);
  table.release('z.c.peers.local', zone);
  expect(namesOf(table)).toEqual([]);
});

test.each([
  ['before', true],
  ['after', false],
])('name table: a name with records, written %s a name below it -> each goes by itself', (_when, isFirst) => {
  const table = new NameTable({ serial: 1 });
  if (isFirst) table.put('c.peers.local', zone.id | zoneMark.old, sets);
  table.hold('b.c.peers.local', zone);
  if (!isFirst) table.putIfOther('c.peers.local', zone.id | zoneMark.old, sets);
  expect(table.get('c.peers.local')?.sets).toHaveLength(1);
  table.remove('c.peers.local');
  expect(table.get('c.peers.local')).toEqual({ zone: 3, sets: [] });
  table.put('c.peers.local', zone.id, sets);
  table.release('b.c.peers.local', zone);
  expect(table.get('c.peers.local')?.sets).toHaveLength(1);
  table.remove('c.peers.local');
  expect(namesOf(table)).toEqual([]);
});

test('name table: a name outside the zone -> nothing above it exists', () => {
  const table = new NameTable({ serial: 1 });
  table.hold('checkout.shop.example', zone);
  table.hold('peers.local', zone);
  expect([...table.nameKeys()]).toEqual([]);
});
