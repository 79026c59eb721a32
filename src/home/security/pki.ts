// Keeps the keys and certificates of one home under its data directory: an authority made at the first start, a
// serving certificate that renews itself while the server runs, the service accounts' signing key, and the admin's
// kubeconfig. How certificates are built is certificates.ts; who is listening on them is the edge.

import { createPrivateKey } from 'node:crypto';
import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import {
  type Credentials,
  certificateFacts,
  coversHosts,
  isIssuedBy,
  isKeyOf,
  issueCertificate,
  type Subject,
} from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { formatKubeconfig, parseKubeconfig } from './kubeconfig.ts';

const dayMs = 24 * 60 * 60 * 1000;
const authorityLifetimeMs = 10 * 365 * dayMs;
const leafLifetimeMs = 365 * dayMs;
/** Certificates begin a little in the past, for clients whose clock is behind. */
const backdateMs = 5 * 60 * 1000;
/** Timers of the runtime end after 24 days, and the wall clock may jump: look again at least this often. */
const renewalCheckMs = 6 * 60 * 60 * 1000;
const ownerOnly = 0o600;
const adminSubject = { commonName: 'admin', organizations: ['system:masters'] };

export interface PkiOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random' | 'disk'>;
  /** The home's data directory; keys go to its `pki/`, the kubeconfig beside it. */
  readonly directory: string;
  /** Host names and IP addresses under which the server is reached. */
  readonly hosts: readonly string[];
  readonly log: Log;
}

export interface ClientRequest {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly lifetimeMs: number;
}

export interface Pki {
  /** PEM. Clients trust it for the server, the server trusts it for clients. */
  readonly clientCa: string;
  /** PEM; signs the tokens of service accounts. */
  readonly serviceAccountKey: string;
  serverCredentials(): Credentials;
  /** Called with the new serving credentials each time they were renewed. Answers with how to stop that. */
  onRenewed(listener: (credentials: Credentials) => void): () => void;
  signClient(request: ClientRequest): Credentials;
  /** Writes `admin.kubeconfig` unless the one there is still good for this server. Resolves to its path. */
  adminKubeconfig(options: { readonly server: string }): Promise<string>;
  close(): void;
}

/** Every name under which a server that listens on `host` can be reached from its own machine, and the extra ones. */
export function servingHosts(options: { host: string; hostname: string; extra?: readonly string[] }): string[] {
  const listen = options.host === '0.0.0.0' || options.host === '::' || options.host === '' ? [] : [options.host];
  return [...new Set([...listen, 'localhost', '127.0.0.1', '::1', options.hostname, ...(options.extra ?? [])])];
}

export async function openPki(options: PkiOptions): Promise<Pki> {
  const authority = await openAuthority(options);
  const files = new PkiFiles(options);
  const serviceAccountKey = await files.openKey('service-account.key');
  const serving = new ServingCertificate(options, authority, files);
  await serving.open();
  const signClient = (request: ClientRequest) =>
    issueLeaf(options, authority, {
      subject: request,
      use: { kind: 'client' },
      lifetimeMs: request.lifetimeMs,
      key: generatePrivateKey(),
    });
  return {
    clientCa: authority.certificate,
    serviceAccountKey,
    serverCredentials: () => serving.credentials,
    onRenewed: (listener) => serving.onRenewed(listener),
    signClient,
    adminKubeconfig: ({ server }) => keepAdminKubeconfig(options, authority, signClient, server),
    close: () => serving.close(),
  };
}

type Authority = Credentials & { readonly subject: Subject };

const authoritySubject = { commonName: 'portolan-ca' };

async function openAuthority(options: PkiOptions): Promise<Authority> {
  const files = new PkiFiles(options);
  const [certificate, key] = [await files.read('ca.crt'), await files.read('ca.key')];
  if (certificate !== undefined && key !== undefined) {
    files.check('ca.crt', () => isKeyOf(certificate, key), 'it does not belong to ca.key');
    return { certificate, key, subject: authoritySubject };
  }
  if (certificate !== undefined) {
    throw new Error(`open ${files.path('ca.key')}: ca.crt is there and its key is not; put it back, or remove both`);
  }
  return await makeAuthority(options, files, key ?? generatePrivateKey());
}

// The key goes to disk first: a crash in between leaves a key that the next start uses, never a certificate without.
async function makeAuthority(options: PkiOptions, files: PkiFiles, key: string): Promise<Authority> {
  await files.write('ca.key', key);
  const nowMs = options.world.clock.wallMs();
  const certificate = issueCertificate({
    subject: authoritySubject,
    key,
    use: { kind: 'authority' },
    serial: options.world.random.bytes(16),
    notBeforeMs: nowMs - backdateMs,
    notAfterMs: nowMs + authorityLifetimeMs,
  });
  await files.write('ca.crt', certificate);
  options.log.info('made a certificate authority', { path: files.path('ca.crt') });
  return { certificate, key, subject: authoritySubject };
}

interface LeafRequest {
  readonly subject: Subject;
  readonly use: { readonly kind: 'client' } | { readonly kind: 'server'; readonly hosts: readonly string[] };
  readonly lifetimeMs: number;
  readonly key: string;
}

function issueLeaf({ world }: PkiOptions, authority: Authority, request: LeafRequest): Credentials {
  const nowMs = world.clock.wallMs();
  const certificate = issueCertificate({
    subject: request.subject,
    key: request.key,
    issuer: authority,
    use: request.use,
    serial: world.random.bytes(16),
    notBeforeMs: nowMs - backdateMs,
    notAfterMs: nowMs + request.lifetimeMs,
  });
  return { certificate, key: request.key };
}

/** After two thirds of its life. */
function renewalDueMs(certificate: string): number {
  const { notBeforeMs, notAfterMs } = certificateFacts(certificate);
  return notBeforeMs + Math.floor(((notAfterMs - notBeforeMs) * 2) / 3);
}

class ServingCertificate {
  readonly #options: PkiOptions;
  readonly #authority: Authority;
  readonly #files: PkiFiles;
  readonly #listeners = new Set<(credentials: Credentials) => void>();
  #credentials: Credentials = { certificate: '', key: '' };
  #timer: Timer | undefined;

  constructor(options: PkiOptions, authority: Authority, files: PkiFiles) {
    this.#options = options;
    this.#authority = authority;
    this.#files = files;
  }

  get credentials(): Credentials {
    return this.#credentials;
  }

  async open(): Promise<void> {
    const kept = await this.#readKept();
    if (kept === undefined) await this.#renew();
    else this.#credentials = kept;
    this.#schedule();
  }

  onRenewed(listener: (credentials: Credentials) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#timer?.cancel();
    this.#listeners.clear();
  }

  async #readKept(): Promise<Credentials | undefined> {
    const [certificate, key] = [await this.#files.read('server.crt'), await this.#files.read('server.key')];
    if (certificate === undefined || key === undefined) return undefined;
    return this.#isGood(certificate, key) ? { certificate, key } : undefined;
  }

  #isGood(certificate: string, key: string): boolean {
    try {
      return (
        isKeyOf(certificate, key) &&
        isIssuedBy(certificate, this.#authority.certificate) &&
        coversHosts(certificate, this.#options.hosts) &&
        this.#options.world.clock.wallMs() < renewalDueMs(certificate)
      );
    } catch {
      return false;
    }
  }

  // The running server gets the new certificate even if the disk refuses it: the next start makes another.
  async #renew(): Promise<void> {
    const { log, hosts } = this.#options;
    this.#credentials = issueLeaf(this.#options, this.#authority, {
      subject: { commonName: 'portolan-api' },
      use: { kind: 'server', hosts },
      lifetimeMs: leafLifetimeMs,
      key: generatePrivateKey(),
    });
    for (const listener of this.#listeners) listener(this.#credentials);
    try {
      await this.#files.write('server.key', this.#credentials.key);
      await this.#files.write('server.crt', this.#credentials.certificate);
      log.info('issued a serving certificate', { hosts: hosts.join(',') });
    } catch (error) {
      log.error('a new serving certificate is in use but could not be kept', { error: errorText(error) });
    }
  }

  #schedule(): void {
    const { clock, timers } = this.#options.world;
    const delayMs = Math.max(0, renewalDueMs(this.#credentials.certificate) - clock.wallMs());
    this.#timer = timers.after(Math.min(delayMs, renewalCheckMs), () => void this.#look());
  }

  async #look(): Promise<void> {
    if (this.#options.world.clock.wallMs() >= renewalDueMs(this.#credentials.certificate)) await this.#renew();
    this.#schedule();
  }
}

async function keepAdminKubeconfig(
  options: PkiOptions,
  authority: Authority,
  signClient: (request: ClientRequest) => Credentials,
  server: string,
): Promise<string> {
  const { disk, clock } = options.world;
  const path = `${options.directory}/admin.kubeconfig`;
  const kept = await disk.read(path);
  if (kept !== undefined && isKubeconfigGood(text(kept), authority, server, clock.wallMs())) return path;
  const client = signClient({ ...adminSubject, lifetimeMs: leafLifetimeMs });
  const content = formatKubeconfig({
    server,
    clusterName: 'portolan',
    userName: 'admin',
    certificateAuthority: authority.certificate,
    clientCertificate: client.certificate,
    clientKey: client.key,
  });
  await disk.write(path, Buffer.from(content), { mode: ownerOnly });
  options.log.info('wrote the admin kubeconfig', { path });
  return path;
}

function isKubeconfigGood(kept: string, authority: Authority, server: string, nowMs: number): boolean {
  const content = parseKubeconfig(kept);
  if (content === undefined || content.server !== server) return false;
  if (content.certificateAuthority !== authority.certificate) return false;
  try {
    return (
      isIssuedBy(content.clientCertificate, authority.certificate) &&
      isKeyOf(content.clientCertificate, content.clientKey) &&
      nowMs < renewalDueMs(content.clientCertificate)
    );
  } catch {
    return false;
  }
}

class PkiFiles {
  readonly #options: PkiOptions;

  constructor(options: PkiOptions) {
    this.#options = options;
  }

  path(name: string): string {
    return `${this.#options.directory}/pki/${name}`;
  }

  async read(name: string): Promise<string | undefined> {
    const bytes = await this.#options.world.disk.read(this.path(name));
    return bytes === undefined ? undefined : text(bytes);
  }

  async write(name: string, content: string): Promise<void> {
    const mode = name.endsWith('.key') ? ownerOnly : 0o644;
    await this.#options.world.disk.write(this.path(name), Buffer.from(content), { mode });
  }

  async openKey(name: string): Promise<string> {
    const kept = await this.read(name);
    if (kept !== undefined) {
      this.check(name, () => createPrivateKey(kept).asymmetricKeyType === 'ec', 'it is not a P-256 key');
      return kept;
    }
    const key = generatePrivateKey();
    await this.write(name, key);
    return key;
  }

  check(name: string, isGood: () => boolean, problem: string): void {
    const fail = (found: string, cause?: unknown) =>
      new Error(`open ${this.path(name)}: ${found}; put back the right file, or move it away to get a new one`, {
        cause,
      });
    let isFine: boolean;
    try {
      isFine = isGood();
    } catch (cause) {
      throw fail('it cannot be read as PEM', cause);
    }
    if (!isFine) throw fail(problem);
  }
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}
