import { expect, test } from 'vitest';
import { RowStore } from './row-store.ts';
import type { SkipRow } from './wire/rows.ts';

const row = (why: string): SkipRow => ({ cluster: 'east', why, codes: [] });

test('rows: the same again, another, gone -> only what differs is sent, and a snapshot has what is left', () => {
  const rows = new RowStore();
  rows.put('skipped', 'a', row('one'));
  expect(JSON.parse(rows.takeChanges()!)).toEqual({ skipped: { a: row('one') } });
  rows.put('skipped', 'a', row('one'));
  expect(rows.takeChanges()).toBeUndefined();
  rows.replace('skipped', [['b', row('two')]]);
  expect(JSON.parse(rows.takeChanges()!)).toEqual({ skipped: { a: null, b: row('two') } });
  expect(JSON.parse(rows.snapshot()).skipped).toEqual({ b: row('two') });
});
