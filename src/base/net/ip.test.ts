import { describe, expect, test } from 'vitest';
import { doRangesOverlap, formatIp, isInRange, parseIp, parseRange } from './ip.ts';

describe('ip: text and numbers', () => {
  const same = [
    '0.0.0.0',
    '243.0.0.7',
    '255.255.255.255',
    '::',
    '::1',
    'fd00::1',
    '2001:db8::8:800:200c:417a',
    '1:0:0:2::',
  ];
  for (const text of same) {
    test(`ip: ${text} -> parsed and formatted unchanged`, () => {
      const ip = parseIp(text);
      expect(ip && formatIp(ip)).toBe(text);
    });
  }
  const canonical: [string, string][] = [
    ['FD00:0:0:0:0:0:0:A', 'fd00::a'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['::ffff:10.0.0.1', '::ffff:a00:1'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ];
  for (const [text, expected] of canonical) {
    test(`ip: ${text} -> RFC 5952 ${expected}`, () => expect(formatIp(parseIp(text)!)).toBe(expected));
  }
  const wrong = [
    '',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    'a.b.c.d',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    '1:2:3:4:5:6:7:8::',
    'fe80::1%eth0',
  ];
  for (const text of wrong) test(`ip: ${JSON.stringify(text)} -> refused`, () => expect(parseIp(text)).toBeUndefined());
});

describe('ip: ranges', () => {
  const inside = (ip: string, range: string) => isInRange(parseIp(ip)!, parseRange(range)!);
  test('ip: first and last of a range -> inside, the next one outside', () => {
    expect(inside('243.0.0.0', '243.0.0.0/12')).toBe(true);
    expect(inside('243.15.255.255', '243.0.0.0/12')).toBe(true);
    expect(inside('243.16.0.0', '243.0.0.0/12')).toBe(false);
    expect(inside('fd00::1', '0.0.0.0/0')).toBe(false);
  });
  test('ip: malformed ranges -> refused', () => {
    for (const text of ['10.0.0.0/33', '10.0.0.0/x', 'fd00::/129', '10/8']) expect(parseRange(text)).toBeUndefined();
  });
  test('ip: overlap -> seen whichever is the wider', () => {
    const overlap = (a: string, b: string) => doRangesOverlap(parseRange(a)!, parseRange(b)!);
    expect(overlap('10.0.0.0/8', '10.1.0.0/16')).toBe(true);
    expect(overlap('10.1.0.0/16', '10.0.0.0/8')).toBe(true);
    expect(overlap('10.0.0.0/9', '10.128.0.0/9')).toBe(false);
    expect(overlap('::/0', '0.0.0.0/0')).toBe(false);
  });
});
