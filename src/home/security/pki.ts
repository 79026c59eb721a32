// Keeps the keys and certificates of one home under its data directory: an authority made at the first start, a
// serving certificate that renews itself while the server runs, the service accounts' signing key, and the admin's
// kubeconfig. How certificates are built is certificates.ts; who is listening on them is the edge; how the authority is
// replaced by another one is authority.ts, and what it left on disk is followed here.

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
import { type Authority, backdateMs, openAuthority } from './authority.ts';
import { formatKubeconfig, type KubeconfigContent, parseKubeconfig } from './kubeconfig.ts';
import { PkiFiles } from './pki-files.ts';

const dayMs = 24 * 60 * 60 * 1000;
const leafLifetimeMs = 365 * dayMs;
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
  /** Name of the home in its kubeconfig; the one written before if absent, else `defaultName`. */
  readonly name?: string;
  readonly defaultName?: string;
  readonly log: Log;
  /** How often to look whether `portolan api rotate-ca` has done something; never when absent. */
  readonly authorityLookMs?: number;
}

interface ClientRequest {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly lifetimeMs: number;
}

export interface Pki {
  /** PEM of one authority, or of two while one replaces the other. Clients trust them for the server, the server trusts
   *  them for clients. */
  readonly clientCa: string;
  /** When the authority that issues certificates ends. */
  authorityEndsMs(): number;
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
  const files = new PkiFiles(options);
  const serviceAccountKey = await files.openKey('service-account.key');
  let authority = await openAuthority(options, files);
  const serving = new ServingCertificate(options, () => authority, files);
  await serving.open();
  let server: string | undefined;
  let timer: Timer | undefined;
  let isClosed = false;
  const signClient = (request: ClientRequest) =>
    issueLeaf(options, authority, {
      subject: request,
      use: { kind: 'client' },
      lifetimeMs: request.lifetimeMs,
      key: generatePrivateKey(),
    });
  const look = async () => {
    try {
      const now = await openAuthority(options, files);
      if (now.trusted !== authority.trusted || now.certificate !== authority.certificate) {
        authority = now;
        await serving.authorityChanged();
        if (server !== undefined) await keepAdminKubeconfig(options, authority, signClient, server);
        options.log.info('the certificate authorities have changed', { trusted: countCertificates(now.trusted) });
      }
    } catch (error) {
      options.log.error('the certificate authority cannot be read; the one in use stays', { error: errorText(error) });
    }
    lookLater();
  };
  const lookLater = () => {
    const { authorityLookMs } = options;
    if (authorityLookMs !== undefined && !isClosed)
      timer = options.world.timers.after(authorityLookMs, () => void look());
  };
  lookLater();
  return {
    get clientCa() {
      return authority.trusted;
    },
    authorityEndsMs: () => certificateFacts(authority.certificate).notAfterMs,
    serviceAccountKey,
    serverCredentials: () => serving.credentials,
    onRenewed: (listener) => serving.onRenewed(listener),
    signClient,
    adminKubeconfig: (asked) => {
      server = asked.server;
      return keepAdminKubeconfig(options, authority, signClient, server);
    },
    close: () => {
      isClosed = true;
      timer?.cancel();
      serving.close();
    },
  };
}

function countCertificates(pem: string): number {
  return pem.split('-----BEGIN CERTIFICATE-----').length - 1;
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
  readonly #authority: () => Authority;
  readonly #files: PkiFiles;
  readonly #listeners = new Set<(credentials: Credentials) => void>();
  #credentials: Credentials = { certificate: '', key: '' };
  #timer: Timer | undefined;

  constructor(options: PkiOptions, authority: () => Authority, files: PkiFiles) {
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

  /** Listeners get credentials of the current authority and read the trusted ones again. */
  async authorityChanged(): Promise<void> {
    const { certificate, key } = this.#credentials;
    if (!this.#isGood(certificate, key)) return this.#renew();
    for (const listener of this.#listeners) listener(this.#credentials);
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
        isIssuedBy(certificate, this.#authority().certificate) &&
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
    this.#credentials = issueLeaf(this.#options, this.#authority(), {
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
  const before = kept && parseKubeconfig(text(kept));
  const name = options.name ?? before?.name ?? options.defaultName ?? 'portolan';
  if (before && isKubeconfigGood(before, authority, { name, server }, clock.wallMs())) return path;
  const client = signClient({ ...adminSubject, lifetimeMs: leafLifetimeMs });
  const content = formatKubeconfig({
    server,
    name,
    certificateAuthority: authority.trusted,
    clientCertificate: client.certificate,
    clientKey: client.key,
  });
  await disk.write(path, Buffer.from(content), { mode: ownerOnly });
  options.log.info('wrote the admin kubeconfig', { path });
  return path;
}

/** Whether the running home has followed the files of a rotation: its kubeconfig shows that. */
export async function isRotationApplied(options: Omit<PkiOptions, 'hosts'>): Promise<boolean> {
  const { disk, clock } = options.world;
  const kept = await disk.read(`${options.directory}/admin.kubeconfig`);
  const content = kept && parseKubeconfig(text(kept));
  const authority = await openAuthority(options, new PkiFiles(options));
  return content !== undefined && isKubeconfigGood(content, authority, content, clock.wallMs());
}

function isKubeconfigGood(
  content: KubeconfigContent,
  authority: Authority,
  { name, server }: Pick<KubeconfigContent, 'name' | 'server'>,
  nowMs: number,
): boolean {
  if (content.server !== server || content.name !== name) return false;
  if (content.certificateAuthority !== authority.trusted) return false;
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

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}
