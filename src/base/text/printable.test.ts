import { expect, test } from 'vitest';
import { createLog } from '../log.ts';
import { printable, printableLine } from './printable.ts';

test.each([
  ['a title of the terminal', 'a\x1b]0;owned\x07b', 'a\\u001b]0;owned\\u0007b'],
  ['a colour in eight bits', 'a\x9b31mb', 'a\\u009b31mb'],
  ['a return to the beginning of the line', 'bad\rgood', 'bad\\u000dgood'],
  ['an order of reading turned around', 'a\u202eb\u2066', 'a\\u202eb\\u2066'],
  ['other languages, lines and tabs', 'é 港\n\tok', 'é 港\n\tok'],
])('printable: %s -> cannot act', (_what, text, shown) => expect(printable(text)).toBe(shown));

test('printable line: a line end in a cell -> no row of its own', () => {
  expect(printableLine('down\nweb  up')).toBe('down\\u000aweb  up');
});

test('log: eight-bit control characters in a field -> escaped, still the same JSON', () => {
  let line = '';
  const log = createLog({
    clock: { wallMs: () => 0, monotonicMs: () => 0 },
    level: 'info',
    write: (text) => (line = text),
  });
  log.info('refused', { reason: 'a\x9b31m\x1b[2Jb' });
  expect(line).not.toMatch(/[\p{Cc}--\n]/v);
  expect(JSON.parse(line).reason).toBe('a\x9b31m\x1b[2Jb');
});
