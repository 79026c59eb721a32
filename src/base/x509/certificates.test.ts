import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { addressBytes, coversHosts, isIssuedBy, isKeyOf, issueCertificate } from './certificates.ts';
import { generatePrivateKey } from './edge/keys.ts';

const [authorityKey, leafKey] = [generatePrivateKey(), generatePrivateKey()];
const times = { notBeforeMs: Date.UTC(2026, 0, 1), notAfterMs: Date.UTC(2055, 0, 1) };
const authoritySubject = { commonName: 'authority' };
const authority = issueCertificate({
  subject: authoritySubject,
  key: authorityKey,
  use: { kind: 'authority' },
  serial: Buffer.alloc(16, 0xff),
  ...times,
});
const leaf = issueCertificate({
  subject: { commonName: 'ünïcode', organizations: ['one', 'two'] },
  key: leafKey,
  issuer: { subject: authoritySubject, key: authorityKey },
  use: { kind: 'server', hosts: ['localhost', 'api.example', '127.0.0.1', '::1', 'fd00::1:2'] },
  serial: Buffer.alloc(16, 1),
  ...times,
});

describe('certificates', () => {
  test('certificates: an authority and what it issued -> the one is seen to have signed the other', () => {
    expect(new X509Certificate(authority).ca).toBe(true);
    expect(new X509Certificate(leaf).ca).toBe(false);
    expect(isIssuedBy(leaf, authority)).toBe(true);
    expect(isIssuedBy(authority, leaf)).toBe(false);
    expect(isKeyOf(leaf, leafKey)).toBe(true);
    expect(isKeyOf(leaf, authorityKey)).toBe(false);
  });

  test('certificates: subject, serial and times beyond 2049 -> read back as given', () => {
    const parsed = new X509Certificate(leaf);
    expect(parsed.toLegacyObject().subject).toMatchObject({ CN: 'ünïcode', O: ['one', 'two'] });
    expect(Date.parse(parsed.validFrom)).toBe(times.notBeforeMs);
    expect(Date.parse(parsed.validTo)).toBe(times.notAfterMs);
    expect(new X509Certificate(authority).serialNumber).toBe('FF'.repeat(16));
  });

  test('certificates: hosts -> exactly those asked for are covered', () => {
    expect(coversHosts(leaf, ['localhost', '127.0.0.1', '::1', 'fd00::1:2'])).toBe(true);
    expect(coversHosts(leaf, ['localhost', 'other.example'])).toBe(false);
    expect(coversHosts(leaf, ['127.0.0.2'])).toBe(false);
  });

  test.each([
    ['1.2.3.4', '01020304'],
    ['::', '00000000000000000000000000000000'],
    ['::1', '00000000000000000000000000000001'],
    ['1::', '00010000000000000000000000000000'],
    ['fe80::1:2', 'fe800000000000000000000000010002'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
    ['::ffff:1.2.3.4', '00000000000000000000ffff01020304'],
  ])('certificates: address %s -> bytes %s', (address, hex) => {
    expect(Buffer.from(addressBytes(address)).toString('hex')).toBe(hex);
  });
});
