// The client of a TLS connection, by its certificate. Authorization comes later.

import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { ApiRequest, ClientSubject } from '../model/access.ts';

export type TlsClient =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'certified'; readonly subject: Required<ClientSubject> }
  | { readonly kind: 'refused'; readonly reason: string };

type ClientFields = Pick<ApiRequest, 'clientCertificate' | 'clientCertificateError'>;

type CertifiedSocket = Pick<TLSSocket, 'getPeerCertificate' | 'authorized' | 'authorizationError'>;

export function tlsClientOf(socket: CertifiedSocket): TlsClient {
  const certificate = socket.getPeerCertificate() as PeerCertificate | undefined;
  if (certificate?.raw === undefined) return { kind: 'nobody' };
  if (!socket.authorized) return { kind: 'refused', reason: String(socket.authorizationError) };
  const { CN: commonName, O: organizations } = certificate.subject as { CN?: unknown; O?: unknown };
  if (typeof commonName !== 'string' || commonName === '') {
    return { kind: 'refused', reason: 'the certificate does not name exactly one user in CN' };
  }
  const endsMs = Date.parse(certificate.valid_to);
  return { kind: 'certified', subject: { commonName, organizations: listOf(organizations), endsMs } };
}

/** A connection may outlive the certificate it was opened with: each request looks again. */
export function clientFields(client: TlsClient, nowMs: number): ClientFields {
  if (client.kind === 'nobody') return {};
  if (client.kind === 'refused') return { clientCertificateError: client.reason };
  if (nowMs > client.subject.endsMs) return { clientCertificateError: 'CERT_HAS_EXPIRED' };
  return { clientCertificate: client.subject };
}

function listOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(String);
  return typeof value === 'string' ? [value] : [];
}
