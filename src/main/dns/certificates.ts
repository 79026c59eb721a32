// The certificates of a DNS server by name, for the metric of their ends.

import { certificateFacts } from '../../base/x509/certificates.ts';
import type { StubEndpoint } from '../../dns/config/config.ts';

export interface NamedCertificate {
  readonly name: string;
  endsMs(): number;
}

export interface DnsCertificateSources {
  /** Served over TLS at present; PEM. */
  readonly tls?: () => string | undefined;
  readonly stubEndpoint?: StubEndpoint;
  /** Shown by an authority to the resolvers of members; PEM. */
  readonly identity?: { readonly certificate: string };
}

export function dnsCertificates({ tls, stubEndpoint, identity }: DnsCertificateSources): NamedCertificate[] {
  let stub = stubEndpoint?.certificate;
  stubEndpoint?.onRenewed?.((next) => (stub = next.certificate));
  return [
    ...(tls?.() === undefined ? [] : [named('dns-tls', () => tls()!)]),
    ...(stub === undefined ? [] : [named('stub-zones', () => stub!)]),
    ...(identity === undefined ? [] : [named('federation-authority', () => identity.certificate)]),
  ];
}

function named(name: string, certificate: () => string): NamedCertificate {
  return { name, endsMs: () => certificateFacts(certificate()).notAfterMs };
}
