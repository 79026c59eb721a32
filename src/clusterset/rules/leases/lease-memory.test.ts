import { describe, expect, test } from 'vitest';
import {
  describeLease,
  formatLeaseMemory,
  parseLeaseMemory,
  recallLease,
  rememberLease,
  whyNotTrusted,
} from './lease-memory.ts';

const held = { verdict: 'stale', returns: 2, token: 'u/7', heldMs: 60_000 } as const;

describe('lease memory', () => {
  test('lease memory: alive and never away -> nothing to remember', () => {
    expect(
      rememberLease({ verdict: 'alive', returns: 0, token: 'u/1', heldMs: undefined }, undefined, 0),
    ).toBeUndefined();
  });

  test('lease memory: held down, renewed again and again -> the same memory, with the time it ends', () => {
    const first = rememberLease(held, undefined, 0)!;
    expect(first).toEqual({
      verdict: 'stale',
      since: '1970-01-01T00:00:00Z',
      returns: 2,
      heldUntil: '1970-01-01T00:01:00Z',
    });
    expect(rememberLease({ ...held, token: 'u/8', heldMs: 50_000 }, first, 10_000)).toBe(first);
  });

  test('lease memory: stale, then held down -> stale since the same time', () => {
    const stale = rememberLease({ verdict: 'stale', returns: 1, token: 'u/6', heldMs: undefined }, undefined, 0)!;
    expect(stale).toMatchObject({ token: 'u/6', since: '1970-01-01T00:00:00Z' });
    expect(rememberLease(held, stale, 5_000)).toMatchObject({ since: '1970-01-01T00:00:00Z', returns: 2 });
  });

  test('lease memory: recalled -> what is left of the hold-down, never more than the longest there is', () => {
    const memory = parseLeaseMemory(formatLeaseMemory(rememberLease(held, undefined, 0)!))!;
    const recall = (wallMs: number) => recallLease(memory, { wallMs, holdDownMsMax: 600_000 }).heldMs;
    expect(recall(20_000)).toBe(40_000);
    expect(recall(90_000)).toBe(0);
    expect(recall(-3_600_000)).toBe(600_000);
  });

  test('lease memory: text that makes no sense -> nothing', () => {
    for (const text of ['', 'uid/17', '{}', '{"verdict":"dead","since":"x","returns":1}', 'null'])
      expect(parseLeaseMemory(text)).toBeUndefined();
  });

  test('lease memory: its home is away, renewed again and again -> the same memory, which says why; over -> another', () => {
    const since = '2026-01-01T00:00:00Z';
    const away = { verdict: 'stale', returns: 1, token: 'u/6', heldMs: undefined, homeAwaySince: since } as const;
    const first = rememberLease(away, undefined, 0)!;
    expect(rememberLease({ ...away, token: 'u/7' }, first, 10_000)).toBe(first);
    const read = parseLeaseMemory(formatLeaseMemory(first))!;
    expect(describeLease(read)).toBe(`stale since 1970-01-01T00:00:00Z, its home away since ${since}`);
    expect(whyNotTrusted(read)).toBe(`its agent has had no answer from its home since ${since}`);
    expect(recallLease(read, { wallMs: 0, holdDownMsMax: 1 }).homeAwaySince).toBe(since);
    expect(rememberLease({ ...away, homeAwaySince: undefined }, first, 0)).toMatchObject({ token: 'u/6' });
  });
});
