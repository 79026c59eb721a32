// A service that one mesh shares with another: what its owner must say of it, and what a consumer checks before it
// believes a word. Pure. The key is (peer, id).

import { parseIp } from '../../base/ip.ts';
import { type FieldError, forbidden, invalid, required, tooLong } from '../../kube/objects/field-error.ts';

export interface SharedEndpoint {
  readonly address: string;
  readonly port: number;
}

export interface SharedService {
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly fqdn: string;
  /** Unique at its owner; also the SNI under which a consumer's proxy reaches it, unless `sni` says another. */
  readonly id: string;
  /** Only the later draft can tell the two apart. */
  readonly sni?: string;
  /** `spiffe://trust-domain/path` of the workload itself. */
  readonly san: string;
  readonly protocols: readonly string[];
  /** Ingresses of the owner's mesh. */
  readonly endpoints: readonly SharedEndpoint[];
}

export interface NamesAllowed {
  /** Domains under which a peer may claim names; `*` allows any. */
  readonly allowedDomains: readonly string[];
  /** Our own zones, which no peer may claim a name in. */
  readonly ownZones: readonly string[];
}

const idLengthMax = 255;

/** Some senders write the SAN as a certificate viewer prints it, with its type in front. */
export function normalizeSan(san: string): string {
  return san.startsWith('URI:') ? san.slice('URI:'.length) : san;
}

export function validateSharedService(service: SharedService, names: NamesAllowed): FieldError[] {
  return [
    ...validateId(service),
    ...validateFqdn(service.fqdn, names),
    ...validateSan(service.san),
    ...validateProtocols(service.protocols),
    ...validateEndpoints(service.endpoints),
  ];
}

// A ServiceID travels as SNI. Underscores and a leading `outbound_.` are in use, so labels are read leniently.
function validateId({ id, sni = id }: SharedService): FieldError[] {
  if (id === '') return [required('id', 'the ServiceID names the service at its owner')];
  if (id.length > idLengthMax) return [tooLong('id', idLengthMax)];
  if (isDnsQueryable(sni)) return [];
  const rule = 'must be usable as a DNS name and as SNI: labels of 1 to 63 letters, digits, "-" or "_", 253 in all';
  return [invalid(sni === id ? 'id' : 'instances[0].metadata[SNI]', sni, rule)];
}

function validateFqdn(fqdn: string, { allowedDomains, ownZones }: NamesAllowed): FieldError[] {
  if (fqdn === '') return [required('fqdn', 'the name under which consumers find the service')];
  const name = withoutDot(fqdn).toLowerCase();
  if (!isDnsQueryable(name)) return [invalid('fqdn', fqdn, 'must be a DNS name')];
  const own = ownZones.find((zone) => isUnder(name, zone));
  if (own !== undefined) return [forbidden('fqdn', `${fqdn} is inside our own zone ${own}, which no peer may name`)];
  if (allowedDomains.includes('*') || allowedDomains.some((domain) => isUnder(name, domain))) return [];
  const allowed = allowedDomains.length === 0 ? 'none' : allowedDomains.join(', ');
  return [forbidden('fqdn', `${fqdn} is outside the domains this peer may name (${allowed})`)];
}

// SPIFFE-ID section 2: a trust domain of lower-case letters, digits, dots, dashes and underscores, then a path or none.
function validateSan(san: string): FieldError[] {
  if (san === '') return [required('san', 'consumers verify the workload by it')];
  const parts = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)*)$/.exec(san);
  const hasDots = parts?.[2]?.split('/').some((segment) => segment === '.' || segment === '..');
  if (parts === null || hasDots || san.length > 2048)
    return [invalid('san', san, 'must be a SPIFFE identity such as spiffe://example.org/ns/shop/sa/db')];
  return [];
}

function validateProtocols(protocols: readonly string[]): FieldError[] {
  if (protocols.length === 0) return [required('protocols', 'at least one protocol')];
  return protocols.flatMap((protocol, index) =>
    /^[A-Za-z0-9][A-Za-z0-9./_+-]{0,62}$/.test(protocol)
      ? []
      : [invalid(`protocols[${index}]`, protocol, 'must be a short protocol name such as http')],
  );
}

function validateEndpoints(endpoints: readonly SharedEndpoint[]): FieldError[] {
  if (endpoints.length === 0) return [required('endpoints', 'at least one mesh ingress')];
  return endpoints.flatMap(({ address, port }, index) => {
    const errors: FieldError[] = [];
    if (address === '') errors.push(required(`endpoints[${index}].address`));
    else if (parseIp(address) === undefined && !isHostName(address))
      errors.push(invalid(`endpoints[${index}].address`, address, 'must be an IP address or an FQDN'));
    if (!Number.isInteger(port) || port < 1 || port > 65535)
      errors.push(invalid(`endpoints[${index}].port`, port, 'must be between 1 and 65535'));
    return errors;
  });
}

/** The trust domain of a SPIFFE identity, or undefined if it is none. */
export function trustDomainOf(identity: string): string | undefined {
  return /^spiffe:\/\/([a-z0-9._-]+)(\/|$)/.exec(identity)?.[1];
}

function isDnsQueryable(name: string): boolean {
  return (
    name.length <= 253 &&
    withoutDot(name)
      .split('.')
      .every((label) => /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/.test(label))
  );
}

// All digits and dots would be an address that failed to parse, not a name.
function isHostName(name: string): boolean {
  return isDnsQueryable(name) && !/^[\d.]+$/.test(name);
}

function isUnder(name: string, domain: string): boolean {
  const suffix = withoutDot(domain).toLowerCase();
  return name === suffix || name.endsWith(`.${suffix}`);
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
