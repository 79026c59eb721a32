// Certificates and roots of the gateway and of the proxies that connect to it, as Envoy takes them by SDS. The roots of a
// member are confined to its own trust domain. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { Credentials } from '../../base/x509/certificates.ts';
import { typed } from '../bodies.ts';
import type { XdsResource } from '../resource.ts';
import { gatewayIdentity } from './names.ts';

export const tls13: JsonObject = {
  tls_minimum_protocol_version: 'TLSv1_3',
  tls_maximum_protocol_version: 'TLSv1_3',
};

/** The certificate of this cluster's gateway. */
export const gatewaySecret = 'gateway/identity';
/** A proxy's own, which it shows to gateways of other clusters. */
export const nodeSecret = 'gateway/node';

/** At a gateway: the proxies of one member. */
export function memberSecret(id: string): string {
  return `gateway/callers/${id}`;
}

/** At a proxy: the gateways of one member. */
export function remoteSecret(id: string): string {
  return `gateway/trust/${id}`;
}

export function certificateResource(name: string, { certificate, key }: Credentials): XdsResource {
  const tls_certificate = { certificate_chain: { inline_string: certificate }, private_key: { inline_string: key } };
  return { type: 'secret', name, body: { name, tls_certificate }, causes: [] };
}

export interface MemberTrust {
  readonly id: string;
  readonly domain: string;
  /** PEM. Two while a root is being replaced. */
  readonly roots: readonly string[];
}

export function callersTrust({ id, domain, roots }: MemberTrust): XdsResource {
  // A query or a fragment behind it is no part of an identity.
  const regex = `spiffe://${domain.replaceAll('.', '\\.')}/(ns/[a-z0-9-]+/)?node/[A-Za-z0-9._-]+`;
  return trustResource(memberSecret(id), { domain, roots, matcher: { safe_regex: { regex } } });
}

export function gatewayTrust({ id, domain, roots }: MemberTrust): XdsResource {
  return trustResource(remoteSecret(id), { domain, roots, matcher: { exact: gatewayIdentity(domain) } });
}

interface Trusted extends Omit<MemberTrust, 'id'> {
  readonly matcher: JsonObject;
}

function trustResource(name: string, { domain, roots, matcher }: Trusted): XdsResource {
  const inline_string = roots.map((pem) => `${pem.trim()}\n`).join('');
  const trust_domains = [{ name: domain, trust_bundle: { inline_string } }];
  const validator = typed('transport_sockets.tls.v3.SPIFFECertValidatorConfig', { trust_domains });
  const validation_context = {
    match_typed_subject_alt_names: [{ san_type: 'URI', matcher }],
    custom_validator_config: { name: 'envoy.tls.cert_validator.spiffe', typed_config: validator },
  };
  return { type: 'secret', name, body: { name, validation_context }, causes: [] };
}
