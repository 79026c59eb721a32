import { describe, expect, test } from 'vitest';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { type TokenClaims, TokenKey } from './tokens.ts';

const key = new TokenKey(generatePrivateKey());
const nowMs = Date.UTC(2026, 0, 1);
const nowSeconds = nowMs / 1000;
const claims: TokenClaims = {
  iss: 'https://here',
  sub: 'system:serviceaccount:shop:till',
  aud: ['https://here'],
  exp: nowSeconds + 600,
  iat: nowSeconds,
  nbf: nowSeconds,
  jti: 'one',
  'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'till', uid: 'u1' } },
};
const token = key.sign(claims);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const [header = '', payload = '', signature = ''] = token.split('.');

describe('tokens', () => {
  test('tokens: one of ours in its time -> its claims', () => {
    expect(key.verify(token, nowMs)).toEqual(claims);
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toMatchObject({ alg: 'ES256' });
    expect(Buffer.from(signature, 'base64url').length).toBe(64);
  });

  const bad: [string, string, RegExp][] = [
    ['nothing', '', /no JWT/],
    ['two parts', `${header}.${payload}`, /no JWT/],
    ['four parts', `${token}.more`, /no JWT/],
    ['signed by another key', new TokenKey(generatePrivateKey()).sign(claims), /not signed by this server/],
    ['its claims changed', `${header}.${encode({ ...claims, sub: 'admin' })}.${signature}`, /signature is wrong/],
    ['its signature cut off', `${header}.${payload}.`, /signature is wrong/],
    ['no algorithm', `${encode({ alg: 'none' })}.${payload}.`, /not signed by this server/],
    ['another algorithm', `${encode({ alg: 'HS256' })}.${payload}.${signature}`, /not signed by this server/],
    ['a megabyte', `${header}.${'x'.repeat(1_000_000)}.${signature}`, /too long/],
  ];
  test.each(bad)('tokens: %s -> refused', (_name, text, why) => {
    expect(() => key.verify(text, nowMs)).toThrow(why);
  });

  test('tokens: before and after its time -> refused, with a minute of leeway for a clock that is behind', () => {
    expect(key.verify(token, nowMs - 60_000)).toEqual(claims);
    expect(() => key.verify(token, nowMs - 60_001)).toThrow(/not valid yet/);
    expect(() => key.verify(token, nowMs + 600_000)).toThrow(/expired/);
    expect(key.verify(token, nowMs + 599_999)).toEqual(claims);
  });
});
