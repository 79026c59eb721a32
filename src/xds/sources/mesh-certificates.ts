// Certificates that this mesh's authority for peers issues to its proxies: in the names of workloads that have none of their
// own, for an ingress to answer with, and in a proxy's own name, for its calls. Each is made once and again when two thirds of
// its time are over or the authority changed.

import { BoundedCache } from '../../base/bounded-cache.ts';
import type { World } from '../../base/world.ts';
import { type Credentials, certificateFacts, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';

export interface MeshCertificatesOptions {
  /** Neither opens a stream between meshes: that takes the certificate of peering itself. */
  readonly only: 'client' | 'server';
  readonly commonName: string;
  readonly lifetimeMs: number;
  readonly keptMax: number;
}

interface Issued extends Credentials {
  readonly authority: string;
  readonly renewAtMs: number;
}

const dayMs = 24 * 3_600_000;
const backdateMs = 300_000;

export const ofWorkloads: MeshCertificatesOptions = {
  only: 'server',
  commonName: 'portolan workload',
  lifetimeMs: 30 * dayMs,
  keptMax: 100_000,
};

/** A stolen one is good until it ends. */
export const ofProxies: MeshCertificatesOptions = {
  only: 'client',
  commonName: 'portolan proxy',
  lifetimeMs: 7 * dayMs,
  keptMax: 10_000,
};

export class MeshCertificates {
  readonly #world: Pick<World, 'clock' | 'random'>;
  readonly #options: MeshCertificatesOptions;
  readonly #issued: BoundedCache<Issued>;

  constructor(world: Pick<World, 'clock' | 'random'>, options: MeshCertificatesOptions) {
    this.#world = world;
    this.#options = options;
    this.#issued = new BoundedCache(options.keptMax);
  }

  /** Each holder has a key of its own. */
  of(uri: string, authority: Credentials, holder = ''): Credentials {
    const nowMs = this.#world.clock.wallMs();
    const known = this.#issued.get(`${uri} ${holder}`);
    if (known !== undefined && known.authority === authority.certificate && nowMs < known.renewAtMs) return known;
    const { only, commonName, lifetimeMs } = this.#options;
    const key = generatePrivateKey();
    const leaf = issueCertificate({
      subject: { commonName },
      key,
      issuer: { subject: commonNameOf(authority.certificate), key: authority.key },
      use: { kind: 'identity', uris: [uri], only },
      serial: this.#world.random.bytes(16),
      notBeforeMs: nowMs - backdateMs,
      notAfterMs: nowMs + lifetimeMs,
    });
    const renewAtMs = nowMs + (lifetimeMs * 2) / 3;
    const issued = { certificate: leaf, key, authority: authority.certificate, renewAtMs };
    this.#issued.set(`${uri} ${holder}`, issued);
    return issued;
  }
}

function commonNameOf(authority: string): { commonName: string } {
  const { subject } = certificateFacts(authority);
  return { commonName: /^CN=(.*)$/m.exec(subject)?.[1] ?? subject };
}
