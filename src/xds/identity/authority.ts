// The authority that issues the certificates of one cluster's proxies and of its discovery server: made at the first
// start and kept in a Secret of the home.

import type { World } from '../../base/world.ts';
import { type Credentials, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import type { Client } from '../../kube/client/client.ts';
import { isAlreadyExists, isNotFound } from '../../kube/objects/api-error.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { identityUri, type ProxyIdentity } from './proxy-identity.ts';

export interface AuthorityOptions {
  readonly world: Pick<World, 'clock' | 'random'>;
  readonly home: Client;
  readonly namespace: string;
  readonly cluster: string;
}

export const xdsAuthoritySecret = 'portolan-xds-authority';
/** The name in the server's certificate, whatever address it is reached at. */
export const xdsServerName = 'portolan-xds';

const dayMs = 24 * 3_600_000;
const authorityMs = 10 * 365 * dayMs;
export const serverCertificateMs = 30 * dayMs;
/** Of a proxy whose certificate nobody renews, and of one whose certificate is renewed. */
const fixedCertificateMs = 365 * dayMs;
export const renewedCertificateMs = 30 * dayMs;
const backdateMs = 300_000;

export async function openAuthority(options: AuthorityOptions): Promise<Credentials> {
  const present = await readPair(options);
  if (present !== undefined) return present;
  const key = generatePrivateKey();
  const certificate = issueCertificate({
    subject: subjectOf(options),
    key,
    use: { kind: 'authority' },
    ...validity(options, authorityMs),
  });
  await write(options, { certificate, key });
  // If two processes start at once, one of them wrote it.
  return (await readPair(options))!;
}

export function issueServer(options: AuthorityOptions, authority: Credentials, hosts: readonly string[]): Credentials {
  const use = { kind: 'server', hosts: [...new Set([xdsServerName, ...hosts])] } as const;
  const key = generatePrivateKey();
  const wanted = { commonName: xdsServerName, use, key, lifetimeMs: serverCertificateMs };
  return { certificate: certify(options, authority, wanted), key };
}

export function issueProxy(
  options: AuthorityOptions,
  authority: Credentials,
  identity: ProxyIdentity,
  lifetimeMs = fixedCertificateMs,
): Credentials {
  const key = generatePrivateKey();
  return { certificate: certifyProxy(options, authority, { identity, key, lifetimeMs }), key };
}

export interface ProxyCertificate {
  readonly identity: ProxyIdentity;
  /** PEM of the private key, or of the public one alone. */
  readonly key: string;
  readonly lifetimeMs: number;
}

export function certifyProxy(options: AuthorityOptions, authority: Credentials, wanted: ProxyCertificate): string {
  const { identity, key, lifetimeMs } = wanted;
  const use = { kind: 'identity', uris: [identityUri(identity)] } as const;
  return certify(options, authority, { commonName: identity.name.slice(0, 64), use, key, lifetimeMs });
}

function certify(
  options: AuthorityOptions,
  authority: Credentials,
  wanted: {
    readonly commonName: string;
    readonly use: Parameters<typeof issueCertificate>[0]['use'];
    readonly key: string;
    readonly lifetimeMs: number;
  },
): string {
  return issueCertificate({
    subject: { commonName: wanted.commonName },
    key: wanted.key,
    issuer: { subject: subjectOf(options), key: authority.key },
    use: wanted.use,
    ...validity(options, wanted.lifetimeMs),
  });
}

function subjectOf({ cluster }: AuthorityOptions) {
  return { commonName: `Portolan xDS ${cluster}` };
}

function validity({ world }: AuthorityOptions, lifetimeMs: number) {
  const nowMs = world.clock.wallMs();
  return { serial: world.random.bytes(16), notBeforeMs: nowMs - backdateMs, notAfterMs: nowMs + lifetimeMs };
}

async function readPair({ home, namespace }: AuthorityOptions): Promise<Credentials | undefined> {
  try {
    return pairIn(await home.get<Secret>(secretType, { namespace, name: xdsAuthoritySecret }));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

export function pairIn(secret: Secret | undefined): Credentials | undefined {
  const certificate = textIn(secret, 'tls.crt');
  const key = textIn(secret, 'tls.key');
  return certificate === '' || key === '' ? undefined : { certificate, key };
}

export function textIn(secret: Secret | undefined, key: string): string {
  return Buffer.from(secret?.data?.[key] ?? '', 'base64').toString('utf8');
}

async function write({ home, namespace }: AuthorityOptions, { certificate, key }: Credentials): Promise<void> {
  const metadata = { name: xdsAuthoritySecret, namespace };
  const stringData = { 'tls.crt': certificate, 'tls.key': key };
  const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData };
  const attempt = () => home.create(secretType, secret);
  const ignoreExisting = (error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  };
  await attempt().catch(async (error) => {
    if (!isNotFound(error)) return ignoreExisting(error);
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    await home.create(namespaceType, object).catch(ignoreExisting);
    await attempt().catch(ignoreExisting);
  });
}
