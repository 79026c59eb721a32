// For tests: an authority, and certificates it signs.

import { randomBytes } from 'node:crypto';
import { type CertificateUse, issueCertificate } from '../../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../../base/x509/edge/keys.ts';

export interface TestAuthority {
  readonly certificate: string;
  issue(commonName: string, use: CertificateUse): { certificate: string; key: string };
}

export function makeAuthority(commonName: string): TestAuthority {
  const key = generatePrivateKey();
  const subject = { commonName };
  const common = () => ({
    serial: randomBytes(16),
    notBeforeMs: Date.now() - 60_000,
    notAfterMs: Date.now() + 3_600_000,
  });
  const certificate = issueCertificate({ subject, key, use: { kind: 'authority' }, ...common() });
  return {
    certificate,
    issue: (name, use) => {
      const own = generatePrivateKey();
      const issuer = { subject, key };
      return {
        key: own,
        certificate: issueCertificate({ subject: { commonName: name }, key: own, issuer, use, ...common() }),
      };
    },
  };
}
