// The file in which a proxy finds its own certificate and key: one secret as Envoy reads it from disk, replaced in one step
// when it is renewed. Pure.

import { type JsonObject, valueIn } from '../../base/json.ts';
import { type Credentials, certificateFacts } from '../../base/x509/certificates.ts';

/** In the folder of a proxy: what `envoy -c` starts with, and the certificate that it refers to. */
export const bootstrapFile = 'envoy.json';
/** In the folder of a gRPC client: its bootstrap, and the PEM files that this refers to. */
export const grpcFile = 'grpc.json';
const pemFiles = { certificate: 'certificate.pem', key: 'key.pem', roots: 'roots.pem' };
/** A gRPC client reads its files again so often. */
const refreshInterval = '60s';
export const identityFile = 'identity.json';
/** Path at the discovery server where a proxy that is still trusted gets its next certificate. */
export const renewalPath = '/portolan/xds/v1/renew';
const secretName = 'portolan-identity';
const secretType = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret';

export function identityText({ certificate, key }: Credentials): string {
  const tls_certificate = { certificate_chain: { inline_string: certificate }, private_key: { inline_string: key } };
  return JSON.stringify({ resources: [{ '@type': secretType, name: secretName, tls_certificate }] });
}

/** A certificate and its key are replaced one after the other; a client that reads them in between keeps those before. */
export function pemTexts({
  certificate,
  key,
}: Credentials): readonly { readonly file: string; readonly text: string }[] {
  return [
    { file: pemFiles.key, text: key },
    { file: pemFiles.certificate, text: certificate },
  ];
}

export function rootsText(roots: string): { readonly file: string; readonly text: string } {
  return { file: pemFiles.roots, text: roots };
}

/** Credentials of a gRPC client's channel (gRFC A65). */
export function tlsChannel(folder: string): JsonObject {
  const path = (file: string) => `${folder}/${file}`;
  return {
    type: 'tls',
    config: {
      certificate_file: path(pemFiles.certificate),
      private_key_file: path(pemFiles.key),
      ca_certificate_file: path(pemFiles.roots),
      refresh_interval: refreshInterval,
    },
  };
}

/** Undefined for a text that holds no certificate and key. */
export function parseIdentity(text: string): Credentials | undefined {
  const part = (name: string) => valueIn(text, ['resources', 0, 'tls_certificate', name, 'inline_string']);
  const [certificate, key] = [part('certificate_chain'), part('private_key')];
  return typeof certificate === 'string' && typeof key === 'string' ? { certificate, key } : undefined;
}

/** Refers to the secret in the file; Envoy reads it again whenever the file is replaced. */
export function identityReference(path: string): JsonObject {
  return { name: secretName, sds_config: { path_config_source: { path }, resource_api_version: 'V3' } };
}

export interface Life {
  readonly startMs: number;
  readonly endMs: number;
}

export function lifeOf(certificate: string): Life {
  const { notBeforeMs, notAfterMs } = certificateFacts(certificate);
  return { startMs: notBeforeMs, endMs: notAfterMs };
}

/** When two thirds of it are over. */
export function renewAtMs({ startMs, endMs }: Life): number {
  return startMs + ((endMs - startMs) * 2) / 3;
}
