import { expect, test } from 'vitest';
import { formatTraceparent, parseTraceparent } from './traceparent.ts';

const text = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

test('traceparent: what is written is read again', () => {
  expect(formatTraceparent(parseTraceparent(text)!)).toBe(text);
  expect(parseTraceparent(text.replace(/01$/, '00'))?.isSampled).toBe(false);
});

test.each([
  [undefined],
  [7],
  [''],
  [text.toUpperCase()],
  [`${text}-more`],
  [text.replace(/^00/, 'ff')],
  [text.replace('4bf92f3577b34da6a3ce929d0e0e4736', '0'.repeat(32))],
  [text.replace('00f067aa0ba902b7', '0'.repeat(16))],
  [`${text}\n`],
])('traceparent: %j -> none', (wrong) => {
  expect(parseTraceparent(wrong)).toBeUndefined();
});
