import { expect, test } from 'vitest';
import { CachedReply, isUsable, packReply, withRetry } from './cached-reply.ts';
import { failureOf, type Reply } from './reply.ts';

const plain: Reply = {
  ...failureOf(0, -1, ''),
  bytes: Uint8Array.from({ length: 80 }, (_, i) => 255 - i),
  recordsAt: 20,
  recordsEnd: 68,
  counts: [2, 1, 0],
  ttlOffsets: [6, 22, 38],
  ttlSeconds: 300,
  rotates: { count: 2, start: 0, bytesEach: 16 },
};

function packed(reply: Reply, storedMs = 5000.7, freshMs = 3000): CachedReply {
  return new CachedReply().read(packReply(reply, { storedMs, freshMs }));
}

function recordsOf({ text, recordsAt }: CachedReply): number[] {
  return [...Buffer.from(text.slice(recordsAt), 'latin1')];
}

test('cached reply: a reply -> all that it says, and the time it was stored', () => {
  const cached = packed(plain);
  expect(cached).toMatchObject({
    storedMs: 5000,
    freshUntilMs: 8000,
    retryMs: 8000,
    rcode: 0,
    ttlSeconds: 300,
    extendedError: -1,
    extendedText: '',
    answers: 2,
    authorities: 1,
    additionals: 0,
    rotateCount: 2,
    rotateStart: 0,
    rotateBytes: 16,
  });
  expect([0, 1, 2].map((record) => cached.ttlOffset(record))).toEqual([6, 22, 38]);
  expect(recordsOf(cached)).toEqual([...plain.bytes.subarray(20, 68)]);
});

test.each(['isTruncated', 'isAuthentic', 'isNegative'] as const)(
  'cached reply: %s -> alone among the flags',
  (flag) => {
    const { isTruncated, isAuthentic, isNegative } = packed({ ...plain, [flag]: true });
    const none = { isTruncated: false, isAuthentic: false, isNegative: false };
    expect({ isTruncated, isAuthentic, isNegative }).toEqual({ ...none, [flag]: true });
  },
);

test('cached reply: an extended error with words that are not ASCII -> the same words, and records behind them', () => {
  const cached = packed({ ...plain, rcode: 3841, extendedError: 0, extendedText: 'Zone für Zürich: 閉' });
  expect([cached.rcode, cached.extendedError, cached.extendedText]).toEqual([3841, 0, 'Zone für Zürich: 閉']);
  expect([cached.ttlOffset(2), recordsOf(cached)]).toEqual([38, [...plain.bytes.subarray(20, 68)]]);
});

test('cached reply: the largest message -> whole; a small one after it -> nothing of the large one', () => {
  const bytes = Uint8Array.from({ length: 65_535 }, (_, i) => i & 255);
  const large = packed({ ...plain, bytes, recordsAt: 17, recordsEnd: bytes.length });
  expect(Buffer.from(recordsOf(large)).equals(bytes.subarray(17))).toBe(true);
  expect(recordsOf(packed(plain))).toEqual([...plain.bytes.subarray(20, 68)]);
});

test('cached reply: stored long after the start, kept without end -> times stay right', () => {
  const storedMs = 400 * 86_400_000 + 0.25;
  const cached = packed({ ...plain, ttlSeconds: Number.POSITIVE_INFINITY }, storedMs, Number.POSITIVE_INFINITY);
  expect([cached.storedMs, cached.ttlSeconds]).toEqual([400 * 86_400_000, 0xffff_ffff]);
  expect(cached.freshUntilMs).toBeGreaterThan(storedMs + 40 * 86_400_000);
});

test('cached reply: TTL 0 -> not fresh, not even in the same millisecond', () => {
  expect(packed(plain, 5000.7, 0).freshUntilMs).toBeLessThan(5000.7);
});

test('cached reply: another try later -> only that time changes; usable until its end and a while', () => {
  const cached = packed(plain);
  const later = new CachedReply().read(withRetry(cached.text, 9500));
  expect([later.retryMs, later.freshUntilMs, later.storedMs]).toEqual([9500, 8000, 5000]);
  expect(recordsOf(later)).toEqual(recordsOf(cached));
  expect([8999, 9000].map((nowMs) => isUsable(cached.text, nowMs, 1000))).toEqual([true, false]);
});

test('cached reply: a copy -> stays when the first one reads another', () => {
  const cached = packed(plain);
  const copy = cached.copy();
  cached.read(packReply({ ...plain, rcode: 3 }, { storedMs: 1, freshMs: 1 }));
  expect([copy.rcode, copy.storedMs, cached.rcode]).toEqual([0, 5000, 3]);
});
