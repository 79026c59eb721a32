// The authority that issues the certificates of one cluster's proxies and of its discovery server: made at the first
// start and kept in a Secret of the home.

import type { World } from '../../base/world.ts';
import type { Credentials } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import type { Client } from '../../kube/client/client.ts';
import {
  certifyLeaf,
  dayMs,
  issueLeaf,
  type KeptAuthorityOptions,
  openKeptAuthority,
} from '../../kube/client/kept-authority.ts';
import { takeOverSecret } from '../../kube/client/take-over-secret.ts';
import { xdsAuthoritySecret } from '../../kube/objects/ours.ts';
import { identityUri, type ProxyIdentity } from './proxy-identity.ts';

export interface AuthorityOptions {
  readonly world: Pick<World, 'clock' | 'random'>;
  readonly home: Client;
  /** Namespace of its Secret. */
  readonly namespace: string;
  /** Where an earlier version kept it. */
  readonly formerNamespace?: string;
  readonly cluster: string;
}

/** The name in the server's certificate, whatever address it is reached at. */
export const xdsServerName = 'portolan-xds';

export const serverCertificateMs = 30 * dayMs;
/** Lifetimes of certificates without renewal, and with it. */
const fixedCertificateMs = 365 * dayMs;
export const renewedCertificateMs = 30 * dayMs;

export async function openAuthority(options: AuthorityOptions): Promise<Credentials> {
  const { home, namespace, formerNamespace = namespace } = options;
  await takeOverSecret(home, { name: xdsAuthoritySecret, from: formerNamespace, to: namespace });
  return openKeptAuthority(keptAt(options));
}

export function issueServer(options: AuthorityOptions, authority: Credentials, hosts: readonly string[]): Credentials {
  const use = { kind: 'server', hosts: [...new Set([xdsServerName, ...hosts])] } as const;
  return issueLeaf(keptAt(options), authority, { commonName: xdsServerName, use, lifetimeMs: serverCertificateMs });
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
  const use = { kind: 'identity', uris: [identityUri(identity)], only: 'client' } as const;
  return certifyLeaf(keptAt(options), authority, { commonName: identity.name.slice(0, 64), use, key, lifetimeMs });
}

function keptAt({ world, home: client, namespace, cluster }: AuthorityOptions): KeptAuthorityOptions {
  return { world, client, namespace, name: xdsAuthoritySecret, commonName: `Portolan xDS ${cluster}` };
}
