// Certificates for tests: an authority and what it signs.

import { generateKeyPairSync } from 'node:crypto';
import { type CertificateUse, issueCertificate } from '../../base/x509/certificates.ts';

interface Pair {
  readonly certificate: string;
  readonly key: string;
}

export interface Authority extends Pair {
  issue(use: CertificateUse, notAfterMs?: number): Pair;
}

const dayMs = 86_400_000;
const notBeforeMs = Date.UTC(2026, 0, 1);
const centuryMs = notBeforeMs + 36_500 * dayMs;

export function createAuthority(name = 'test authority'): Authority {
  const subject = { commonName: name };
  const key = newKey();
  let serial = 1;
  const common = () => {
    serial += 1;
    return { serial: Uint8Array.from({ length: 16 }, (_, at) => (at === 15 ? serial : 1)), notBeforeMs };
  };
  const certificate = issueCertificate({
    subject,
    key,
    use: { kind: 'authority' },
    ...common(),
    notAfterMs: centuryMs,
  });
  return {
    certificate,
    key,
    issue: (use, notAfterMs = centuryMs) => {
      const own = newKey();
      const issuer = { subject, key };
      const signed = { subject: { commonName: 'leaf' }, key: own, issuer, use, ...common(), notAfterMs };
      return { certificate: issueCertificate(signed), key: own };
    },
  };
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
