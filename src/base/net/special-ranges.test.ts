import { describe, expect, test } from 'vitest';
import { formatIp, parseIp, parseRange } from './ip.ts';
import { refusedRange, refusedWithin, specialRanges, unmappedIp } from './special-ranges.ts';

const refusal = (address: string) => refusedRange(parseIp(address)!)?.what;

describe('special ranges', () => {
  for (const { text, range, what, verdict } of specialRanges.filter((one) => one.verdict !== 'embedded')) {
    test(`special ranges: first and last address of ${text} (${what}) -> ${verdict}, unless a smaller range says otherwise`, () => {
      for (const value of [range.first, range.first + range.size - 1n]) {
        const ip = { family: range.family, value };
        const smaller = specialRanges.find(
          (one) => one.range.size < range.size && isIn(value, one.range, range.family),
        );
        const outcome = smaller === undefined ? (verdict === 'refused' ? what : undefined) : refusal(formatIp(ip));
        expect(refusal(formatIp(ip))).toBe(outcome);
      }
    });
  }

  const table: [string, string | undefined][] = [
    ['10.1.2.3', undefined],
    ['8.8.8.8', undefined],
    ['243.0.0.7', undefined],
    ['127.0.0.1', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['168.63.129.16', 'cloud metadata'],
    ['168.63.129.17', undefined],
    ['255.255.255.255', 'broadcast'],
    ['239.255.255.255', 'multicast'],
    ['192.0.0.192', 'protocol assignment'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['::7f00:1', 'IPv4-compatible'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:10.0.0.1', undefined],
    ['64:ff9b::a9fe:a9fe', 'link-local'],
    ['64:ff9b::808:808', undefined],
    ['2002:a9fe:a9fe::1', 'link-local'],
    ['2002:808:808::1', undefined],
    ['2001:0:53aa::1', 'protocol assignment'],
    ['2001:db8::1', undefined],
    ['2a00:1450::1', undefined],
    ['fd00:ec2::254', 'cloud metadata'],
    ['fd12::1', undefined],
    ['fe80::1', 'link-local'],
    ['fec0::1', 'site-local'],
    ['ff02::1', 'multicast'],
  ];
  for (const [address, what] of table) {
    test(`special ranges: ${address} -> ${what ?? 'ordinary'}`, () => expect(refusal(address)).toBe(what));
  }

  test('special ranges: a range that holds one -> named; one beside them -> fine', () => {
    expect(refusedWithin(parseRange('0.0.0.0/0')!)).toBeDefined();
    expect(refusedWithin(parseRange('127.0.0.0/30')!)).toBe('loopback');
    expect(refusedWithin(parseRange('10.0.0.0/8')!)).toBeUndefined();
  });

  test('special ranges: an address inside an address -> as a socket sees it', () => {
    expect(formatIp(unmappedIp(parseIp('::ffff:243.0.0.7')!))).toBe('243.0.0.7');
    expect(formatIp(unmappedIp(parseIp('fd00::1')!))).toBe('fd00::1');
  });
});

function isIn(value: bigint, range: { first: bigint; size: bigint; family: string }, family: string): boolean {
  return range.family === family && value >= range.first && value < range.first + range.size;
}
