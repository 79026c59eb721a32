import { expect, test } from 'vitest';
import { isLoopbackHost } from './reachable.ts';

test.each([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['[::1]', true],
  ['127.0.0.1.example.com', false],
  ['127.example', false],
  ['10.0.0.1', false],
  ['0.0.0.0', false],
  ['broker.example', false],
])('loopback: %s -> %s', (host, is) => expect(isLoopbackHost(host)).toBe(is));
