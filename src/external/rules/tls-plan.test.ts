import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ExternalTls } from '../kinds/mesh-external-service.ts';
import { createAuthority } from '../testing/pem.ts';
import { expiredCertificates, readTls, type TlsPlan } from './tls-plan.ts';

const authority = createAuthority();
const client = authority.issue({ kind: 'client' }, Date.UTC(2026, 5, 1));
const ca = { inlineString: authority.certificate };
const base64 = (text: string) => Buffer.from(text).toString('base64');
const noSecrets = () => undefined;

function planOf(tls: ExternalTls): TlsPlan {
  const reading = readTls(tls, noSecrets);
  if (reading.kind !== 'tls') throw new Error(JSON.stringify(reading));
  return reading.plan;
}

function problems(tls: ExternalTls, secrets: Parameters<typeof readTls>[1] = noSecrets): readonly string[] {
  const reading = readTls(tls, secrets);
  return reading.kind === 'broken' ? reading.problems : [];
}

describe('tls plan', () => {
  test('tls plan: no section, or switched off -> plain [004-26]', () => {
    expect(readTls(undefined, noSecrets)).toEqual({ kind: 'plain' });
    expect(readTls({ enabled: false, caCert: { secret: 'gone' } }, noSecrets)).toEqual({ kind: 'plain' });
  });

  test.each([
    [undefined, undefined, 'TLSv1_2', 'TLSv1_3'],
    ['TLS_AUTO', 'TLS_AUTO', 'TLSv1_2', 'TLSv1_3'],
    ['TLSv1_3', undefined, 'TLSv1_3', 'TLSv1_3'],
    [undefined, 'TLSv1_1', 'TLSv1_1', 'TLSv1_1'],
    ['TLSv1_0', 'TLSv1_2', 'TLSv1_0', 'TLSv1_2'],
  ] as const)('tls plan: min %s and max %s -> %s to %s, both written [004-27]', (min, max, wantedMin, wantedMax) => {
    const version = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
    expect(planOf({ caCert: ca, version })).toMatchObject({ min: wantedMin, max: wantedMax });
  });

  test('tls plan: names -> own by default, those given instead, any when skipped [004-29, 004-30, 004-31]', () => {
    expect(planOf({ caCert: ca }).names).toBe('own');
    expect(planOf({ caCert: ca, verification: { subjectAltNames: ['spiffe://a/b'] } }).names).toEqual(['spiffe://a/b']);
    expect(planOf({ caCert: ca, verification: { skip: true, subjectAltNames: ['a.b'] } })).toMatchObject({
      names: 'any',
      ca: { kind: 'given', pem: authority.certificate },
    });
  });

  test('tls plan: no CA and no skip -> refused; no CA and skip -> unverified', () => {
    expect(problems({})).toEqual(['tls.caCert: the server could not be verified']);
    expect(planOf({ verification: { skip: true } }).ca).toBeUndefined();
  });

  test("tls plan: the system's CAs by choice -> verified by those, with no certificate of ours", () => {
    expect(planOf({ caCert: { system: true } })).toMatchObject({ ca: { kind: 'system' }, names: 'own' });
    expect(problems({ caCert: { system: false } })).toEqual(['tls.caCert: the server could not be verified']);
  });

  test.each([
    [true, true],
    [false, false],
    [undefined, false],
  ])('tls plan: allowRenegotiation %s -> %s [004-28]', (given, wanted) => {
    const tls = { caCert: ca, ...(given === undefined ? {} : { allowRenegotiation: given }) };
    expect(planOf(tls).mayRenegotiate).toBe(wanted);
  });

  test('tls plan: certificates inline, as text and from Secrets -> the same [004-34]', () => {
    const secrets = (name: string, key: string) => {
      if (name !== 'pair') return undefined;
      return { 'ca.crt': base64(authority.certificate), 'tls.crt': base64(client.certificate), k: base64(client.key) }[
        key
      ];
    };
    const reading = readTls(
      { caCert: { secret: 'pair' }, clientCert: { secret: 'pair' }, clientKey: { secret: 'pair/k' } },
      secrets,
    );
    const inline = planOf({
      caCert: { inline: base64(authority.certificate) },
      clientCert: { inlineString: client.certificate },
      clientKey: { inline: base64(client.key) },
    });
    expect(reading).toEqual({ kind: 'tls', plan: inline });
  });

  test.each<[string, ExternalTls, string]>([
    ['a missing Secret', { caCert: { secret: 'gone' } }, 'tls.caCert: there is no Secret gone with key ca.crt'],
    ['a CA that is no PEM', { caCert: { inlineString: 'hush' } }, 'tls.caCert: holds no PEM certificate'],
    [
      'the key of another certificate',
      {
        caCert: ca,
        clientCert: { inlineString: client.certificate },
        clientKey: { inlineString: authority.issue({ kind: 'client' }).key },
      },
      'tls.clientKey: is not the key of clientCert',
    ],
    [
      'a key that is none',
      { caCert: ca, clientCert: { inlineString: client.certificate }, clientKey: { inlineString: 'hush' } },
      'tls.clientKey: is no PEM private key without a passphrase',
    ],
  ])('tls plan: %s -> refused, contents not repeated', (_what, tls, problem) => {
    expect(problems(tls)).toContain(problem);
    expect(JSON.stringify(problems(tls))).not.toContain('hush');
  });

  test('tls plan: more certificates than a whole store has, or one that cannot be read -> refused, soon', () => {
    const many = authority.certificate.repeat(501);
    expect(problems({ caCert: { inlineString: many } })).toEqual(['tls.caCert: holds 501 certificates, more than 500']);
    const broken = `-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`;
    expect(problems({ caCert: { inlineString: authority.certificate + broken } })).toEqual([
      'tls.caCert: a certificate cannot be read',
    ]);
  });

  test.each([
    ['ed25519', generateKeyPairSync('ed25519')],
    ['short RSA', generateKeyPairSync('rsa', { modulusLength: 1024 })],
    ['another curve', generateKeyPairSync('ec', { namedCurve: 'secp256k1' })],
  ])('tls plan: a kind of key that Envoy does not take, %s -> refused', (_what, { privateKey }) => {
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const tls = { caCert: ca, clientCert: { inlineString: client.certificate }, clientKey: { inlineString: key } };
    expect(problems(tls).join()).toContain('must be RSA of 2048 bits or more');
  });

  test('tls plan: an expired certificate -> used, and said', () => {
    const tls = {
      caCert: ca,
      clientCert: { inlineString: client.certificate },
      clientKey: { inlineString: client.key },
    };
    expect(expiredCertificates(planOf(tls), Date.UTC(2026, 4, 1))).toEqual([]);
    expect(expiredCertificates(planOf(tls), Date.UTC(2026, 6, 1))).toEqual([
      'tls.clientCert: expired at 2026-06-01T00:00:00Z',
    ]);
  });
});
