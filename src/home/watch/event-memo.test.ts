import { expect, test } from 'vitest';
import type { StoreEvent } from '../store/store.ts';
import { createEventMemo } from './event-memo.ts';

const eventAt = (revision: number) => ({ revision, key: `/registry/x/${revision}` }) as StoreEvent;

test('event memo: a quiet home, where each event is encoded among much else -> no kept line holds a block of the pool', () => {
  const memo = createEventMemo();
  const kept: Buffer[] = [];
  for (let revision = 1; revision <= 256; revision += 1) {
    const text = `event ${revision}`;
    kept.push(memo.bytes(eventAt(revision), 'json', () => Buffer.from(text)));
    // As much as a home that answers other requests takes out of the pool meanwhile.
    for (let other = 0; other < 20; other += 1) Buffer.allocUnsafe(4_000);
  }
  const heldBytes = new Map(kept.map(({ buffer }) => [buffer, buffer.byteLength]));
  expect([...heldBytes.values()].reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(256 * 100);
  expect(kept.at(-1)?.toString()).toBe('event 256');
});

test('event memo: the same event and form -> made once, the same bytes', () => {
  const memo = createEventMemo();
  const event = eventAt(1);
  let made = 0;
  const make = () => Buffer.from(`made ${++made}`);
  expect(memo.bytes(event, 'json', make)).toBe(memo.bytes(event, 'json', make));
  expect(memo.bytes(event, 'table', make).toString()).toBe('made 2');
});
