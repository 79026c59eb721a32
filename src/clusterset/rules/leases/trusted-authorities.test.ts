import { expect, test } from 'vitest';
import { authorityFingerprints, trustAnnotations, trustsAll, withCertificateAdvice } from './trusted-authorities.ts';

const pem = (text: string) =>
  `-----BEGIN CERTIFICATE-----\n${Buffer.from(text).toString('base64')}\n-----END CERTIFICATE-----\n`;
const lease = (text: string | undefined) => ({
  apiVersion: '',
  kind: '',
  metadata: { name: 'l', annotations: trustAnnotations(text) },
});

test.each([
  ['old', 'old', true],
  ['old,new', 'old,new', true],
  ['new,old', 'old,new', true],
  ['old', 'old,new', false],
  ['', 'new', false],
])('trusted authorities: a member has %j, %j are wanted -> %s', (has, wanted, expected) => {
  const text = (names: string) => names.split(',').filter(Boolean).map(pem).join('');
  expect(trustsAll(lease(text(has)), authorityFingerprints(text(wanted)))).toBe(expected);
});

test('trusted authorities: no lease, no text, lines broken differently -> no trust, nothing said, the same fingerprint', () => {
  expect(trustsAll(undefined, ['a'])).toBe(false);
  expect(trustAnnotations(undefined)).toEqual({});
  const [one, other] = [pem('x'.repeat(90)), pem('x'.repeat(90)).replace(/(.{64})/, '$1\r\n')];
  expect(authorityFingerprints(one)).toEqual(authorityFingerprints(other));
});

test.each([
  ['connect to https://broker:6443: self-signed certificate in certificate chain', true],
  ['unable to verify the first certificate', true],
  ['unable to get local issuer certificate', true],
  ['connection refused: nothing listens there', false],
  ['no answer within 5 s', false],
])('certificate advice: %j -> %s', (error, isGiven) => {
  expect(withCertificateAdvice(error, 'east').includes('portolan broker token east --renew')).toBe(isGiven);
});
