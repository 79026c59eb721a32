// How nameservers are written.

import { expect, test } from 'vitest';
import { nameserversIn, parseServerAddress } from './config.ts';

test.each([
  ['10.0.0.1', { host: '10.0.0.1', port: 53 }],
  ['10.0.0.1:5353', { host: '10.0.0.1', port: 5353 }],
  ['fd00::1', { host: 'fd00::1', port: 53 }],
  ['[fd00::1]:5353', { host: 'fd00::1', port: 5353 }],
  ['fe80::1%eth0', { host: 'fe80::1%eth0', port: 53 }],
  ['[fe80::1%eth0]:5353', { host: 'fe80::1%eth0', port: 5353 }],
  ['tls://10.0.0.1', { host: '10.0.0.1', port: 853, tls: {} }],
  ['tls://[fd00::1]:8853#dns.example', { host: 'fd00::1', port: 8853, tls: { serverName: 'dns.example' } }],
])('nameserver %s -> %j', (text, expected) => {
  expect(parseServerAddress(text)).toEqual(expected);
});

test.each([
  '',
  'fd00::1%eth0',
  'fe80::1%',
  'dns.example',
  '10.0.0.1:0',
  'tls://',
  'tls://dns.example',
  'tls://10.0.0.1#',
  '10.0.0.1#dns.example',
])('nameserver %j -> refused, with what is wanted', (text) => {
  expect(() => parseServerAddress(text)).toThrow(/want an address with an optional port/);
});

test('resolv.conf -> its nameservers in their order, nothing else', () => {
  const text =
    '# nameserver 1.1.1.1\nsearch a b\nnameserver 10.0.0.1 # first\n  nameserver\tfd00::1\nnameserver\nnameserver fe80::1%eth0\noptions x\n';
  expect(nameserversIn(text)).toEqual(['10.0.0.1', 'fd00::1', 'fe80::1%eth0']);
});
