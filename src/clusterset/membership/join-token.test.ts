import { describe, expect, test } from 'vitest';
import { formatJoinToken, type JoinToken, parseJoinToken } from './join-token.ts';

const token: JoinToken = {
  clusterset: 'prod',
  clusterId: 'east.eu',
  namespace: 'prod-m-east-eu',
  server: 'https://127.0.0.1:6443',
  certificateAuthority: '-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n',
  token: 'a.b.c',
  expiresAt: '2026-11-01T00:00:00Z',
};

describe('join token', () => {
  test('join token: there and back -> the same, in one word', () => {
    const text = formatJoinToken(token);
    expect(text).toMatch(/^portolan1\.[\w-]+\.[\w-]{8}$/);
    expect(parseJoinToken(text)).toEqual(token);
  });

  test('join token: broken over lines by a mail program -> read all the same', () => {
    const text = formatJoinToken(token);
    expect(parseJoinToken(`  ${text.slice(0, 76)}\r\n${text.slice(76)}\n`)).toEqual(token);
  });

  test('join token: every cut and every changed character -> refused, never misread', () => {
    const text = formatJoinToken(token);
    for (let at = 0; at < text.length; at += 1) expect(() => parseJoinToken(text.slice(0, at))).toThrow('join token');
    for (let at = 10; at < text.length; at += 7) {
      const changed = `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
      expect(() => parseJoinToken(changed)).toThrow('join token');
    }
  });

  test.each([
    ['hello', 'invalid join token'],
    ['portolan2.abc.def', 'join token: made by another version (portolan2)'],
    ['portolan1.abc.def', 'join token: it is not whole'],
  ])('join token: %s -> %s', (text, problem) => {
    expect(() => parseJoinToken(text)).toThrow(problem);
  });
});
