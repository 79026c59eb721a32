// Certificates for the demo's stub-zone endpoints: one authority, made anew with every demo and kept nowhere, that signs what
// the resolvers show and what the federation's authority shows them.

import type { World } from '../../base/world.ts';
import { type CertificateUse, type Credentials, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';

export interface DemoCertificates {
  /** PEM. */
  readonly authority: string;
  issue(commonName: string, use: CertificateUse): Credentials;
}

const hourMs = 3_600_000;
const lifetimeMs = 30 * 24 * hourMs;

export function makeCertificates({ clock, random }: Pick<World, 'clock' | 'random'>): DemoCertificates {
  const issuer = { subject: { commonName: 'portolan demo' }, key: generatePrivateKey() };
  const nowMs = clock.wallMs();
  const common = () => ({ serial: random.bytes(16), notBeforeMs: nowMs - hourMs, notAfterMs: nowMs + lifetimeMs });
  return {
    authority: issueCertificate({ ...issuer, use: { kind: 'authority' }, ...common() }),
    issue: (commonName, use) => {
      const key = generatePrivateKey();
      return { key, certificate: issueCertificate({ subject: { commonName }, key, issuer, use, ...common() }) };
    },
  };
}
