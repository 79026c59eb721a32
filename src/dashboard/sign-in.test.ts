import { describe, expect, test } from 'vitest';
import { parseSignIn, readClaims } from './sign-in.ts';

const token = (n: number) => `eyJhbGciOiJub25lIn0.payload-${n}.signature`;

describe('sign in', () => {
  test('one token -> for every home', () => {
    const signIn = parseSignIn(` ${token(1)}\n`);
    expect(signIn?.tokenFor('east')).toBe(token(1));
    expect(signIn?.tokenFor('west')).toBe(token(1));
  });

  test('a token with the name of its home -> sent nowhere else', () => {
    const signIn = parseSignIn(`east=${token(1)}, west=${token(2)}`);
    expect(signIn?.tokenFor('east')).toBe(token(1));
    expect(signIn?.tokenFor('west')).toBe(token(2));
    expect(signIn?.tokenFor('south')).toBeUndefined();
  });

  test.each(['', '  ', 'two words', 'line\r\nbreak: x', 'ü', `x${'y'.repeat(70_000)}`])('%j -> no token', (text) => {
    expect(parseSignIn(text)).toBeUndefined();
  });

  test('claims of a service account -> its name and namespace; of anything else -> nothing', () => {
    const body = { sub: 'system:serviceaccount:shop:viewer', exp: 10, 'kubernetes.io': { namespace: 'shop' } };
    const jwt = `h.${Buffer.from(JSON.stringify(body)).toString('base64url')}.s`;
    expect(readClaims(jwt)).toEqual({ subject: body.sub, namespace: 'shop', expiresMs: 10_000 });
    for (const odd of ['opaque', 'a.b.c', `h.${Buffer.from('null').toString('base64url')}.s`])
      expect(readClaims(odd)).toEqual({ subject: '', namespace: undefined, expiresMs: undefined });
  });
});
