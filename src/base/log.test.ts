import { expect, test } from 'vitest';
import { createLog, errorText } from './log.ts';

const refused = (address: string) => new Error(`connect ECONNREFUSED ${address}`);

test.each([
  ['a message', new Error('no'), 'no'],
  ['a cause', new Error('read it', { cause: new Error('no') }), 'read it: no'],
  ['no message, but a cause', new Error('', { cause: new Error('no') }), 'no'],
  ['no message', new TypeError(''), 'TypeError'],
  ['no message, but a code', Object.assign(new Error(''), { code: 'EPIPE' }), 'EPIPE'],
  [
    'one error for each address',
    new AggregateError([refused('::1'), refused('127.0.0.1')]),
    'connect ECONNREFUSED ::1; connect ECONNREFUSED 127.0.0.1',
  ],
  [
    'such an error as the cause',
    new Error('ask it', { cause: new AggregateError([refused('::1')]) }),
    'ask it: connect ECONNREFUSED ::1',
  ],
  ['more than four of them', new AggregateError(Array.from('abcdef', (text) => new Error(text))), 'a; b; c; d'],
  ['a text', 'no', 'no'],
  ['an empty text', '', 'unknown error'],
])('text of an error with %s -> never empty', (_what, error, text) => expect(errorText(error)).toBe(text));

test('log: an error without a message as a field -> its reason all the same', () => {
  const lines: string[] = [];
  const clock = { wallMs: () => 0, monotonicMs: () => 0 };
  const log = createLog({ clock, level: 'info', write: (line) => void lines.push(line) });
  log.warn('the home does not answer', { error: new AggregateError([refused('::1')]) });
  expect(JSON.parse(lines[0]!)).toMatchObject({ error: 'connect ECONNREFUSED ::1' });
});
