import { expect, test } from 'vitest';
import { createLog } from '../../base/log.ts';
import { OverlapLog } from './overlap-log.ts';

function start() {
  let nowMs = 0;
  const lines: string[] = [];
  const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs };
  const log = createLog({ level: 'warn', clock, write: (line) => void lines.push(line) });
  return { overlaps: new OverlapLog(log, { clock }), lines, pass: (ms: number) => (nowMs += ms) };
}

test('overlap log: one overlap, said of both services and again -> one line; over and back -> another', () => {
  const { overlaps, lines } = start();
  for (const key of ['a', 'b', 'a', 'b']) overlaps.set(key, ['a and b overlap']);
  expect(lines).toHaveLength(1);
  overlaps.set('a', []);
  overlaps.set('b', ['a and b overlap']);
  expect(lines).toHaveLength(1);
  overlaps.set('b', []);
  overlaps.set('a', ['a and b overlap']);
  expect(lines).toHaveLength(2);
});

test('overlap log: more than somebody would read -> twenty in a minute, and the number of the others', () => {
  const { overlaps, lines, pass } = start();
  for (let i = 0; i < 1000; i += 1) overlaps.set(`s${i}`, [`overlap ${i}`]);
  expect(lines).toHaveLength(20);
  pass(60_000);
  overlaps.set('late', ['a late one']);
  expect(lines.at(-1)).toContain('980');
});
