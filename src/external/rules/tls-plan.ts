// How TLS is originated to a destination, with its certificates and keys at hand: or why it cannot be. Never emits
// what Envoy would refuse: certificates and keys are read here as Envoy reads them. Pure; contents are never repeated.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { formatTime } from '../../kube/objects/conditions.ts';
import type { DataSource, ExternalTls, TlsVersion, WorkloadSelector } from '../kinds/mesh-external-service.ts';

/** The contents of a Secret's key in base64; undefined if there is none. */
export type SecretReader = (name: string, key: string) => string | undefined;

export interface TlsPlan {
  readonly min: Exclude<TlsVersion, 'TLS_AUTO'>;
  readonly max: Exclude<TlsVersion, 'TLS_AUTO'>;
  readonly mayRenegotiate: boolean;
  /** Absent: the server is not verified at all, as the resource wants it. */
  readonly ca?: TrustedCa;
  readonly client?: {
    readonly certificate: string;
    readonly key: string;
    /** Absent: every proxy gets the key. */
    readonly usedBy?: readonly WorkloadSelector[];
  };
  /** `own`: the endpoint's own name or address; `any`: no name is checked. */
  readonly names: 'own' | 'any' | readonly string[];
}

/** Certificates in PEM, or those that the proxy's own system trusts. */
export type TrustedCa = { readonly kind: 'given'; readonly pem: string } | { readonly kind: 'system' };

export type TlsReading =
  | { readonly kind: 'plain' }
  | { readonly kind: 'tls'; readonly plan: TlsPlan }
  | { readonly kind: 'broken'; readonly problems: readonly string[] };

export interface SecretReference {
  readonly name: string;
  readonly key: string;
}

const defaultKeys = { caCert: 'ca.crt', clientCert: 'tls.crt', clientKey: 'tls.key' } as const;
type SourceField = keyof typeof defaultKeys;

export function secretReferences(tls: ExternalTls | undefined): SecretReference[] {
  if (tls === undefined || tls.enabled === false) return [];
  const fields = Object.keys(defaultKeys) as SourceField[];
  return fields.flatMap((field) => {
    const { secret } = tls[field] ?? {};
    return secret === undefined ? [] : [referenceOf(secret, field)];
  });
}

function referenceOf(secret: string, field: SourceField): SecretReference {
  const [name = '', key = defaultKeys[field]] = secret.split('/');
  return { name, key };
}

export function readTls(tls: ExternalTls | undefined, secrets: SecretReader): TlsReading {
  if (tls === undefined || tls.enabled === false) return { kind: 'plain' };
  const problems: string[] = [];
  const read = (field: SourceField) => readSource(tls[field], field, secrets, problems);
  const [pem, certificate, key] = [read('caCert'), read('clientCert'), read('clientKey')];
  if (pem !== undefined) checkCertificates(pem, 'caCert', problems);
  const ca = trustedCa(tls, pem);
  if (certificate !== undefined) checkCertificates(certificate, 'clientCert', problems);
  if (certificate !== undefined && key !== undefined) checkPair(certificate, key, problems);
  const skip = tls.verification?.skip === true;
  if (ca === undefined && !skip && problems.length === 0) problems.push('tls.caCert: the server could not be verified');
  if (problems.length > 0) return { kind: 'broken', problems };
  const usedBy = tls.usedBy ?? undefined;
  const sans = tls.verification?.subjectAltNames ?? [];
  const plan: TlsPlan = {
    ...versionsOf(tls),
    mayRenegotiate: tls.allowRenegotiation === true,
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined || key === undefined
      ? {}
      : { client: { certificate, key, ...(usedBy === undefined ? {} : { usedBy }) } }),
    names: skip ? 'any' : sans.length > 0 ? sans : 'own',
  };
  return { kind: 'tls', plan };
}

function trustedCa({ caCert }: ExternalTls, pem: string | undefined): TrustedCa | undefined {
  if (caCert?.system === true) return { kind: 'system' };
  return pem === undefined ? undefined : { kind: 'given', pem };
}

const versionOrder = ['TLSv1_0', 'TLSv1_1', 'TLSv1_2', 'TLSv1_3'] as const;

// Envoy's own default for upstreams ends at 1.2, and min above max is accepted and fails every handshake: both are written.
function versionsOf({ version }: ExternalTls): Pick<TlsPlan, 'min' | 'max'> {
  const wanted = (end: 'min' | 'max') => (version?.[end] === 'TLS_AUTO' ? undefined : version?.[end]);
  const max = wanted('max') ?? 'TLSv1_3';
  const min = wanted('min') ?? versionOrder[Math.min(2, versionOrder.indexOf(max))]!;
  return { min, max };
}

function readSource(
  source: DataSource | undefined,
  field: SourceField,
  secrets: SecretReader,
  problems: string[],
): string | undefined {
  if (source?.inlineString !== undefined) return source.inlineString;
  if (source?.inline !== undefined) return Buffer.from(source.inline, 'base64').toString('utf8');
  if (source?.secret === undefined) return undefined;
  const { name, key } = referenceOf(source.secret, field);
  const data = secrets(name, key);
  if (data === undefined) problems.push(`tls.${field}: there is no Secret ${name} with key ${key}`);
  return data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8');
}

/** A system's whole store has about 150. */
const certificatesMax = 500;

function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
}

function checkCertificates(pem: string, field: SourceField, problems: string[]): void {
  const blocks = certificatesIn(pem);
  if (blocks.length === 0) problems.push(`tls.${field}: holds no PEM certificate`);
  if (blocks.length > certificatesMax)
    return void problems.push(`tls.${field}: holds ${blocks.length} certificates, more than ${certificatesMax}`);
  for (const block of blocks)
    if (parse(block) === undefined) problems.push(`tls.${field}: a certificate cannot be read`);
}

function checkPair(certificate: string, key: string, problems: string[]): void {
  const first = parse(certificatesIn(certificate)[0] ?? '');
  const privateKey = tryTo(() => createPrivateKey(key));
  if (privateKey === undefined) problems.push('tls.clientKey: is no PEM private key without a passphrase');
  if (first === undefined || privateKey === undefined) return;
  if (!first.checkPrivateKey(privateKey)) problems.push('tls.clientKey: is not the key of clientCert');
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = privateKey;
  const isLongRsa = type === 'rsa' && (details?.modulusLength ?? 0) >= 2048;
  const isCurve = type === 'ec' && ['prime256v1', 'secp384r1', 'secp521r1'].includes(details?.namedCurve ?? '');
  if (!isLongRsa && !isCurve)
    problems.push('tls.clientKey: must be RSA of 2048 bits or more, or EC P-256, P-384, P-521');
}

/** Certificates that are expired, or not valid yet: they are used, and reported. */
export function expiredCertificates(plan: TlsPlan, nowMs: number): string[] {
  const texts: [SourceField, string | undefined][] = [
    ['caCert', plan.ca?.kind === 'given' ? plan.ca.pem : undefined],
    ['clientCert', plan.client?.certificate],
  ];
  return texts.flatMap(([field, pem = '']) =>
    certificatesIn(pem)
      .map(parse)
      .flatMap((certificate) => {
        if (certificate === undefined) return [];
        const [fromMs, toMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
        if (nowMs > toMs) return [`tls.${field}: expired at ${formatTime(toMs)}`];
        return nowMs < fromMs ? [`tls.${field}: not valid before ${formatTime(fromMs)}`] : [];
      }),
  );
}

function parse(pem: string): X509Certificate | undefined {
  return tryTo(() => new X509Certificate(pem));
}

function tryTo<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}
