// Facts of a certificate beyond its names and times: the extensions of RFC 5280 that decide whether a chain is
// good. Pure; throws on a certificate that breaks the format.

import type { X509Certificate } from 'node:crypto';
import { contentOf, objectIdentifierIn, readOnly, readValues, smallInteger, tags } from './der-reader.ts';

/** GeneralName (RFC 5280 section 4.2.1.6); a directory name is its attributes, others are text or bytes. */
export type GeneralName =
  | { readonly kind: 'dns' | 'email' | 'uri'; readonly text: string }
  | { readonly kind: 'directory'; readonly attributes: readonly string[] }
  | { readonly kind: 'ip'; readonly bytes: Buffer }
  /** Its tag number says which one. */
  | { readonly kind: 'other'; readonly number: number };

export interface NameConstraints {
  readonly permitted: readonly GeneralName[];
  readonly excluded: readonly GeneralName[];
}

export interface CertificateDetails {
  readonly isAuthority: boolean;
  /** How many authorities may follow below it; undefined without a bound. */
  readonly pathLengthMax: number | undefined;
  /** Undefined if it may be used for anything. */
  readonly keyUsage: ReadonlySet<KeyUsage> | undefined;
  readonly purposes: ReadonlySet<string> | undefined;
  readonly nameConstraints: NameConstraints | undefined;
  readonly subject: readonly string[];
  readonly emails: readonly string[];
  readonly commonNames: readonly string[];
  readonly alternativeNames: readonly GeneralName[];
  /** Unknown critical extensions. */
  readonly unknownCritical: readonly string[];
  readonly signature: { readonly algorithm: string; readonly parameters: Buffer };
  /** Its subject is its issuer. */
  readonly isSelfIssued: boolean;
}

const keyUsages = [
  'digitalSignature',
  'nonRepudiation',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'keyCertSign',
  'cRLSign',
] as const;
export type KeyUsage = (typeof keyUsages)[number];

const oids = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  certificatePolicies: '2.5.29.32',
  policyMappings: '2.5.29.33',
  authorityKeyIdentifier: '2.5.29.35',
  policyConstraints: '2.5.29.36',
  extendedKeyUsage: '2.5.29.37',
  inhibitAnyPolicy: '2.5.29.54',
  emailAddress: '1.2.840.113549.1.9.1',
  commonName: '2.5.4.3',
} as const;
// Policies are not asked for, as `openssl verify` does not without -policy_check.
const understood = new Set<string>(Object.values(oids));

export function detailsOf(certificate: X509Certificate): CertificateDetails {
  const [signed, algorithm] = readValues(readOnly(certificate.raw, tags.sequence));
  const fields = readValues(contentOf(signed, tags.sequence));
  const at = fields[0]?.tag === 0xa0 ? 1 : 0;
  const [issuer, subject] = [fields[at + 2], fields[at + 4]].map((name) => contentOf(name, tags.sequence));
  const extensions = extensionsIn(fields.find(({ tag }) => tag === 0xa3)?.content);
  const value = (oid: string) => extensions.find((extension) => extension.oid === oid)?.value;
  const attributes = attributesIn(subject as Buffer);
  const basic = basicConstraintsIn(value(oids.basicConstraints));
  const [oid, ...parameters] = readValues(contentOf(algorithm, tags.sequence));
  return {
    ...basic,
    keyUsage: keyUsageIn(value(oids.keyUsage)),
    purposes: purposesIn(value(oids.extendedKeyUsage)),
    nameConstraints: nameConstraintsIn(value(oids.nameConstraints)),
    subject: attributes.map(({ text }) => text),
    emails: attributes.filter((attribute) => attribute.oid === oids.emailAddress).map((attribute) => attribute.value),
    commonNames: attributes
      .filter((attribute) => attribute.oid === oids.commonName)
      .map((attribute) => attribute.value),
    alternativeNames: namesIn(value(oids.subjectAltName)),
    unknownCritical: extensions.filter((one) => one.isCritical && !understood.has(one.oid)).map((one) => one.oid),
    signature: {
      algorithm: objectIdentifierIn(contentOf(oid, tags.objectIdentifier)),
      parameters: Buffer.concat(parameters.map(({ content }) => content)),
    },
    isSelfIssued: (issuer as Buffer).equals(subject as Buffer),
  };
}

interface Extension {
  readonly oid: string;
  readonly isCritical: boolean;
  readonly value: Buffer;
}

function extensionsIn(content: Buffer | undefined): Extension[] {
  if (content === undefined) return [];
  const extensions = readValues(readOnly(content, tags.sequence)).map((one) => {
    const parts = readValues(contentOf(one, tags.sequence));
    const isCritical = parts[1]?.tag === tags.boolean && parts[1].content[0] !== 0;
    return {
      oid: objectIdentifierIn(contentOf(parts[0], tags.objectIdentifier)),
      isCritical,
      value: contentOf(parts.at(-1), tags.octetString),
    };
  });
  // RFC 5280 section 4.2: none may come twice, or readers would differ on which one counts.
  if (new Set(extensions.map(({ oid }) => oid)).size < extensions.length) throw new Error('an extension comes twice');
  return extensions;
}

function basicConstraintsIn(value: Buffer | undefined): Pick<CertificateDetails, 'isAuthority' | 'pathLengthMax'> {
  const parts = value === undefined ? [] : readValues(readOnly(value, tags.sequence));
  const length = parts.find(({ tag }) => tag === tags.integer)?.content;
  return {
    isAuthority: parts[0]?.tag === tags.boolean && parts[0].content[0] !== 0,
    pathLengthMax: length === undefined ? undefined : smallInteger(length),
  };
}

function keyUsageIn(value: Buffer | undefined): Set<KeyUsage> | undefined {
  if (value === undefined) return undefined;
  const bits = readOnly(value, tags.bitString)[1] ?? 0;
  return new Set(keyUsages.filter((_usage, index) => (bits & (0x80 >> index)) !== 0));
}

function purposesIn(value: Buffer | undefined): Set<string> | undefined {
  if (value === undefined) return undefined;
  const parts = readValues(readOnly(value, tags.sequence));
  return new Set(parts.map((part) => objectIdentifierIn(contentOf(part, tags.objectIdentifier))));
}

function nameConstraintsIn(value: Buffer | undefined): NameConstraints | undefined {
  if (value === undefined) return undefined;
  const parts = readValues(readOnly(value, tags.sequence));
  const subtrees = (tag: number) =>
    parts
      .filter((part) => part.tag === tag)
      .flatMap(({ content }) => readValues(content))
      .map((subtree) => {
        const [base, ...bounds] = readValues(contentOf(subtree, tags.sequence));
        // RFC 5280 section 4.2.1.10: minimum and maximum are not used.
        if (base === undefined || bounds.length > 0) throw new Error('name constraints with minimum or maximum');
        return nameOf(base.tag, base.content);
      });
  return { permitted: subtrees(0xa0), excluded: subtrees(0xa1) };
}

function namesIn(value: Buffer | undefined): GeneralName[] {
  if (value === undefined) return [];
  return readValues(readOnly(value, tags.sequence)).map(({ tag, content }) => nameOf(tag, content));
}

function nameOf(tag: number, content: Buffer): GeneralName {
  const number = tag & 0x1f;
  if (number === 1) return { kind: 'email', text: content.toString('latin1') };
  if (number === 2) return { kind: 'dns', text: content.toString('latin1') };
  if (number === 6) return { kind: 'uri', text: content.toString('latin1') };
  if (number === 7) return { kind: 'ip', bytes: content };
  if (number !== 4) return { kind: 'other', number };
  return { kind: 'directory', attributes: attributesIn(readOnly(content, tags.sequence)).map(({ text }) => text) };
}

interface Attribute {
  readonly oid: string;
  readonly value: string;
  /** Equal for attributes that compare equal: letter case and runs of spaces do not matter. */
  readonly text: string;
}

function attributesIn(name: Buffer): Attribute[] {
  return readValues(name).flatMap((set) =>
    readValues(contentOf(set, tags.set)).map((pair) => {
      const [oidPart, valuePart] = readValues(contentOf(pair, tags.sequence));
      const oid = objectIdentifierIn(contentOf(oidPart, tags.objectIdentifier));
      const value = (valuePart?.content ?? Buffer.alloc(0)).toString('utf8');
      return { oid, value, text: `${oid}=${value.trim().replace(/\s+/g, ' ').toLowerCase()}` };
    }),
  );
}
