import { expect, test } from 'vitest';
import { formatHostPort, parseHostPort } from './host-port.ts';

test.each([
  ['10.0.0.1:53', undefined, { host: '10.0.0.1', port: 53 }],
  ['ingress.acme.example:15443', undefined, { host: 'ingress.acme.example', port: 15_443 }],
  ['[fd00::1]:0', undefined, { host: 'fd00::1', port: 0 }],
  ['10.0.0.1', 53, { host: '10.0.0.1', port: 53 }],
  ['[fd00::1]', 53, { host: 'fd00::1', port: 53 }],
  ['fd00::1', 53, { host: 'fd00::1', port: 53 }],
  ['::ffff:10.0.0.1', 53, { host: '::ffff:10.0.0.1', port: 53 }],
  ['10.0.0.1', undefined, undefined],
  ['fd00::1', undefined, undefined],
  ['fd00::1:53', undefined, undefined],
  ['10.0.0.1:65536', 53, undefined],
  ['10.0.0.1:', 53, undefined],
  [':53', undefined, undefined],
  ['', 53, undefined],
  ['[host]:1', undefined, undefined],
  ['x:y:z', 53, undefined],
])('host and port: %s, default port %j -> %j', (text, defaultPort, expected) => {
  expect(parseHostPort(text, defaultPort)).toEqual(expected);
});

test('host and port: written as they are read', () => {
  expect([formatHostPort('10.0.0.1', 53), formatHostPort('fd00::1', 53)]).toEqual(['10.0.0.1:53', '[fd00::1]:53']);
});
