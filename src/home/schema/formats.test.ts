import { describe, expect, test } from 'vitest';
import { formatCheck } from './formats.ts';

const table: Record<string, { good: string[]; bad: string[] }> = {
  ipv4: { good: ['10.0.0.1'], bad: ['10.0.0', '::1', '010.0.0.1', '256.1.1.1'] },
  ipv6: { good: ['::1', '2001:db8::1', '::ffff:10.0.0.1'], bad: ['10.0.0.1', 'fe80::1%eth0', ':::'] },
  cidr: {
    good: ['10.0.0.0/8', 'fd00::/8', '0.0.0.0/0'],
    bad: ['10.0.0.0', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/08'],
  },
  date: { good: ['2024-02-29'], bad: ['2023-02-29', '2024-13-01', '2024-1-1'] },
  'date-time': {
    good: ['2024-01-02T03:04:05Z', '2024-01-02t03:04:05.123456+02:00', '2016-12-31T23:59:60Z'],
    bad: ['2024-01-02', '2024-01-02 03:04:05Z', '2024-01-02T24:00:00Z', '2024-02-30T00:00:00Z'],
  },
  byte: { good: ['', 'YQ==', 'YWI=', 'YWJj', 'YW\nJj'], bad: ['Y', 'YQ=', 'YQ', 'Y*==', '===='] },
  uri: { good: ['https://a.b/c?d', 'urn:a:b', '/path'], bad: ['a b', 'http://', 'no-scheme'] },
  uuid: { good: ['3f2b8f3e-8f5e-4f0e-9d0a-0123456789ab'], bad: ['3f2b8f3e', 'zf2b8f3e-8f5e-4f0e-9d0a-0123456789ab'] },
  uuid4: { good: ['3f2b8f3e-8f5e-4f0e-9d0a-0123456789ab'], bad: ['3f2b8f3e-8f5e-1f0e-9d0a-0123456789ab'] },
  hostname: { good: ['a.b', 'A-1.example.com.'], bad: ['', '-a', 'a..b', `${'a'.repeat(64)}.b`] },
  email: { good: ['a@b.c'], bad: ['a', '@b', 'a b@c.d'] },
  mac: { good: ['00:11:22:33:44:ff', '00-11-22-33-44-55'], bad: ['00:11:22:33:44', '00:11-22:33:44:55'] },
  duration: { good: ['10s', '1h30m', '0', '-1.5h'], bad: ['10', 's', '1 day', ''] },
  'k8s-short-name': { good: ['a-1'], bad: ['a.b', 'A', ''] },
  'k8s-long-name': { good: ['a.b'], bad: ['a..b', 'A'] },
};

describe.each(Object.entries(table))('format %s', (format, { good, bad }) => {
  test.each(good)(`format ${format}: %j -> taken`, (text) => expect(formatCheck(format)!(text)).toBe(true));
  test.each(bad)(`format ${format}: %j -> refused`, (text) => expect(formatCheck(format)!(text)).toBe(false));
});

test('format: one nobody knows -> not checked', () => expect(formatCheck('poem')).toBeUndefined());
