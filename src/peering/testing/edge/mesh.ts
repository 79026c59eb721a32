// For tests: the authority of a mesh, and certificates it gives out, good and bad ones.

import { X509Certificate } from 'node:crypto';
import { type Credentials, issueCertificate } from '../../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../../base/x509/edge/keys.ts';
import type { TrustedPeer } from '../../trust/trust.ts';

export interface TestMesh extends Credentials {
  readonly domain: string;
  readonly root: X509Certificate;
  /** A certificate with these identities; `spiffe://<domain>/mesh` if none are given. */
  issue(options?: IssueOptions): Credentials;
  /** An intermediate authority; what it issues carries its certificate along. */
  intermediate(): Pick<TestMesh, 'issue'>;
  trusted(changes?: Partial<TrustedPeer>): TrustedPeer;
}

interface IssueOptions {
  readonly identities?: readonly string[];
  readonly notAfterMs?: number;
}

const hourMs = 3_600_000;
let serials = 0;

export function meshOf(domain: string): TestMesh {
  const subject = { commonName: `mesh ${domain}` };
  const key = generatePrivateKey();
  const certificate = issueCertificate({ subject, key, use: { kind: 'authority' }, ...times(), serial: serial() });
  const issueFrom =
    (issuer: { subject: { commonName: string }; key: string }, chain: string) =>
    (options: IssueOptions = {}): Credentials => {
      const leafKey = generatePrivateKey();
      const uris = options.identities ?? [`spiffe://${domain}/mesh`];
      const leaf = issueCertificate({
        subject: { commonName: 'peering' },
        key: leafKey,
        issuer,
        use: { kind: 'identity', uris },
        ...times(options.notAfterMs),
        serial: serial(),
      });
      return { certificate: leaf + chain, key: leafKey };
    };
  return {
    domain,
    key,
    certificate,
    root: new X509Certificate(certificate),
    issue: issueFrom({ subject, key }, ''),
    intermediate() {
      const own = { subject: { commonName: `intermediate of ${domain}` }, key: generatePrivateKey() };
      const request = { ...own, issuer: { subject, key }, use: { kind: 'authority' as const } };
      const chain = issueCertificate({ ...request, ...times(), serial: serial() });
      return { issue: issueFrom(own, chain) };
    },
    trusted: (changes = {}) => ({
      peer: domain.split('.')[0] as string,
      domain,
      identities: [],
      roots: [new X509Certificate(certificate)],
      ...changes,
    }),
  };
}

function times(notAfterMs = Date.now() + 24 * hourMs): { notBeforeMs: number; notAfterMs: number } {
  return { notBeforeMs: Date.now() - 48 * hourMs, notAfterMs };
}

function serial(): Uint8Array {
  serials += 1;
  const bytes = Buffer.alloc(16, 7);
  bytes.writeUInt32BE(serials, 8);
  return bytes;
}
