import { describe, expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import { refusal } from './endpoint-address.ts';

const rules = { virtualRanges: [parseRange('243.0.0.0/12')!, parseRange('fd43::/48')!], allowedRanges: [] };

describe('endpoint address', () => {
  for (const fine of ['10.1.2.3', '192.168.0.1', '8.8.8.8', '2001:db8::1', 'fd00::1']) {
    test(`endpoint address: ${fine} -> taken`, () => expect(refusal(fine, rules)).toBeUndefined());
  }
  const refused = {
    '127.0.0.1': 'loopback',
    '127.9.9.9': 'loopback',
    '::1': 'loopback',
    '::ffff:127.0.0.1': 'loopback',
    '169.254.169.254': 'link-local',
    'fe80::1': 'link-local',
    '224.0.0.251': 'multicast',
    'ff02::1': 'multicast',
    '0.0.0.0': 'unspecified',
    '::': 'unspecified',
    '243.1.2.3': 'virtual address',
    'fd43::5': 'virtual address',
    'example.org': 'not an ip',
    '10.0.0.01': 'not an ip',
  };
  for (const [address, why] of Object.entries(refused)) {
    test(`endpoint address: ${address} -> refused as ${why}`, () => expect(refusal(address, rules)).toContain(why));
  }
  test.each([['10.96.0.1'], ['::ffff:10.96.0.1']])(
    'endpoint address: %s, in a range of the reader itself -> refused, whatever the admin allows',
    (address) => {
      const readerRanges = [parseRange('10.96.0.0/16')!];
      for (const allowedRanges of [[], [parseRange('10.96.0.0/16')!], [parseRange(address)!]])
        expect(refusal(address, { ...rules, allowedRanges, readerRanges })).toContain('cluster that reads it');
      expect(refusal('10.97.0.1', { ...rules, readerRanges })).toBeUndefined();
    },
  );
  test('endpoint address: loopback in a part of it that the cluster joined with -> taken, by a range that covers it -> refused', () => {
    const sameMachine = { ...rules, allowedRanges: [parseRange('127.1.0.0/16')!] };
    expect(refusal('127.1.0.9', sameMachine)).toBeUndefined();
    expect(refusal('127.2.0.9', sameMachine)).toContain('loopback');
    expect(refusal('127.1.0.9', { ...rules, allowedRanges: [parseRange('0.0.0.0/0')!] })).toContain('loopback');
  });
  test('endpoint address: outside the ranges the cluster joined with -> refused, inside -> taken', () => {
    const bound = { ...rules, allowedRanges: [parseRange('10.1.0.0/16')!] };
    expect(refusal('10.1.2.3', bound)).toBeUndefined();
    expect(refusal('10.2.2.3', bound)).toContain('outside the address ranges');
  });
});
