// Reads the flags of `portolan authority`: its federation, where its records come from, and which resolvers it trusts.

import { isDnsLabel, isDnsSubdomain } from '../../base/dns/labels.ts';
import type { Host } from '../../base/host.ts';
import type { TransferConfig, TrustConfig } from '../../dns/config/config.ts';
import { usageError } from '../exit-codes.ts';
import {
  checkNameservers,
  checkRanges,
  checkServerFlags,
  type DnsServerFlags,
  keysIn,
  pair,
} from './dns-server-flags.ts';
import type { EtcdFlags } from './etcd-flags.ts';

export interface AuthorityFlags extends DnsServerFlags, EtcdFlags {
  readonly federation: string;
  readonly suffix?: string;
  readonly brokerKubeconfig?: string;
  readonly brokerKubeconfigFrom?: string;
  readonly clusterset: string;
  readonly trustedRange: string[];
  readonly trustedIdentity: string[];
  readonly trustedKey: string[];
  readonly secondary: string[];
  readonly transferKey: string[];
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
  checkNameservers('--secondary', flags.secondary);
  if (flags.transferKey.length > 0 && flags.secondary.length === 0)
    throw usageError(`--transfer-key ${flags.transferKey[0]}: want --secondary ADDRESS too, who may transfer the zone`);
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

/** Nobody may transfer the zone if no secondary is listed. */
export async function transferOf(
  host: Host,
  { secondary: secondaries, transferKey }: Pick<AuthorityFlags, 'secondary' | 'transferKey'>,
): Promise<TransferConfig | undefined> {
  if (secondaries.length === 0) return undefined;
  return { secondaries, keys: await keysIn(host, '--transfer-key', transferKey) };
}
