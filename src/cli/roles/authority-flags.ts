// Reads the flags of `portolan authority`: its federation, where its records come from, and which resolvers it trusts.

import { isDnsLabel, isDnsSubdomain } from '../../base/dns/labels.ts';
import type { Host } from '../../base/host.ts';
import type { HttpAccess } from '../../base/http.ts';
import type { TrustConfig } from '../../dns/config/config.ts';
import { usageError } from '../exit-codes.ts';
import { checkRanges, checkServerFlags, type DnsServerFlags, fileOf, keysIn, pair } from './dns-server-flags.ts';

export interface AuthorityFlags extends DnsServerFlags {
  readonly federation: string;
  readonly suffix?: string;
  readonly brokerKubeconfig?: string;
  readonly brokerKubeconfigFrom?: string;
  readonly clusterset: string;
  readonly etcd?: string;
  readonly etcdCa?: string;
  readonly etcdCert?: string;
  readonly etcdKey?: string;
  readonly etcdUser?: string;
  readonly etcdPasswordFile?: string;
  readonly trustedRange: string[];
  readonly trustedIdentity: string[];
  readonly trustedKey: string[];
  readonly federationCert?: string;
  readonly federationKey?: string;
}

export function checkAuthorityFlags(flags: AuthorityFlags): void {
  if (flags.brokerKubeconfig === undefined && flags.etcd === undefined)
    throw usageError(`--federation ${flags.federation}: want --broker-kubeconfig FILE or --etcd URL to read it from`);
  for (const [flag, name, problems] of [
    ['--federation', flags.federation, isDnsLabel(flags.federation)],
    ['--suffix', flags.suffix, isDnsSubdomain(flags.suffix ?? 'a')],
  ] as const) {
    if (problems.length > 0) throw usageError(`${flag} ${name}: ${problems.join('; ')}`);
  }
  checkServerFlags(flags);
  checkRanges('--trusted-range', flags.trustedRange);
}

/** The client certificate of an authority that posts stub zones. */
export async function identityOf(
  host: Host,
  { federationCert, federationKey }: AuthorityFlags,
): Promise<{ certificate: string; key: string } | undefined> {
  if (federationCert === undefined && federationKey === undefined) return undefined;
  const [certificate, key] = await pair(host, {
    cert: ['--federation-cert', federationCert],
    key: ['--federation-key', federationKey],
  });
  return { certificate, key };
}

type TrustFlags = 'trustedRange' | 'trustedIdentity' | 'trustedKey';

export async function trustOf(host: Host, flags: Pick<AuthorityFlags, TrustFlags>): Promise<TrustConfig> {
  const { trustedRange: ranges, trustedIdentity: identities, trustedKey } = flags;
  return { trusted: { ranges, identities }, keys: await keysIn(host, '--trusted-key', trustedKey) };
}

export interface EtcdEndpoints {
  readonly endpoints: readonly HttpAccess[];
  readonly credentials?: { readonly name: string; readonly password: string };
}

/** URLs with commas between them; certificates and passwords in files. */
export async function etcdOf(host: Host, flags: AuthorityFlags): Promise<EtcdEndpoints | undefined> {
  const { etcd, etcdCa, etcdCert, etcdKey, etcdUser, etcdPasswordFile } = flags;
  if (etcd === undefined) return undefined;
  const urls = etcd.split(',').map((text) => text.trim().replace(/\/$/, ''));
  for (const url of urls)
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
      throw usageError(`--etcd ${etcd}: want http:// or https:// URLs with commas between them`);
  const certificateAuthority = etcdCa && (await fileOf(host, '--etcd-ca', etcdCa));
  const hasPair = etcdCert !== undefined || etcdKey !== undefined;
  const files = { cert: ['--etcd-cert', etcdCert], key: ['--etcd-key', etcdKey] } as const;
  const [clientCertificate, clientKey] = hasPair ? await pair(host, files) : [];
  const access = {
    ...(certificateAuthority ? { certificateAuthority } : {}),
    ...(clientCertificate && clientKey ? { clientCertificate, clientKey } : {}),
  };
  const endpoints = urls.map((server) => ({ server, ...access }));
  if (etcdUser === undefined && etcdPasswordFile === undefined) return { endpoints };
  if (etcdUser === undefined) throw usageError('--etcd-password-file: want --etcd-user NAME too');
  if (etcdPasswordFile === undefined) throw usageError(`--etcd-user ${etcdUser}: want --etcd-password-file FILE too`);
  const password = (await fileOf(host, '--etcd-password-file', etcdPasswordFile)).replace(/\r?\n$/, '');
  return { endpoints, credentials: { name: etcdUser, password } };
}
