// Whether presented certificates lead to a root, as RFC 5280 section 6 and `openssl verify -partial_chain -auth_level
// 2` have it: signatures, times, authorities, path lengths, key usages, purposes, name constraints, critical
// extensions, strength. Stricter in one point: an authority is no end of a connection. Pure, with time passed in. Policies
// and revocation lists are not asked for.

import type { X509Certificate } from 'node:crypto';
import { type CertificateDetails, detailsOf, type KeyUsage } from './certificate-facts.ts';
import { nameOutside } from './name-constraints.ts';

export interface ChainOptions {
  /** Its own certificate first, then any intermediates. */
  readonly presented: readonly X509Certificate[];
  readonly roots: readonly X509Certificate[];
  readonly nowMs: number;
  /** As which side of TLS the first one is used. */
  readonly purpose: 'client' | 'server';
}

interface Link {
  readonly certificate: X509Certificate;
  readonly details: CertificateDetails;
}

const chainLengthMax = 8;
/** Checking signatures is what costs; a caller chooses what it presents. */
const signaturesMax = 32;

const purposeOids = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;
const usagesOf: Record<'client' | 'server', readonly KeyUsage[]> = {
  client: ['digitalSignature', 'keyAgreement'],
  server: ['digitalSignature', 'keyEncipherment', 'keyAgreement'],
};

/** Undefined if nothing is. */
export function whatIsWrongWithChain(options: ChainOptions): string | undefined {
  const [leaf, ...intermediates] = options.presented;
  if (leaf === undefined) return 'no certificate was presented';
  let signatures = 0;
  let wrong = "the certificate does not lead to one of this peer's roots";
  let hasCandidate = false;

  /** Tries every way up; the first that is good decides. */
  function climb(chain: readonly X509Certificate[]): boolean {
    const top = chain.at(-1) as X509Certificate;
    for (const [issuers, areRoots] of [
      [options.roots, true],
      [intermediates, false],
    ] as const) {
      for (const issuer of issuers) {
        if (chain.includes(issuer) || !top.checkIssued(issuer)) continue;
        signatures += 1;
        if (signatures > signaturesMax || !isSignedBy(top, issuer)) continue;
        if (areRoots && isGood([...chain, issuer])) return true;
        if (!areRoots && chain.length < chainLengthMax && climb([...chain, issuer])) return true;
      }
    }
    return false;
  }

  function isGood(chain: readonly X509Certificate[]): boolean {
    const found = whatIsWrongWithPath(chain, options);
    if (found !== undefined && !hasCandidate) wrong = found;
    hasCandidate = true;
    return found === undefined;
  }

  // A presented root needs no issuer.
  const isRoot = options.roots.some((root) => root.fingerprint256 === leaf.fingerprint256);
  return (isRoot && isGood([leaf])) || climb([leaf]) ? undefined : wrong;
}

function isSignedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.verify(issuer.publicKey);
  } catch {
    return false;
  }
}

/** From the leaf to the root. */
function whatIsWrongWithPath(chain: readonly X509Certificate[], options: ChainOptions): string | undefined {
  const links: Link[] = [];
  for (const certificate of chain) {
    try {
      links.push({ certificate, details: detailsOf(certificate) });
    } catch (error) {
      return `the certificate of ${nameOf(certificate)} cannot be read: ${(error as Error).message}`;
    }
  }
  for (const [index, link] of links.entries()) {
    const isRoot = index === links.length - 1;
    const found =
      whatIsWrongWithTime(link, options.nowMs) ??
      whatIsWrongWithStrength(link, isRoot) ??
      whatIsWrongWithUse(link, options.purpose, index > 0);
    if (found !== undefined) return found;
  }
  return whatIsWrongWithLengths(links) ?? whatIsWrongWithNames(links);
}

function whatIsWrongWithTime({ certificate }: Link, nowMs: number): string | undefined {
  if (nowMs < certificate.validFromDate.getTime())
    return `the certificate of ${nameOf(certificate)} is not valid before ${certificate.validFrom}`;
  if (nowMs > certificate.validToDate.getTime())
    return `the certificate of ${nameOf(certificate)} expired on ${certificate.validTo}`;
  return undefined;
}

const weakSignatures = new Set([
  '1.2.840.113549.1.1.2', // MD2 with RSA
  '1.2.840.113549.1.1.4', // MD5 with RSA
  '1.2.840.113549.1.1.5', // SHA-1 with RSA
  '1.3.14.3.2.29', // SHA-1 with RSA, the older name
  '1.2.840.10045.4.1', // SHA-1 with ECDSA
  '1.2.840.10040.4.3', // SHA-1 with DSA
]);
const rsaPss = '1.2.840.113549.1.1.10';
/** 2.16.840.1.101.3.4.2 and 1 to 4: SHA-256, 384, 512 and 224. */
const strongHash = /60864801650304020[1-4]/;

// As security level 2 of OpenSSL: 112 bits.
function whatIsWrongWithStrength({ certificate, details }: Link, isRoot: boolean): string | undefined {
  const { asymmetricKeyType: type = '', asymmetricKeyDetails: key } = certificate.publicKey;
  const isWeakRsa = type.startsWith('rsa') && (key?.modulusLength ?? 0) < 2048;
  const isWeakDsa = type === 'dsa' && (key?.modulusLength ?? 0) < 2048;
  const isWeakCurve = type === 'ec' && /(1[0-9][0-9])[rkvt]1|prime192|wap/.test(key?.namedCurve ?? '');
  if (isWeakRsa || isWeakDsa || isWeakCurve) return `the key of ${nameOf(certificate)} is too short`;
  const { algorithm, parameters } = details.signature;
  const isWeak =
    weakSignatures.has(algorithm) || (algorithm === rsaPss && !strongHash.test(parameters.toString('hex')));
  return isWeak && !isRoot ? `the signature of ${nameOf(certificate)} uses a broken hash` : undefined;
}

function whatIsWrongWithUse({ certificate, details }: Link, purpose: 'client' | 'server', isIssuer: boolean) {
  const { isAuthority, keyUsage, purposes, unknownCritical } = details;
  const name = nameOf(certificate);
  if (unknownCritical.length > 0)
    return `the certificate of ${name} has the unknown critical extension ${unknownCritical[0]}`;
  if (isIssuer && !isAuthority) return `${name} issued a certificate and is no authority`;
  // X509-SVID section 4.1; openssl takes it.
  if (!isIssuer && isAuthority) return `the certificate of ${name} is that of an authority, which is no end of TLS`;
  // Whether the key of an issuer may sign certificates was asked by checkIssued().
  if (!isIssuer && keyUsage !== undefined && !usagesOf[purpose].some((usage) => keyUsage.has(usage)))
    return `the key of ${name} may not be used for TLS`;
  if (purposes !== undefined && !purposes.has(purposeOids[purpose]))
    return `the certificate of ${name} is not for ${purpose}s`;
  return undefined;
}

function whatIsWrongWithLengths(links: readonly Link[]): string | undefined {
  let below = 0;
  for (const [index, { certificate, details }] of links.entries()) {
    if (index === 0) continue;
    if (details.pathLengthMax !== undefined && below > details.pathLengthMax)
      return `more than ${details.pathLengthMax} authorities below ${nameOf(certificate)}, which its path length forbids`;
    if (!details.isSelfIssued) below += 1;
  }
  return undefined;
}

function whatIsWrongWithNames(links: readonly Link[]): string | undefined {
  for (const [index, { certificate, details }] of links.entries()) {
    const { nameConstraints } = details;
    if (nameConstraints === undefined) continue;
    for (const [below, link] of links.slice(0, index).entries()) {
      if (below > 0 && link.details.isSelfIssued) continue;
      const outside = nameOutside(link.details, nameConstraints, { isLeaf: below === 0 });
      if (outside !== undefined) return `${nameOf(certificate)} may not vouch for ${outside} (name constraints)`;
    }
  }
  return undefined;
}

function nameOf(certificate: X509Certificate): string {
  return certificate.subject?.replaceAll('\n', ', ') ?? 'an unnamed subject';
}
