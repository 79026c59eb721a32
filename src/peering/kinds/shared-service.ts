// A service that one mesh shares with another: the required fields, and the consumer's checks. Pure. The key is
// (peer, id).

import { isDnsUnder, withoutFinalDot } from '../../base/dns/labels.ts';
import { parseIp } from '../../base/net/ip.ts';
import { parseSpiffeId } from '../../base/x509/spiffe-id.ts';
import { type FieldError, forbidden, invalid, required, tooLong } from '../../kube/objects/field-error.ts';
import { type IngressBounds, whyNotIngress } from './ingress-address.ts';

export interface SharedEndpoint {
  readonly address: string;
  readonly port: number;
  /** Only in the later draft: instances select endpoints by them. */
  readonly labels?: readonly string[];
  readonly description?: string;
}

/** A way to the service, in the later draft. SNI, HOSTNAME and PORT in its metadata have a meaning. */
export interface SharedInstance {
  readonly id: string;
  readonly protocol: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Labels of endpoints; one that matches none stands for all endpoints. */
  readonly endpointSelector: readonly string[];
  readonly description?: string;
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
  /** Further identities that the workload may have; only the later draft has room for them. */
  readonly moreSans?: readonly string[];
  readonly protocols: readonly string[];
  /** Ingresses of the owner's mesh. */
  readonly endpoints: readonly SharedEndpoint[];
  readonly instances?: readonly SharedInstance[];
}

/** The bounds on what a peer may claim. */
export interface ClaimBounds {
  /** Domains under which a peer may claim names; `*` allows any. */
  readonly allowedDomains: readonly string[];
  /** Our own zones, which no peer may claim a name in. */
  readonly ownZones: readonly string[];
  /** Trust domains that its SANs may name; any if left out. */
  readonly trustDomains?: readonly string[];
  /** Any ingress if left out. */
  readonly ingress?: IngressBounds;
}

const idLengthMax = 255;

/** Some senders write the SAN as a certificate viewer prints it, with its type in front. */
export function normalizeSan(san: string): string {
  return san.startsWith('URI:') ? san.slice('URI:'.length) : san;
}

export function validateSharedService(service: SharedService, bounds: ClaimBounds): FieldError[] {
  return [
    ...validateId(service),
    ...validateFqdn(service.fqdn, bounds),
    ...validateSan(service.san, 'san', bounds),
    ...(service.moreSans ?? []).flatMap((san, index) => validateSan(san, `sans[${index + 1}]`, bounds)),
    ...validateProtocols(service.protocols),
    ...validateEndpoints(service.endpoints, bounds),
    ...(service.instances ?? []).flatMap(validateInstance),
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

function validateFqdn(fqdn: string, { allowedDomains, ownZones }: ClaimBounds): FieldError[] {
  if (fqdn === '') return [required('fqdn', 'the name under which consumers find the service')];
  const name = withoutFinalDot(fqdn).toLowerCase();
  if (!isDnsQueryable(name)) return [invalid('fqdn', fqdn, 'must be a DNS name')];
  const own = ownZones.find((zone) => isDnsUnder(name, zone));
  if (own !== undefined) return [forbidden('fqdn', `${fqdn} is inside our own zone ${own}, which no peer may name`)];
  if (allowedDomains.includes('*') || allowedDomains.some((domain) => isDnsUnder(name, domain))) return [];
  const allowed = allowedDomains.length === 0 ? 'none' : allowedDomains.join(', ');
  return [forbidden('fqdn', `${fqdn} is outside the domains this peer may name (${allowed})`)];
}

function validateSan(san: string, field: string, { trustDomains }: ClaimBounds): FieldError[] {
  if (san === '') return [required(field, 'consumers verify the workload by it')];
  const domain = trustDomainOf(san);
  if (domain === undefined)
    return [invalid(field, san, 'must be a SPIFFE identity such as spiffe://example.org/ns/shop/sa/db')];
  if (trustDomains === undefined || trustDomains.includes(domain)) return [];
  return [forbidden(field, `${san} is outside the trust domain of this peer (${trustDomains.join(', ')})`)];
}

function validateProtocols(protocols: readonly string[]): FieldError[] {
  if (protocols.length === 0) return [required('protocols', 'at least one protocol')];
  return protocols.flatMap((protocol, index) =>
    /^[A-Za-z0-9][A-Za-z0-9./_+-]{0,62}$/.test(protocol)
      ? []
      : [invalid(`protocols[${index}]`, protocol, 'must be a short protocol name such as http')],
  );
}

function validateEndpoints(endpoints: readonly SharedEndpoint[], { ingress }: ClaimBounds): FieldError[] {
  if (endpoints.length === 0) return [required('endpoints', 'at least one mesh ingress')];
  return endpoints.flatMap(({ address, port }, index) => {
    const errors: FieldError[] = [];
    if (address === '') errors.push(required(`endpoints[${index}].address`));
    else if (parseIp(address) === undefined && !isHostName(address))
      errors.push(invalid(`endpoints[${index}].address`, address, 'must be an IP address or an FQDN'));
    else {
      const why = ingress && whyNotIngress(address, ingress);
      if (why !== undefined) errors.push(forbidden(`endpoints[${index}].address`, why));
    }
    if (!Number.isInteger(port) || port < 1 || port > 65535)
      errors.push(invalid(`endpoints[${index}].port`, port, 'must be between 1 and 65535'));
    return errors;
  });
}

function validateInstance({ metadata }: SharedInstance, index: number): FieldError[] {
  const { SNI: sni, HOSTNAME: hostname, PORT: port } = metadata;
  const field = (key: string) => `instances[${index}].metadata[${key}]`;
  const errors: FieldError[] = [];
  // The first instance's SNI is the service's own, and is checked there.
  if (index > 0 && sni && !isDnsQueryable(sni)) errors.push(invalid(field('SNI'), sni, 'must be usable as SNI'));
  if (hostname && !isDnsQueryable(hostname)) errors.push(invalid(field('HOSTNAME'), hostname, 'must be a DNS name'));
  const isPort = !port || (/^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65535);
  if (!isPort) errors.push(invalid(field('PORT'), port, 'must be between 1 and 65535'));
  return errors;
}

/** The trust domain of a SPIFFE identity, or undefined if it is none. */
export function trustDomainOf(identity: string): string | undefined {
  return parseSpiffeId(identity)?.domain;
}

function isDnsQueryable(name: string): boolean {
  return (
    name.length <= 253 &&
    withoutFinalDot(name)
      .split('.')
      .every((label) => /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/.test(label))
  );
}

// All digits and dots would be an address that failed to parse, not a name.
function isHostName(name: string): boolean {
  return isDnsQueryable(name) && !/^[\d.]+$/.test(name);
}
