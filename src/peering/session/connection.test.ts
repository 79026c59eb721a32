import { expect, test } from 'vitest';
import { codes } from '../../base/grpc/status.ts';
import type { Random } from '../../base/world.ts';
import { Connection, type ConnectionOptions } from './connection.ts';

const random = { float: () => 0 } as unknown as Random;

function connection(changes: Partial<ConnectionOptions> = {}): Connection {
  return new Connection({ random, versions: ['v1alpha1', 'v1alpha2'], keepAliveMs: 10_000, ...changes });
}

const certificate = 'c1';
const closed = (code: (typeof codes)[keyof typeof codes], nowMs = 0, own: string | undefined = certificate) =>
  ({ kind: 'closed', nowMs, code, reason: 'why', certificate: own }) as const;

test('connection: the first step -> dials the first version', () => {
  const one = connection();
  expect(one.step({ kind: 'dial', certificate })).toEqual([{ kind: 'dial', version: 'v1alpha1', keepAliveMs: 10_000 }]);
  expect(one.state.kind).toBe('dialing');
});

test('connection: the owner does not know the version -> the next one; none left -> stopped', () => {
  const one = connection();
  one.step({ kind: 'dial', certificate });
  expect(one.step(closed(codes.unimplemented))).toMatchObject([{ kind: 'dial', version: 'v1alpha2' }]);
  expect(one.step(closed(codes.unimplemented))).toMatchObject([{ kind: 'stopped' }]);
  expect(one.step({ kind: 'retry', certificate })).toMatchObject([{ kind: 'dial', version: 'v1alpha1' }]);
});

test('connection: it fails again and again -> delays grow; one that lived for 30 s -> from the beginning', () => {
  const one = connection();
  one.step({ kind: 'dial', certificate });
  const delays = [1, 2, 3].map(() => (one.step(closed(codes.unavailable))[0] as { delayMs: number }).delayMs);
  expect(delays).toEqual([1000, 2000, 4000]);
  one.step({ kind: 'opened', nowMs: 100_000 });
  expect(one.step(closed(codes.unavailable, 129_000))).toMatchObject([{ delayMs: 8000 }]);
  one.step({ kind: 'opened', nowMs: 200_000 });
  expect(one.step(closed(codes.unavailable, 230_000))).toMatchObject([{ delayMs: 1000 }]);
});

test('connection: Unauthenticated for a certificate that was replaced meanwhile -> dialed at once, and only once', () => {
  const one = connection();
  one.step({ kind: 'dial', certificate });
  expect(one.step(closed(codes.unauthenticated, 0, 'c2'))).toMatchObject([{ kind: 'dial' }]);
  expect(one.step(closed(codes.unauthenticated, 0, 'c2'))).toMatchObject([{ kind: 'stopped' }]);
  expect(one.state).toMatchObject({ kind: 'stopped', code: codes.unauthenticated });
});

test('connection: Unauthenticated by an owner that may not have heard of us yet -> later; no longer new -> stopped', () => {
  const one = connection({ newUntilMs: 30_000 });
  one.step({ kind: 'dial', certificate });
  expect(one.step(closed(codes.unauthenticated, 29_000))).toMatchObject([{ kind: 'dialLater', delayMs: 1000 }]);
  expect(one.step(closed(codes.permissionDenied, 29_500))).toMatchObject([{ kind: 'stopped' }]);
  one.step({ kind: 'retry', certificate });
  expect(one.step(closed(codes.unauthenticated, 30_000))).toMatchObject([{ kind: 'stopped' }]);
});

test('connection: no certificate of our own, or no version -> stopped, and says so', () => {
  expect(connection().step({ kind: 'dial', certificate: undefined })).toMatchObject([{ kind: 'stopped' }]);
  expect(connection({ versions: [] }).step({ kind: 'dial', certificate })).toMatchObject([
    { reason: expect.stringContaining('versions') },
  ]);
});

test('connection: held back by configuration -> nothing is dialed', () => {
  const one = connection({ held: { kind: 'suspended', reason: 'suspended' } });
  expect(one.step({ kind: 'dial', certificate })).toEqual([]);
  expect(one.state.kind).toBe('suspended');
});

test('connection: the owner allows fewer pings -> 45 s, then five minutes, and it stays so', () => {
  const one = connection();
  const intervals = [1, 2, 3].map(() => {
    one.step({ ...closed(codes.unavailable), hadTooManyPings: true });
    return (one.step({ kind: 'dial', certificate })[0] as { keepAliveMs: number }).keepAliveMs;
  });
  expect(intervals).toEqual([45_000, 310_000, 620_000]);
  one.step({ kind: 'retry', certificate });
  expect(one.keepAliveMs).toBe(620_000);
});

test('connection: asked to try again -> delays from the beginning, and a stream of before does not count as open', () => {
  const one = connection();
  one.step({ kind: 'dial', certificate });
  for (let count = 0; count < 3; count += 1) one.step(closed(codes.unavailable));
  one.step({ kind: 'opened', nowMs: 100_000 });
  one.step({ kind: 'retry', certificate });
  expect(one.openedMs).toBeUndefined();
  expect(one.step(closed(codes.unavailable, 200_000))).toMatchObject([{ delayMs: 1000 }]);
});

test('connection: the catalog is complete -> delays from the beginning', () => {
  const one = connection();
  one.step({ kind: 'dial', certificate });
  for (let count = 0; count < 3; count += 1) one.step(closed(codes.unavailable));
  one.step({ kind: 'opened', nowMs: 0 });
  one.step({ kind: 'reconciled' });
  expect(one.step(closed(codes.unavailable, 1))).toMatchObject([{ delayMs: 1000 }]);
  expect(one.openedMs).toBeUndefined();
});

test('connection: Unauthenticated, and our own certificate is gone -> stopped; any other end with a new one -> later', () => {
  const [gone, other] = [connection(), connection()];
  for (const one of [gone, other]) one.step({ kind: 'dial', certificate });
  const withoutOne = { ...closed(codes.unauthenticated), certificate: undefined };
  expect(gone.step(withoutOne)).toMatchObject([{ kind: 'stopped', reason: 'why' }]);
  expect(other.step(closed(codes.unavailable, 0, 'c2'))).toMatchObject([{ kind: 'dialLater' }]);
});

test('connection: whether a stream has ended -> not at the start; after an end or a stop, yes', () => {
  const [ended, stopped] = [connection(), connection({ versions: [] })];
  expect([ended.hasFailed, stopped.hasFailed]).toEqual([false, false]);
  ended.step({ kind: 'dial', certificate });
  expect(ended.hasFailed).toBe(false);
  ended.step(closed(codes.unavailable));
  stopped.step({ kind: 'dial', certificate });
  expect([ended.hasFailed, stopped.hasFailed]).toEqual([true, true]);
});

test('connection: the session goes on -> its state is ours; closed is for the end of the stream to say', () => {
  const one = connection();
  one.step({ kind: 'session', state: 'updating' });
  one.step({ kind: 'session', state: 'closed' });
  expect(one.state.kind).toBe('updating');
});

test('connection: it ends for another reason than pings -> the next stream is asked for signs of life as often', () => {
  const one = connection();
  one.step(closed(codes.unavailable));
  expect(one.step({ kind: 'dial', certificate })).toMatchObject([{ keepAliveMs: 10_000 }]);
});
