import { expect, test } from 'vitest';
import { formatTable } from './table.ts';

test('table: a cell with line ends and escapes of a terminal -> one row, nothing that acts', () => {
  expect(formatTable(['NAME', 'MESSAGE'], [['web', 'down\nweb  up\x1b[2J']])).toEqual([
    'NAME  MESSAGE',
    'web   down\\u000aweb  up\\u001b[2J',
  ]);
});
