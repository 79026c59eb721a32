// The consumer's side: what one peer may make it keep and say.

import { expect, test } from 'vitest';
import { codes } from '../../base/grpc/status.ts';
import { hashOf, open, upsert } from '../testing/consumer-session.ts';
import { exclusiveOr, type ReceivedMessage } from './messages.ts';

test('consumer: more services than a peer may share -> the rest is refused as ResourceExhausted, without an object; its end still counts', () => {
  const { take, stored, session, step } = open({ holds: ['a', 'gone'], isExact: true, servicesMax: 3 });
  expect(take(upsert('n1', 'a'))).toEqual(['confirmed a', 'ack n1']);
  expect(take(upsert('n2', 'b'))).toEqual(['store b as 1']);
  const reason = 'services: Too many: 3 of this peer are kept here at most';
  expect(take(upsert('n3', 'c'))).toEqual([`refused c: ${reason}`, `nack n3 ${codes.resourceExhausted} ${reason}`]);
  const message = { ...upsert('n4', 'd', { san: 'bad' }), hash: hashOf('d', { san: 'bad' }) } as ReceivedMessage & {
    hash: Uint8Array;
  };
  const [refused] = session.step({ kind: 'message', nowMs: 0, message });
  expect(refused).toMatchObject({ kind: 'refused', id: 'd', isOverLimit: true });
  expect(stored(1)).toEqual(['ack n2']);
  const digest = new Uint8Array(32);
  for (const hash of [hashOf('a'), hashOf('b'), hashOf('c'), message.hash]) exclusiveOr(digest, hash);
  const last = { kind: 'snapshotEnd', nonce: 'n6', end: { epoch: 'e', revision: 5, count: 4, digest } } as const;
  expect(step({ kind: 'message', nowMs: 0, message: last })).toEqual(['remove gone as 2']);
  expect(take(upsert('n7', 'c'))).toEqual(['store c as 3']);
});

test('consumer: more bytes than may be kept of one peer -> the rest refused as ResourceExhausted, smaller forms taken', () => {
  const { take, stored } = open({ bytesMax: 3000 });
  const large = { description: 'x'.repeat(1000) };
  expect(take(upsert('n1', 'a', large))).toEqual(['store a as 1']);
  expect(take(upsert('n2', 'b', large))).toEqual(['store b as 2']);
  const reason = "services: Too many: 3000 bytes of this peer's services are kept here at most";
  expect(take(upsert('n3', 'c', large))).toEqual([
    `refused c: ${reason}`,
    `nack n3 ${codes.resourceExhausted} ${reason}`,
  ]);
  stored(1);
  stored(2);
  expect(take(upsert('n4', 'a'))).toEqual(['store a as 3']);
  stored(3);
  expect(take(upsert('n5', 'c', large))).toEqual(['store c as 4']);
});

test('consumer: services without end, all of them bad or unwanted -> what is remembered of them is bounded', () => {
  const { take, session } = open({ servicesMax: 10, accepts: ({ tags }) => !tags.includes('unwanted') });
  for (let n = 0; n < 1000; n += 1) {
    take(upsert(`n${n}`, `s${n}`, { san: 'bad' }));
    take(upsert(`m${n}`, `t${n}`, { tags: ['unwanted'] }));
  }
  expect(session.remembered).toBeLessThanOrEqual(20);
});

test('consumer: ten thousand faults in one service -> a short reason, which says how many more there are', () => {
  const { take } = open();
  const endpoints = Array.from({ length: 10_000 }, () => ({ address: '192.0.2.1', port: 0 }));
  const [refused, nack] = take(upsert('n1', 'a', { endpoints, san: 'x'.repeat(1_000_000) }));
  expect(refused).toMatch(/^refused a: san: Invalid value: "x+…; endpoints\[0\]\.port: .*; and 99\d\d more$/);
  for (const text of [refused, nack]) expect(text?.length).toBeLessThan(1100);
});

test('consumer: a peer that floods -> InvalidArgument', () => {
  const { take } = open({ pendingMax: 2 });
  take(upsert('n1', 'a'));
  take(upsert('n2', 'b'));
  expect(take(upsert('n3', 'c'))[0]).toContain(`close ${codes.invalidArgument}`);
});

test('consumer: a service still on its way to the disk is offered larger -> its bytes count once', () => {
  const { hash: _hash, bytes } = upsert('n1', 'a') as Extract<ReceivedMessage, { kind: 'upsert' }>;
  const { take } = open({ bytesMax: 2 * bytes + 50 });
  take(upsert('n1', 'a'));
  expect(take(upsert('n2', 'a', { description: 'longer' }))).toEqual(['store a as 2']);
  expect(take(upsert('n3', 'b'))).toEqual(['store b as 3']);
});

test('consumer: on the way to the disk -> counted with its bytes until it is there; a removal has none', () => {
  const { session, take, stored } = open({ holds: ['b'] });
  const [first, second] = [upsert('n1', 'a'), upsert('n2', 'c')] as Extract<ReceivedMessage, { kind: 'upsert' }>[];
  take(first!);
  take(second!);
  take({ kind: 'delete', nonce: 'n3', id: 'b' });
  const counts = () => [session.unacknowledged, session.unacknowledgedBytes];
  expect(counts()).toEqual([3, first!.bytes + second!.bytes]);
  stored(1);
  expect(counts()).toEqual([2, second!.bytes]);
  stored(3);
  stored(2);
  expect(counts()).toEqual([0, 0]);
});

test('consumer: a removed service -> its place and its bytes are free for another, to the last byte', () => {
  const { bytes } = upsert('n', 'a') as Extract<ReceivedMessage, { kind: 'upsert' }>;
  const { take, stored } = open({ bytesMax: bytes, servicesMax: 1 });
  expect(take(upsert('n1', 'a'))).toEqual(['store a as 1']);
  stored(1);
  expect(take(upsert('n2', 'b'))[1]).toContain(`nack n2 ${codes.resourceExhausted}`);
  expect(take({ kind: 'delete', nonce: 'n3', id: 'a' })).toEqual(['remove a as 2']);
  stored(2);
  expect(take(upsert('n4', 'b'))).toEqual(['store b as 3']);
});

test('consumer: a refused service -> its note takes a place, until it is good or deleted', () => {
  const { take, stored } = open({ servicesMax: 2 });
  take(upsert('n1', 'bad', { san: 'bad' }));
  expect(take(upsert('n2', 'a'))).toEqual(['store a as 1']);
  stored(1);
  expect(take(upsert('n3', 'b'))[1]).toContain(`nack n3 ${codes.resourceExhausted}`);
  expect(take(upsert('n4', 'bad'))).toEqual(['store bad as 2']);
  stored(2);
  expect(take({ kind: 'delete', nonce: 'n5', id: 'bad' })).toEqual(['remove bad as 3']);
  stored(3);
  expect(take(upsert('n6', 'b'))).toEqual(['store b as 4']);
});

test('consumer: a held service is refused in a new form while there is no room -> refused for its form, not for room', () => {
  const { session } = open({ holds: ['a'], servicesMax: 1 });
  const [refused] = session.step({ kind: 'message', nowMs: 0, message: upsert('n1', 'a', { san: 'bad' }) });
  expect(refused).toMatchObject({ kind: 'named', id: 'a' });
  const [, again] = session.step({ kind: 'message', nowMs: 0, message: upsert('n2', 'a', { san: 'bad' }) });
  expect(again).toMatchObject({ kind: 'refused', id: 'a' });
  expect(again).not.toHaveProperty('isOverLimit');
});

test('consumer: an unreadable message without an id, or with one that is too long -> no place is taken for a note', () => {
  const { take } = open({ servicesMax: 1 });
  for (const id of ['', 'x'.repeat(10_000)]) take({ kind: 'unreadable', nonce: 'n1', id, reason: 'torn' });
  expect(take(upsert('n2', 'a'))).toEqual(['store a as 1']);
});
