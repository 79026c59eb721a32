// Certificates in the names of workloads that have none of their own, issued by this mesh's authority for peers. Each is
// made once and again when two thirds of its time are over or the authority changed.

import type { World } from '../../base/world.ts';
import { type Credentials, certificateFacts, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';

interface Issued extends Credentials {
  readonly authority: string;
  readonly renewAtMs: number;
}

const lifetimeMs = 30 * 24 * 3_600_000;
const backdateMs = 300_000;

export class WorkloadCertificates {
  readonly #world: Pick<World, 'clock' | 'random'>;
  readonly #issued = new Map<string, Issued>();
  #authority: Credentials | undefined;

  constructor(world: Pick<World, 'clock' | 'random'>) {
    this.#world = world;
  }

  setAuthority(authority: Credentials | undefined): void {
    this.#authority = authority;
  }

  /** Undefined while this mesh has no authority of its own. */
  of(san: string): Credentials | undefined {
    const authority = this.#authority;
    if (authority === undefined) return undefined;
    const nowMs = this.#world.clock.wallMs();
    const known = this.#issued.get(san);
    if (known !== undefined && known.authority === authority.certificate && nowMs < known.renewAtMs) return known;
    const key = generatePrivateKey();
    const certificate = issueCertificate({
      subject: { commonName: 'portolan workload' },
      key,
      issuer: { subject: commonNameOf(authority.certificate), key: authority.key },
      use: { kind: 'identity', uris: [san] },
      serial: this.#world.random.bytes(16),
      notBeforeMs: nowMs - backdateMs,
      notAfterMs: nowMs + lifetimeMs,
    });
    const renewAtMs = nowMs + (lifetimeMs * 2) / 3;
    const issued = { certificate, key, authority: authority.certificate, renewAtMs };
    this.#issued.set(san, issued);
    return issued;
  }
}

function commonNameOf(authority: string): { commonName: string } {
  const { subject } = certificateFacts(authority);
  return { commonName: /^CN=(.*)$/m.exec(subject)?.[1] ?? subject };
}
