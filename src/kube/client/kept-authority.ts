// A certificate authority that is made once and kept in a Secret, and the certificates it issues. The Secret's reader and
// writer is this program alone.

import type { World } from '../../base/world.ts';
import { type CertificateUse, type Credentials, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { isAlreadyExists, isNotFound } from '../objects/api-error.ts';
import { namespaceType } from '../objects/namespace.ts';
import { type Secret, secretType } from '../objects/secret.ts';
import { getOrUndefined } from './absent.ts';
import { createIfAbsent } from './apply.ts';
import type { Client } from './client.ts';

export interface KeptAuthorityOptions {
  readonly world: Pick<World, 'clock' | 'random'>;
  readonly client: Client;
  readonly namespace: string;
  /** Name of the Secret. */
  readonly name: string;
  /** In its certificate. */
  readonly commonName: string;
  /** Life of its own certificate; ten years if absent. */
  readonly lifetimeMs?: number;
}

export const dayMs = 24 * 3_600_000;
const authorityMs = 10 * 365 * dayMs;
/** Certificates begin this long before they are made: clocks differ. */
export const backdateMs = 300_000;
const readMsMax = 3000;

export async function openKeptAuthority(options: KeptAuthorityOptions): Promise<Credentials> {
  const present = await readKeptAuthority(options);
  if (present !== undefined) return present;
  await write(options, makeAuthority(options));
  // If two processes start at the same time, one wrote it.
  return (await readKeptAuthority(options))!;
}

/** One that is kept nowhere. */
export function makeAuthority(options: KeptAuthorityOptions): Credentials {
  const key = generatePrivateKey();
  const subject = { commonName: options.commonName };
  const use = { kind: 'authority' } as const;
  return {
    certificate: issueCertificate({ subject, key, use, ...validity(options, options.lifetimeMs ?? authorityMs) }),
    key,
  };
}

export interface LeafRequest {
  readonly commonName: string;
  readonly use: CertificateUse;
  readonly lifetimeMs: number;
}

export function issueLeaf(options: KeptAuthorityOptions, authority: Credentials, request: LeafRequest): Credentials {
  const key = generatePrivateKey();
  return { certificate: certifyLeaf(options, authority, { ...request, key }), key };
}

/** For a key that is there: PEM of the private key, or of the public one alone. */
export function certifyLeaf(
  options: KeptAuthorityOptions,
  authority: Credentials,
  request: LeafRequest & { readonly key: string },
): string {
  return issueCertificate({
    subject: { commonName: request.commonName },
    key: request.key,
    issuer: { subject: { commonName: options.commonName }, key: authority.key },
    use: request.use,
    ...validity(options, request.lifetimeMs),
  });
}

/** Undefined if there is none yet. */
export async function readKeptAuthority({
  client,
  namespace,
  name,
}: Pick<KeptAuthorityOptions, 'client' | 'namespace' | 'name'>): Promise<Credentials | undefined> {
  return pairIn(await getOrUndefined<Secret>(client, secretType, { namespace, name }, { timeoutMs: readMsMax }));
}

export function pairIn(secret: Secret | undefined): Credentials | undefined {
  const certificate = textIn(secret, 'tls.crt');
  const key = textIn(secret, 'tls.key');
  return certificate === '' || key === '' ? undefined : { certificate, key };
}

export function textIn(secret: Secret | undefined, key: string): string {
  return Buffer.from(secret?.data?.[key] ?? '', 'base64').toString('utf8');
}

function validity({ world }: KeptAuthorityOptions, lifetimeMs: number) {
  const nowMs = world.clock.wallMs();
  return { serial: world.random.bytes(16), notBeforeMs: nowMs - backdateMs, notAfterMs: nowMs + lifetimeMs };
}

async function write(
  { client, namespace, name }: KeptAuthorityOptions,
  { certificate, key }: Credentials,
): Promise<void> {
  const stringData = { 'tls.crt': certificate, 'tls.key': key };
  const metadata = { name, namespace };
  const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData };
  const attempt = () => client.create(secretType, secret);
  const ignoreExisting = (error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  };
  await attempt().catch(async (error) => {
    if (!isNotFound(error)) return ignoreExisting(error);
    await createIfAbsent(client, namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await attempt().catch(ignoreExisting);
  });
}
