// The certificates that the other side of a connection presented. An edge.

import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';

const chainLengthMax = 8;

/** Its own first, then its issuers as far as they are known. */
export function presentedOn(socket: TLSSocket | undefined): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next = socket?.getPeerCertificate(true);
  while (next?.raw !== undefined && chain.length < chainLengthMax) {
    const certificate = new X509Certificate(next.raw);
    if (chain.some((known) => known.fingerprint256 === certificate.fingerprint256)) break;
    chain.push(certificate);
    next = next.issuerCertificate;
  }
  return chain;
}
