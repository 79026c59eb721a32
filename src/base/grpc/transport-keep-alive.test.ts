// Keep-alive on a clock of the test: how long a dead connection can go unnoticed, at most.

import { EventEmitter } from 'node:events';
import type { Http2Session } from 'node:http2';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { keepAlive } from './transport-keep-alive.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The other side answers PINGs until it is dead. */
class FakeSession extends EventEmitter {
  destroyed = false;
  isDead = false;
  readonly socket = { bytesRead: 0 };
  pings = 0;

  ping(answer: (error: Error | null) => void): boolean {
    this.pings += 1;
    if (!this.isDead) answer(null);
    return true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

function start(intervalMs: number, answerMsMax?: number) {
  const session = new FakeSession();
  let alive = 0;
  keepAlive(session as unknown as Http2Session, { intervalMs, answerMsMax, onAlive: () => (alive += 1) });
  return { session, alive: () => alive };
}

test('keep-alive: an idle stream, its PINGs answered -> lives for a day, each answer a sign of life', () => {
  const { session, alive } = start(10_000);
  vi.advanceTimersByTime(24 * 3_600_000);
  expect(session.destroyed).toBe(false);
  expect(alive()).toBe(8640);
});

test.each([0, 1, 5000, 9999])('keep-alive: dead %i ms after a PING -> noticed within 30 s', (deadAfterMs) => {
  for (const intervalMs of [5000, 10_000, 15_000]) {
    const { session } = start(intervalMs);
    vi.advanceTimersByTime(3 * intervalMs + deadAfterMs);
    session.isDead = true;
    vi.advanceTimersByTime(2 * intervalMs);
    expect(session.destroyed).toBe(true);
    expect(2 * intervalMs).toBeLessThanOrEqual(30_000);
  }
});

test('keep-alive: a PING that waits behind much data -> the data is a sign of life too', () => {
  const { session } = start(10_000);
  session.isDead = true;
  for (let n = 0; n < 20; n += 1) {
    session.socket.bytesRead += 1000;
    vi.advanceTimersByTime(10_000);
  }
  expect(session.destroyed).toBe(false);
  vi.advanceTimersByTime(10_000);
  expect(session.destroyed).toBe(true);
});

test('keep-alive: the connection ended -> no more PINGs', () => {
  const { session } = start(10_000);
  session.destroy();
  vi.advanceTimersByTime(60_000);
  expect(session.pings).toBe(0);
});

test.each([0, 1, 5000, 9999])(
  'keep-alive: dead %i ms after a PING, 3 s for an answer -> noticed within 13 s',
  (deadAfterMs) => {
    const { session } = start(10_000, 3_000);
    vi.advanceTimersByTime(30_000 + deadAfterMs);
    session.isDead = true;
    vi.advanceTimersByTime(13_000);
    expect(session.destroyed).toBe(true);
  },
);

test('keep-alive: 3 s for an answer, PINGs answered or data meanwhile -> lives', () => {
  const { session } = start(10_000, 3_000);
  vi.advanceTimersByTime(3_600_000);
  session.isDead = true;
  for (let second = 0; second < 60; second += 1) {
    session.socket.bytesRead += 1000;
    vi.advanceTimersByTime(1_000);
  }
  expect(session.destroyed).toBe(false);
});
