// The certificate of this mesh for its peers: from PEM files or a Secret that is given, or else from an authority of
// its own that is made at the first start and kept in a Secret.

import { X509Certificate } from 'node:crypto';
import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';
import { coversHosts, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import type { Client } from '../../kube/client/client.ts';
import { takeOverSecret } from '../../kube/client/take-over-secret.ts';
import { isAlreadyExists, isNotFound } from '../../kube/objects/api-error.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { meshIdentity } from '../kinds/proxy-identity.ts';
import { authoritySecret, certificateSecret } from '../kinds/secrets.ts';
import { type CredentialsSource, type OwnCredentials, whatIsWrongWithPair } from './credentials.ts';

export interface MeshIdentity extends CredentialsSource {
  /** PEM of the roots by which peers know us. */
  bundle(): string;
  stop(): void;
}

export interface IdentityOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random' | 'disk'>;
  readonly log: Log;
  readonly client: Client;
  readonly namespace: string;
  /** Where an earlier version kept its Secrets. */
  readonly formerNamespace?: string;
  readonly trustDomain: string;
  /** Names and addresses that clients reach us at: stock gRPC clients verify them. */
  readonly hosts?: readonly string[];
  /** PEM files, looked at again and again; the Secrets of this home if absent. */
  readonly files?: { readonly certificate: string; readonly key: string; readonly bundle: string };
}

const lookEveryMs = 10_000;
const dayMs = 24 * 3_600_000;
const authorityLifetimeMs = 10 * 365 * dayMs;
const leafLifetimeMs = 30 * dayMs;
const backdateMs = 300_000;
const hostsMax = 16;

interface Material extends OwnCredentials {
  readonly bundle: string;
}

export async function openIdentity(options: IdentityOptions): Promise<MeshIdentity> {
  const read = async () => checked(await (options.files === undefined ? fromSecrets(options) : fromFiles(options)));
  if (options.files === undefined) await takeOver(options);
  let material = await read();
  const handlers = new Set<() => void>();
  const stop = repeat(options.world.timers, { everyMs: lookEveryMs }, async () => {
    try {
      const next = await read();
      const hasChanged = !isSameJson(next, material);
      material = next;
      if (hasChanged) for (const handler of handlers) handler();
    } catch (error) {
      // The old one is better than none.
      options.log.warn('our certificate for peers cannot be read now', { error: errorText(error) });
    }
  });
  return {
    current: () => material,
    bundle: () => material.bundle,
    onChanged: (handler) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    stop,
  };
}

async function takeOver({ client, namespace, formerNamespace = namespace }: IdentityOptions): Promise<void> {
  for (const name of [authoritySecret, certificateSecret])
    await takeOverSecret(client, { name, from: formerNamespace, to: namespace });
}

async function fromFiles({ world, files }: IdentityOptions): Promise<Material> {
  const text = async (path: string) => {
    const bytes = await world.disk.read(path);
    if (bytes === undefined) throw new Error(`${path}: there is no such file`);
    return Buffer.from(bytes).toString('utf8');
  };
  const { certificate, key, bundle } = files!;
  return { certificate: await text(certificate), key: await text(key), bundle: await text(bundle) };
}

// Files are written one after the other: between the two, what is there must not take the place of a good pair.
function checked(material: Material): Material {
  const wrong = whatIsWrongWithPair(material);
  if (wrong !== '') throw new Error(`our certificate for peers: ${wrong}`);
  return material;
}

async function fromSecrets(options: IdentityOptions): Promise<Material> {
  const present = await readSecret(options, certificateSecret);
  if (present !== undefined && !isDue(options, present)) return materialOf(present);
  if (present !== undefined && present.metadata.annotations?.[managedAnnotation] === undefined)
    return materialOf(present);
  const authority = await openAuthority(options);
  const leaf = issueLeaf(options, authority, present === undefined ? [] : hostsIn(textIn(present, 'tls.crt')));
  await writeSecret(options, certificateSecret, {
    'tls.crt': leaf.certificate,
    'tls.key': leaf.key,
    'ca.crt': authority.certificate,
  });
  return materialOf((await readSecret(options, certificateSecret))!);
}

/** On certificates that we renew ourselves. */
const managedAnnotation = 'portolan.dev/issued-by';

function isDue({ world, hosts = [] }: IdentityOptions, secret: Secret): boolean {
  const certificate = textIn(secret, 'tls.crt');
  if (!coversHosts(certificate, hosts)) return true;
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  const renewAtMs = validFromDate.getTime() + ((validToDate.getTime() - validFromDate.getTime()) * 2) / 3;
  return world.clock.wallMs() > renewAtMs;
}

async function openAuthority(options: IdentityOptions): Promise<OwnCredentials> {
  const present = await readSecret(options, authoritySecret);
  if (present !== undefined) return { certificate: textIn(present, 'tls.crt'), key: textIn(present, 'tls.key') };
  const key = generatePrivateKey();
  const certificate = issueCertificate({
    subject: subjectOf(options),
    key,
    use: { kind: 'authority' },
    ...validity(options, authorityLifetimeMs),
  });
  await writeSecret(options, authoritySecret, { 'tls.crt': certificate, 'tls.key': key });
  // If two processes start at once, one of them wrote it.
  const kept = (await readSecret(options, authoritySecret))!;
  return { certificate: textIn(kept, 'tls.crt'), key: textIn(kept, 'tls.key') };
}

/** Several processes may share the certificate, each with an address of its own: hosts are added, not replaced. */
function hostsIn(certificate: string): string[] {
  const names = new X509Certificate(certificate).subjectAltName?.split(', ') ?? [];
  const hosts = names.flatMap((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1] ?? []);
  return hosts.slice(-hostsMax);
}

function issueLeaf(options: IdentityOptions, authority: OwnCredentials, before: readonly string[]): OwnCredentials {
  const key = generatePrivateKey();
  const certificate = issueCertificate({
    subject: { commonName: 'portolan peering' },
    key,
    issuer: { subject: subjectOf(options), key: authority.key },
    use: {
      kind: 'identity',
      uris: [meshIdentity(options.trustDomain)],
      hosts: [...new Set([...before, ...(options.hosts ?? [])])],
    },
    ...validity(options, leafLifetimeMs),
  });
  return { certificate, key };
}

function subjectOf({ trustDomain }: IdentityOptions) {
  return { commonName: `Portolan mesh ${trustDomain}` };
}

function validity({ world }: IdentityOptions, lifetimeMs: number) {
  const nowMs = world.clock.wallMs();
  return {
    serial: world.random.bytes(16),
    notBeforeMs: nowMs - backdateMs,
    notAfterMs: nowMs + lifetimeMs,
  };
}

async function readSecret({ client, namespace }: IdentityOptions, name: string): Promise<Secret | undefined> {
  try {
    return await client.get<Secret>(secretType, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function writeSecret(options: IdentityOptions, name: string, texts: Record<string, string>): Promise<void> {
  const { client, namespace } = options;
  const metadata = { name, namespace, annotations: { [managedAnnotation]: 'portolan-peering' } };
  const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData: texts };
  try {
    await client.create(secretType, secret);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    if (name === authoritySecret) return;
    const body = { stringData: texts };
    await client.patch(secretType, { namespace, name }, { kind: 'merge', body });
  }
}

function materialOf(secret: Secret): Material {
  return {
    certificate: textIn(secret, 'tls.crt'),
    key: textIn(secret, 'tls.key'),
    bundle: textIn(secret, 'ca.crt'),
  };
}

function textIn(secret: Secret, key: string): string {
  return Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8');
}
