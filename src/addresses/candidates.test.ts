import { describe, expect, test } from 'vitest';
import { parseRange } from '../base/net/ip.ts';
import { addressIn, candidates } from './candidates.ts';

const owner = { kind: 'ServiceImport', namespace: 'shop', name: 'checkout' };
const ask = (range: string, more: { preferred?: string[]; taken?: string[] } = {}) =>
  candidates({
    owner,
    range: parseRange(range)!,
    preferred: more.preferred ?? [],
    isTaken: (address) => more.taken?.includes(address) ?? false,
  });

describe('candidates', () => {
  test('candidates: the same owner and range anywhere -> the same addresses in the same order', () => {
    const first = ask('243.0.0.0/12').take(64).toArray();
    expect(ask('243.0.0.0/12').take(64).toArray()).toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(60);
  });

  test('candidates: the first by hash -> sha256 of kind/namespace/name/0 modulo the usable addresses', () => {
    // Fixed once and for all: clusters of different versions must go on agreeing.
    expect(ask('243.0.0.0/12').next().value).toBe('243.1.149.125');
  });

  test('candidates: preferred ones -> first and in their order, but only those of the range', () => {
    const [first, second] = ask('243.0.0.0/12', { preferred: ['10.0.0.1', '243.1.1.1', 'nonsense', '243.2.2.2'] });
    expect([first, second]).toEqual(['243.1.1.1', '243.2.2.2']);
  });

  test('candidates: a small range -> every usable address comes, each once, the first and the last of the network never', () => {
    const all = [...ask('10.0.0.0/28')];
    expect(new Set(all).size).toBe(all.length);
    expect(all.toSorted((a, b) => Number(a.split('.')[3]) - Number(b.split('.')[3]))).toEqual(
      Array.from({ length: 14 }, (_, index) => `10.0.0.${index + 1}`),
    );
  });

  test('candidates: ranges of one and of two addresses -> all of them', () => {
    expect([...ask('10.0.0.7/32')]).toEqual(['10.0.0.7']);
    expect([...ask('10.0.0.6/31')].sort()).toEqual(['10.0.0.6', '10.0.0.7']);
  });

  test('candidates: the scan -> passes over what is known to be taken', () => {
    const hashed = new Set(ask('10.0.0.0/22').take(64));
    const taken = [...ask('10.0.0.0/22')].filter((address) => !hashed.has(address)).slice(0, 900);
    const scanned = [...ask('10.0.0.0/22', { taken })].filter((address) => !hashed.has(address));
    expect(scanned.some((address) => taken.includes(address))).toBe(false);
  });

  test('candidates: after 64 hashes -> every free address that is left, upwards from the first hash, round the end', () => {
    const all = [...ask('10.0.0.0/22')];
    const number = (address: string) => {
      const [, , third, fourth] = address.split('.').map(Number);
      return third! * 256 + fourth!;
    };
    const hashed = new Set(all.slice(0, 64 - (1022 - new Set(all).size)));
    expect(new Set(all).size).toBe(1022);
    expect(all).toHaveLength(1022);
    const start = number(all[0]!);
    const scanned = all.filter((address) => !hashed.has(address)).slice(-900);
    const distance = (address: string) => (number(address) - start + 1022) % 1022;
    expect(scanned).toEqual(scanned.toSorted((a, b) => distance(a) - distance(b)));
    const free = [...ask('10.0.0.0/22', { taken: scanned.slice(1) })];
    expect(free).toContain(scanned[0]);
    expect(free).toHaveLength(1022 - 899);
  });

  test('addressIn: the ends of a range -> all but the first and the last address of the network', () => {
    const range = parseRange('10.0.0.0/28')!;
    const ends = ['10.0.0.0', '10.0.0.1', '10.0.0.14', '10.0.0.15', '10.0.0.16'];
    expect(ends.map((text) => addressIn(range, text))).toEqual([
      undefined,
      '10.0.0.1',
      '10.0.0.14',
      undefined,
      undefined,
    ]);
  });

  test('candidates: a wide range -> 64 by hash, spread over it, then the neighbours of the first', () => {
    const all = ask('243.0.0.0/12').take(66).toArray();
    expect(all[0]).toBe('243.1.149.125');
    expect(all.slice(1, 64).filter((address) => address.startsWith('243.1.149.'))).toEqual([]);
    expect(all.slice(64)).toEqual(['243.1.149.126', '243.1.149.127']);
  });

  test('candidates: IPv6 -> addresses of the range in their canonical text', () => {
    const range = parseRange('fd70:6f72:74f3::/64')!;
    const [first] = ask('fd70:6f72:74f3::/64');
    expect(addressIn(range, first!)).toBe(first);
    expect(addressIn(range, 'FD70:6F72:74F3:0:0:0:0:5')).toBe('fd70:6f72:74f3::5');
    expect(addressIn(range, 'fd70:6f72:74f4::5')).toBeUndefined();
  });
});
