// Issues X.509 certificates (RFC 5280) for P-256 keys: an authority, a server, a client. Pure but for the signature's
// own nonce; where keys come from and where certificates are kept is pki.ts.

import { createHash, createPrivateKey, createPublicKey, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import * as der from './der.ts';

export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

/** A certificate and its private key, both PEM. */
export interface Credentials {
  readonly certificate: string;
  readonly key: string;
}

export type CertificateUse =
  | { readonly kind: 'authority'; readonly uris?: readonly string[] }
  /** Host names and IP addresses. */
  | { readonly kind: 'server'; readonly hosts: readonly string[] }
  | { readonly kind: 'client' }
  /** Mutual TLS, named by URIs such as SPIFFE identities: for both sides, unless it is for one of them only. */
  | {
      readonly kind: 'identity';
      readonly uris: readonly string[];
      readonly hosts?: readonly string[];
      readonly only?: 'client' | 'server';
    };

export interface CertificateRequest {
  readonly subject: Subject;
  /** The subject's private key, PEM: only its public half goes into the certificate, and with an issuer suffices. */
  readonly key: string;
  /** Absent: signs itself. */
  readonly issuer?: { readonly subject: Subject; readonly key: string };
  readonly use: CertificateUse;
  /** At least 16 unpredictable bytes. */
  readonly serial: Uint8Array;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

const oids = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

const signatureAlgorithm = der.sequence(der.objectIdentifier(oids.ecdsaWithSha256));

export function issueCertificate(request: CertificateRequest): string {
  const issuer = request.issuer ?? { subject: request.subject, key: request.key };
  const signedPart = der.sequence(
    der.explicit(0, der.integer(Uint8Array.of(2))),
    der.integer(request.serial),
    signatureAlgorithm,
    distinguishedName(issuer.subject),
    der.sequence(der.time(request.notBeforeMs), der.time(request.notAfterMs)),
    distinguishedName(request.subject),
    publicKeyInfo(request.key),
    der.explicit(3, der.sequence(...extensions(request, issuer.key))),
  );
  const signature = sign('sha256', signedPart, createPrivateKey(issuer.key));
  return pem(der.sequence(signedPart, signatureAlgorithm, der.bitString(signature)));
}

export interface CertificateFacts {
  readonly subject: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Throws if the text is no certificate. */
export function certificateFacts(certificate: string): CertificateFacts {
  const parsed = new X509Certificate(certificate);
  return {
    subject: parsed.subject,
    notBeforeMs: Date.parse(parsed.validFrom),
    notAfterMs: Date.parse(parsed.validTo),
  };
}

export function isIssuedBy(certificate: string, authority: string): boolean {
  const issuer = new X509Certificate(authority);
  const subject = new X509Certificate(certificate);
  return subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
}

export function isKeyOf(certificate: string, key: string): boolean {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
}

export function coversHosts(certificate: string, hosts: readonly string[]): boolean {
  const parsed = new X509Certificate(certificate);
  return hosts.every((host) => (isIP(host) ? parsed.checkIP(host) : parsed.checkHost(host)) !== undefined);
}

function distinguishedName(subject: Subject): Buffer {
  const attribute = (oid: string, value: string) =>
    der.set(der.sequence(der.objectIdentifier(oid), der.utf8String(value)));
  const organizations = (subject.organizations ?? []).map((name) => attribute(oids.organization, name));
  return der.sequence(...organizations, attribute(oids.commonName, subject.commonName));
}

function extensions(request: CertificateRequest, issuerKey: string): Buffer[] {
  const { use } = request;
  const common = [
    extension(oids.subjectKeyIdentifier, der.octetString(keyIdentifier(request.key))),
    extension(oids.authorityKeyIdentifier, der.sequence(der.implicit(0, keyIdentifier(issuerKey)))),
  ];
  if (use.kind === 'authority') {
    return [
      extension(oids.basicConstraints, der.sequence(der.boolean(true)), { isCritical: true }),
      // digitalSignature, keyCertSign, cRLSign
      extension(oids.keyUsage, der.bitString(Uint8Array.of(0x86), 1), { isCritical: true }),
      ...(use.uris === undefined ? [] : [extension(oids.subjectAltName, alternativeNames(use.uris, []))]),
      ...common,
    ];
  }
  const purposes = {
    server: [oids.serverAuth],
    client: [oids.clientAuth],
    identity: [oids.serverAuth, oids.clientAuth],
  }[(use.kind === 'identity' ? use.only : undefined) ?? use.kind];
  const uris = use.kind === 'identity' ? use.uris : [];
  const names = use.kind === 'client' ? [] : [extension(oids.subjectAltName, alternativeNames(uris, use.hosts ?? []))];
  return [
    extension(oids.basicConstraints, der.sequence(), { isCritical: true }),
    // digitalSignature
    extension(oids.keyUsage, der.bitString(Uint8Array.of(0x80), 7), { isCritical: true }),
    extension(oids.extendedKeyUsage, der.sequence(...purposes.map((purpose) => der.objectIdentifier(purpose)))),
    ...names,
    ...common,
  ];
}

function extension(oid: string, value: Uint8Array, options?: { isCritical: boolean }): Buffer {
  const critical = options?.isCritical ? [der.boolean(true)] : [];
  return der.sequence(der.objectIdentifier(oid), ...critical, der.octetString(value));
}

function alternativeNames(uris: readonly string[], hosts: readonly string[]): Buffer {
  return der.sequence(
    ...uris.map((uri) => der.implicit(6, Buffer.from(uri, 'latin1'))),
    ...hosts.map((host) =>
      isIP(host) ? der.implicit(7, addressBytes(host)) : der.implicit(2, Buffer.from(host, 'latin1')),
    ),
  );
}

/** The 4 or 16 bytes of an IP address. */
export function addressBytes(address: string): Uint8Array {
  if (isIP(address) === 4) return Uint8Array.from(address.split('.').map(Number));
  const lastColon = address.lastIndexOf(':');
  const tail = address.slice(lastColon + 1);
  const isMixed = tail.includes('.');
  const words = isMixed ? `${address.slice(0, lastColon + 1)}${mixedTail(tail)}` : address;
  const [head = '', rest] = words.split('::') as [string, string | undefined];
  const before = head === '' ? [] : head.split(':');
  const after = rest === undefined || rest === '' ? [] : rest.split(':');
  const zeros = Array.from({ length: rest === undefined ? 0 : 8 - before.length - after.length }, () => '0');
  return Uint8Array.from([...before, ...zeros, ...after].flatMap((word) => splitWord(Number.parseInt(word, 16))));
}

function mixedTail(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

function splitWord(word: number): [number, number] {
  return [word >> 8, word & 0xff];
}

function publicKeyInfo(key: string): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

// RFC 5280 section 4.2.1.2, method 1: SHA-1 of the public key's bits, which for P-256 are the last 65 bytes.
function keyIdentifier(key: string): Buffer {
  return createHash('sha1').update(publicKeyInfo(key).subarray(-65)).digest();
}

function pem(bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
