import { expect, test } from 'vitest';
import { meshOf } from '../testing/edge/mesh.ts';
import { whatIsWrongWithPair } from './credentials.ts';

test('credentials: a pair -> good; the key of another, half a file, nothing at all -> said in words', () => {
  const mesh = meshOf('acme.example');
  const [one, other] = [mesh.issue(), mesh.intermediate().issue()];
  expect(whatIsWrongWithPair(one)).toBe('');
  expect(whatIsWrongWithPair(other)).toBe('');
  expect(whatIsWrongWithPair({ ...one, key: other.key })).toBe('the key is not that of the certificate');
  for (const half of ['', '-----BEGIN CERT', one.certificate.slice(0, 200)])
    expect(whatIsWrongWithPair({ ...one, certificate: half })).toBe('the certificate or the key is not PEM');
  expect(whatIsWrongWithPair({ ...one, key: '' })).toBe('the certificate or the key is not PEM');
});
