// The certificates of a DNS server by name, for the metric of their ends.

import { certificateFacts } from '../base/x509/certificates.ts';
import type { ListenOptions, StubEndpoint } from '../dns/config/config.ts';

export interface NamedCertificate {
  readonly name: string;
  endsMs(): number;
}

export interface DnsCertificateSources {
  readonly listen?: ListenOptions;
  readonly stubEndpoint?: StubEndpoint;
  /** Shown by an authority to the resolvers of members; PEM. */
  readonly identity?: { readonly certificate: string };
}

export function dnsCertificates({ listen, stubEndpoint, identity }: DnsCertificateSources): NamedCertificate[] {
  const served = listen?.tls?.material.certificate;
  let stub = stubEndpoint?.certificate;
  stubEndpoint?.onRenewed?.((next) => (stub = next.certificate));
  return [
    ...(served === undefined ? [] : [named('dns-tls', () => served)]),
    ...(stub === undefined ? [] : [named('stub-zones', () => stub!)]),
    ...(identity === undefined ? [] : [named('federation-authority', () => identity.certificate)]),
  ];
}

function named(name: string, certificate: () => string): NamedCertificate {
  return { name, endsMs: () => certificateFacts(certificate()).notAfterMs };
}
