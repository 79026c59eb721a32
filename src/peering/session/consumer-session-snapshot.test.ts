// The consumer's side: services that an owner no longer names, by the end of its snapshot or by its silence.

import { expect, test } from 'vitest';
import { codes } from '../../base/grpc/status.ts';
import { end, hashOf, open, upsert } from '../testing/consumer-session.ts';
import { exclusiveOr, type ReceivedMessage } from './messages.ts';

test('consumer, foreign owner: a message that does not say what it is about -> nothing is removed for not being named', () => {
  const { take, tick } = open({ holds: ['a', 'b'] });
  expect(take(upsert('n1', 'a'))).toEqual(['confirmed a', 'ack n1']);
  take({ kind: 'unreadable', nonce: 'n2', id: '', reason: 'too long' });
  expect(tick(4000)).toEqual(['held back for 1']);
  expect(tick(100_000)).toEqual([]);
});

test('consumer, exact: a message that does not say what it is about -> the end is refused for it, nothing is removed', () => {
  const { take, tick } = open({ holds: ['a', 'b', 'c'], isExact: true });
  take(upsert('n1', 'a'));
  take({ kind: 'unreadable', nonce: 'n2', id: '', reason: 'too long' });
  expect(take(end('n3', ['a'], { count: 2 }))).toEqual([
    'nack n3 9 1 messages of the snapshot could not be read: nothing is removed for what it does not name',
  ]);
  expect(tick(4000)).toEqual(['held back for 1']);
  expect(tick(100_000)).toEqual([]);
});

test('consumer: exact snapshot -> what was not mentioned goes at its end, not before', () => {
  const { take, stored, tick } = open({ holds: ['a', 'b', 'gone'], isExact: true });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  expect(tick(1_000_000)).toEqual([]);
  expect(take(end('n3', ['a', 'b']))).toEqual(['remove gone as 1']);
  expect(stored(1)).toEqual(['reconciled exact, 1 gone', 'ack n3']);
});

test('consumer: exact snapshot, its services still on their way to the disk -> its end is acknowledged after them', () => {
  const { take, stored } = open({ isExact: true });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  expect(take(end('n3', ['a', 'b']))).toEqual([]);
  expect(stored(2)).toEqual(['ack n2']);
  expect(stored(1)).toEqual(['ack n1', 'reconciled exact, 0 gone', 'ack n3']);
});

test('consumer: exact snapshot, a refused service -> counts as mentioned and stays', () => {
  const { take, session } = open({ holds: ['a'], isExact: true });
  const bad = { san: '' };
  take(upsert('n1', 'a', bad));
  const message = end('n2', []) as Extract<ReceivedMessage, { kind: 'snapshotEnd' }>;
  const digest = new Uint8Array(32);
  exclusiveOr(digest, hashOf('a', bad));
  expect(take({ ...message, end: { ...message.end, count: 1, digest } })).toEqual([
    'reconciled exact, 0 gone',
    'ack n2',
  ]);
  expect(session.state.kind).toBe('waiting');
});

test.each([
  { name: 'a count that does not match', message: end('n2', ['a'], { count: 2 }) },
  { name: 'another content', message: end('n2', ['b']) },
  { name: 'an older revision of the same epoch', message: end('n2', ['a'], { revision: 4 }) },
])('consumer: the end of the snapshot has $name -> nothing goes', ({ message }) => {
  const { take } = open({
    holds: ['a', 'x'],
    isExact: true,
    lastEnd: { epoch: 'e', revision: 5, count: 1, digest: new Uint8Array(32) },
  });
  take(upsert('n1', 'a'));
  expect(take(message)).toEqual([expect.stringContaining(`nack n2 ${codes.failedPrecondition}`)]);
});

test('consumer: a foreign owner falls silent -> unconfirmed entries are suspect, and go after the grace', () => {
  const { session, take, stored, tick } = open({ holds: ['a', 'gone'] });
  take(upsert('n1', 'a'), 100);
  expect(tick(3000)).toEqual([]);
  expect(session.suspects).toBe(0);
  expect(tick(3100)).toEqual(['suspect gone']);
  expect(session.suspects).toBe(1);
  expect(tick(63_000)).toEqual([]);
  expect(tick(63_100)).toEqual(['remove gone as 1']);
  expect(stored(1)).toEqual(['reconciled quiescence, 1 gone']);
});

test('consumer: a slow foreign owner -> silence is measured against the gaps it was seen to make', () => {
  const { take, tick } = open({ holds: ['a', 'b', 'c'] });
  take(upsert('n1', 'a'), 0);
  take(upsert('n2', 'b'), 1000);
  expect(tick(20_999)).toEqual([]);
  expect(tick(21_000)).toEqual(['suspect c']);
});

test('consumer: silence, and no sign of life since -> asked for one, once; nothing is concluded before it comes', () => {
  const { take, tick } = open({ holds: ['a', 'gone'] });
  take(upsert('n1', 'a'), 100);
  expect(tick(3_000, 100)).toEqual([]);
  expect([tick(4_000, 100), tick(100_000, 100)]).toEqual([['probe'], []]);
  take(upsert('n2', 'a'), 100_000);
  expect(tick(2_100_000, 100_000)).toEqual(['probe']);
  expect(tick(2_101_000, 2_100_001)).toEqual(['suspect gone']);
});

test('consumer: a suspect is mentioned during the grace -> it stays', () => {
  const { take, tick } = open({ holds: ['a', 'late'] });
  take(upsert('n1', 'a'), 0);
  tick(3000);
  expect(take(upsert('n2', 'late'), 4000)).toEqual(['confirmed late', 'ack n2']);
  expect(tick(84_000)).toEqual(['reconciled quiescence, 0 gone']);
});

test('consumer: our write takes longer than the silence -> the owner, which waits for our answer, is not done', () => {
  const { take, stored, tick } = open({ holds: ['a', 'b'] });
  take(upsert('n1', 'a'), 0);
  take(upsert('n2', 'new'), 100);
  expect(tick(10_000)).toEqual([]);
  stored(1);
  expect(tick(10_101)).toEqual([]);
  expect(tick(12_999)).toEqual([]);
  expect(tick(13_000)).toEqual(['suspect b']);
});

test('consumer: the last sign of life is older than our answer -> asked for one before anything is concluded', () => {
  const { take, stored, tick } = open({ holds: ['a', 'b'] });
  take(upsert('n1', 'a'), 0);
  take(upsert('n2', 'new'), 100);
  expect(tick(10_000, 9_000)).toEqual([]);
  stored(1, 10_000);
  expect(tick(13_000, 9_000)).toEqual(['probe']);
  expect(tick(14_000, 13_500)).toEqual(['suspect b']);
});

test('consumer: a suspect is named again -> the catalog is still coming, and no other suspect goes before the next silence', () => {
  const { take, tick } = open({ holds: ['a', 'late', 'later'], suspectForMs: () => 59_000 });
  take(upsert('n1', 'a'), 0);
  tick(3000);
  take(upsert('n2', 'late'), 4000);
  expect(tick(5000)).toEqual([]);
  expect(take(upsert('n3', 'later'), 6000)).toEqual(['confirmed later', 'ack n3']);
});

test('consumer: the grace ends while an answer is due -> nothing goes before it was given', () => {
  const { take, stored, tick } = open({ holds: ['a', 'b'] });
  take(upsert('n1', 'a'), 0);
  expect(tick(3000)).toEqual(['suspect b']);
  take(upsert('n2', 'new'), 4000);
  expect(tick(63_000)).toEqual([]);
  stored(1);
  expect(tick(64_000)).toEqual(['remove b as 2']);
});

test('consumer: a foreign owner mentions nothing of what is held -> retention decides, nothing goes', () => {
  const { tick } = open({ holds: ['a', 'b'] });
  expect(tick(3000)).toEqual(['nothing confirmed']);
  expect(tick(1_000_000)).toEqual([]);
});

test('consumer: a foreign owner names only services that are new -> nothing of what is held goes', () => {
  const { take, stored, tick } = open({ holds: ['a', 'b'] });
  take(upsert('n1', 'new'), 0);
  stored(1);
  expect(tick(3000)).toEqual(['nothing confirmed']);
});

test('consumer: a foreign owner is slow to begin -> its catalog is awaited after all', () => {
  const { take, tick } = open({ holds: ['a', 'gone'] });
  expect(tick(3000)).toEqual(['nothing confirmed']);
  take(upsert('n1', 'a'), 5000);
  expect(tick(8000)).toEqual([]);
  expect(tick(105_000)).toEqual(['suspect gone']);
});

test('consumer: it is something else later -> a foreign owner is not answered twice, and hears it with its next message', () => {
  let note = '';
  const { take, stored, step } = open({ noteOf: () => note });
  take(upsert('1', 'a'));
  stored(1);
  note = 'contested';
  expect(step({ kind: 'noted', id: 'a' })).toEqual([]);
  expect(take(upsert('2', 'a'))).toEqual(['confirmed a', 'ack 2 but contested']);
});

test('consumer, exact: a service that is deleted during its own snapshot -> not part of what the end counts', () => {
  const { take, stored } = open({ isExact: true });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  stored(1);
  stored(2);
  take({ kind: 'delete', nonce: 'n3', id: 'b' });
  stored(3);
  expect(take(end('n4', ['a']))).toContain('ack n4');
});
