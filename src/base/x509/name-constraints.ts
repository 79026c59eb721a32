// Name constraints (RFC 5280 section 4.2.1.10): whether an authority may issue for the names of a certificate. Pure.

import type { CertificateDetails, GeneralName, NameConstraints } from './certificate-facts.ts';

/** The first name that is not allowed, in words; undefined if all are. */
export function nameOutside(
  { subject, emails, commonNames, alternativeNames }: CertificateDetails,
  constraints: NameConstraints,
  { isLeaf }: { readonly isLeaf: boolean },
): string | undefined {
  const names: GeneralName[] = [
    ...(subject.length === 0 ? [] : [{ kind: 'directory' as const, attributes: subject }]),
    ...emails.map((text) => ({ kind: 'email' as const, text })),
    ...alternativeNames,
    ...(isLeaf && !alternativeNames.some(({ kind }) => kind === 'dns') ? commonNames.filter(isHost).map(asDns) : []),
  ];
  const outside = names.find((name) => !isAllowed(name, constraints));
  return outside && textOf(outside);
}

const asDns = (text: string): GeneralName => ({ kind: 'dns', text });
const isHost = (text: string) => /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/i.test(text);

function isAllowed(name: GeneralName, { permitted, excluded }: NameConstraints): boolean {
  const alike = (base: GeneralName) => isSameKind(base, name);
  const bases = permitted.filter(alike);
  if (bases.length > 0 && !bases.some((base) => isWithin(name, base))) return false;
  // A name that cannot be compared is refused.
  return !excluded.filter(alike).some((base) => name.kind === 'other' || isUnreadable(name) || isWithin(name, base));
}

function isSameKind(base: GeneralName, name: GeneralName): boolean {
  if (base.kind === 'other' && name.kind === 'other') return base.number === name.number;
  return base.kind === name.kind;
}

const isUnreadable = (name: GeneralName) => name.kind === 'uri' && hostIn(name.text) === undefined;

function isWithin(name: GeneralName, base: GeneralName): boolean {
  if (name.kind === 'directory' && base.kind === 'directory')
    return base.attributes.every((attribute, index) => name.attributes[index] === attribute);
  if (name.kind === 'ip' && base.kind === 'ip') return isInSubnet(name.bytes, base.bytes);
  if (name.kind === 'dns' && base.kind === 'dns') return isDnsWithin(name.text.toLowerCase(), base.text.toLowerCase());
  if (name.kind === 'email' && base.kind === 'email') return isEmailWithin(name.text, base.text);
  if (name.kind === 'uri' && base.kind === 'uri') return isHostWithin(hostIn(name.text), base.text);
  return false;
}

function isDnsWithin(name: string, base: string): boolean {
  if (base === '' || name === base) return true;
  return name.endsWith(base.startsWith('.') ? base : `.${base}`);
}

function isEmailWithin(name: string, base: string): boolean {
  const at = name.lastIndexOf('@');
  if (at < 0) return false;
  const [local, host] = [name.slice(0, at), name.slice(at + 1)];
  const baseAt = base.lastIndexOf('@');
  if (baseAt < 0) return isHostWithin(host, base);
  return local === base.slice(0, baseAt) && host.toLowerCase() === base.slice(baseAt + 1).toLowerCase();
}

/** A base with a dot in front stands for hosts below it, one without for that host alone. */
function isHostWithin(host: string | undefined, base: string): boolean {
  if (host === undefined) return false;
  const [inner, outer] = [host.toLowerCase(), base.toLowerCase()];
  return outer.startsWith('.') ? inner.endsWith(outer) && inner.length > outer.length : inner === outer;
}

function hostIn(uri: string): string | undefined {
  const host = /^[^:/?#]+:\/\/(?:[^@/?#]*@)?([^:/?#]+)/.exec(uri)?.[1];
  return host === '' ? undefined : host;
}

function isInSubnet(address: Buffer, subnet: Buffer): boolean {
  if (subnet.length !== 2 * address.length) return false;
  return address.every((byte, index) => {
    const mask = subnet[address.length + index] as number;
    return (byte & mask) === ((subnet[index] as number) & mask);
  });
}

function textOf(name: GeneralName): string {
  if (name.kind === 'directory') return `subject ${name.attributes.join(', ')}`;
  if (name.kind === 'ip') return `address ${name.bytes.toString('hex')}`;
  return name.kind === 'other' ? `name of type ${name.number}` : name.text;
}
