// The certificates that the other side of a connection presented. An edge.

import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

const chainLengthMax = 8;

/** Its own first, then its issuers as far as they are known. Empty for a connection without TLS. */
export function presentedOn(socket: Socket | undefined): X509Certificate[] {
  const chain: X509Certificate[] = [];
  // HTTP/2 hands out a proxy of its socket, which is an instance all the same.
  let next = socket instanceof TLSSocket ? socket.getPeerCertificate(true) : undefined;
  while (next?.raw !== undefined && chain.length < chainLengthMax) {
    const certificate = new X509Certificate(next.raw);
    if (chain.some((known) => known.fingerprint256 === certificate.fingerprint256)) break;
    chain.push(certificate);
    next = next.issuerCertificate;
  }
  return chain;
}
