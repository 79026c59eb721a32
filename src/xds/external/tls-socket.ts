// TLS to a destination as Envoy's transport sockets, and the secrets they refer to. Certificates and keys are in
// secrets alone: clusters can be shown to any user. Pure.

import type { JsonObject } from '../../base/json.ts';
import { parseIp } from '../../base/net/ip.ts';
import { ownerId } from '../../external/rules/rule.ts';
import type { Speech, Target } from '../../external/rules/target.ts';
import type { TlsPlan, TrustedCa } from '../../external/rules/tls-plan.ts';
import type { XdsResource } from '../resource.ts';
import { causeOf, extension, fromAds } from './envoy-names.ts';

export interface SocketRequest {
  readonly target: Target;
  readonly plan: TlsPlan;
  /** Hostnames are the SNI, and by default the name to verify; of an address only the latter. */
  readonly peer: { readonly kind: 'hostname' } | { readonly kind: 'address'; readonly address: string };
}

const alpn: Readonly<Record<Speech, readonly string[]>> = { http1: ['http/1.1'], http2: ['h2'], bytes: [] };

export function tlsSocket({ target, plan, peer }: SocketRequest): JsonObject {
  const protocols = alpn[target.speech];
  const isVerifiedBySni = peer.kind === 'hostname' && plan.names === 'own' && plan.ca !== undefined;
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': extension('transport_sockets.tls.v3.UpstreamTlsContext'),
      ...(peer.kind === 'hostname' ? { auto_host_sni: true } : {}),
      ...(isVerifiedBySni ? { auto_sni_san_validation: true } : {}),
      allow_renegotiation: plan.mayRenegotiate,
      common_tls_context: {
        tls_params: { tls_minimum_protocol_version: plan.min, tls_maximum_protocol_version: plan.max },
        ...(protocols.length === 0 ? {} : { alpn_protocols: protocols }),
        ...(plan.client === undefined
          ? {}
          : { tls_certificate_sds_secret_configs: [clientReference(target, plan.client.usedBy !== undefined)] }),
        ...(plan.ca === undefined ? {} : { combined_validation_context: validationOf(target, plan, peer) }),
      },
    },
  };
}

// A proxy that does not get the key closes connections; it must not wait for the key when it starts.
function clientReference(target: Target, isLimited: boolean): JsonObject {
  return { name: clientSecret(target), sds_config: isLimited ? { ...fromAds, initial_fetch_timeout: '1s' } : fromAds };
}

function validationOf(target: Target, { names }: TlsPlan, peer: SocketRequest['peer']): JsonObject {
  const own = peer.kind === 'address' ? [peer.address] : [];
  const sans = names === 'any' ? [] : names === 'own' ? own : names;
  return {
    default_validation_context: sans.length === 0 ? {} : { match_typed_subject_alt_names: sans.map(sanMatcher) },
    validation_context_sds_secret_config: { name: caSecret(target), sds_config: fromAds },
  };
}

function sanMatcher(name: string): JsonObject {
  const type = name.includes('://') ? 'URI' : parseIp(name) === undefined ? 'DNS' : 'IP_ADDRESS';
  return { san_type: type, matcher: { exact: name } };
}

/** The secrets that the sockets of a target refer to. */
export function tlsSecrets(target: Target): XdsResource[] {
  if (target.destination.kind !== 'endpoints' || target.destination.tls === undefined) return [];
  const { ca, client } = target.destination.tls;
  const secret = (name: string, content: JsonObject): XdsResource => ({
    ...{ type: 'secret', name, body: { name, ...content }, causes: [causeOf(target)] },
  });
  return [
    ...(ca === undefined ? [] : [secret(caSecret(target), { validation_context: { trusted_ca: trustedCa(ca) } })]),
    ...(client === undefined
      ? []
      : [
          {
            ...secret(clientSecret(target), {
              tls_certificate: { certificate_chain: bytesOf(client.certificate), private_key: bytesOf(client.key) },
            }),
            ...(client.usedBy === undefined ? {} : { usedBy: client.usedBy }),
          },
        ]),
  ];
}

/** Where Envoy's own images, and most systems, keep the CAs that they trust. */
const systemCaFile = '/etc/ssl/certs/ca-certificates.crt';

function trustedCa(ca: TrustedCa): JsonObject {
  return ca.kind === 'system' ? { filename: systemCaFile } : bytesOf(ca.pem);
}

function caSecret({ owner }: Target): string {
  return `external:${ownerId(owner)}:ca`;
}

function clientSecret({ owner }: Target): string {
  return `external:${ownerId(owner)}:client`;
}

function bytesOf(pem: string): JsonObject {
  return { inline_bytes: Buffer.from(pem).toString('base64') };
}
