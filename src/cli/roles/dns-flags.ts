// Turns the flags of `portolan dns` into configuration. Reads only the files that flags name.

import { isDnsSubdomain } from '../../base/dns/labels.ts';
import type { Host } from '../../base/host.ts';
import {
  type ForwardTimes,
  type PodMode,
  parseServerAddress,
  type StubEndpoint,
  type StubKeys,
  type StubZone,
  type TlsClient,
} from '../../dns/config/config.ts';
import { usageError } from '../exit-codes.ts';
import {
  checkNameservers,
  checkServerFlags,
  type DnsServerFlags,
  fileOf,
  inFlag,
  keysIn,
  numberIn,
  pair,
} from './dns-server-flags.ts';
import { parseListen } from './options.ts';

export interface DnsFlags extends DnsServerFlags {
  readonly clusterId?: string;
  readonly zone?: string;
  readonly region?: string;
  readonly hosts: string[];
  readonly records: string[];
  readonly nameRules: string[];
  readonly namesFrom?: string;
  readonly localTtl: string;
  readonly cacheSize: string;
  readonly cacheTtlMax: string;
  readonly cacheStale: string;
  readonly forwardResendMs?: string;
  readonly forwardTimeoutMs?: string;
  readonly forwardWaiting: string;
  readonly forwardZone: string[];
  readonly stub: string[];
  readonly tsigKey: string[];
  readonly sign: string[];
  readonly zoneTls: string[];
  readonly zoneTlsCa?: string;
  readonly zoneTlsCert?: string;
  readonly zoneTlsKey?: string;
  readonly clusterDomain?: string;
  readonly clustersetDomain?: string;
  readonly clusterDomainForward: string[];
  readonly clusterNames?: boolean;
  readonly pods: PodMode;
  readonly ignoreEmptyService?: boolean;
  readonly peersNamespace: string;
  readonly stubListen?: string;
  readonly stubAdvertise?: string;
  readonly stubCert?: string;
  readonly stubKey?: string;
  readonly stubClientCa?: string;
  readonly stubIdentity: string[];
  readonly stubSuffix?: string;
  readonly stubFile: string;
  readonly stubShared?: boolean;
}

export function checkFlags(flags: DnsFlags): void {
  const problems = isDnsSubdomain(flags.stubSuffix ?? 'a');
  if (problems.length > 0) throw usageError(`--stub-suffix ${flags.stubSuffix}: ${problems.join('; ')}`);
  checkServerFlags(flags);
  checkNameservers('--cluster-domain-forward', flags.clusterDomainForward);
  cacheOf(flags);
  localTtlOf(flags);
}

/** How answers of other servers are kept. */
export function cacheOf({
  cacheSize,
  cacheTtlMax,
  cacheStale,
}: Pick<DnsFlags, 'cacheSize' | 'cacheTtlMax' | 'cacheStale'>) {
  return {
    bytesMax: numberIn('--cache-size', cacheSize, { min: 0, max: 4096 }) * 1_048_576,
    ttlSecondsMax: numberIn('--cache-ttl-max', cacheTtlMax, { min: 0, max: 604_800 }),
    staleMs: 1000 * numberIn('--cache-stale', cacheStale, { min: 0, max: 604_800 }),
  };
}

export function localTtlOf({ localTtl }: Pick<DnsFlags, 'localTtl'>): number {
  return numberIn('--local-ttl', localTtl, { min: 0, max: 86_400 });
}

/** The keys and TLS clients of stub zones: files of keys, `ZONE=KEY` and `ZONE=NAME`. */
export async function stubKeysOf(host: Host, flags: DnsFlags): Promise<StubKeys> {
  const keys = await keysIn(host, '--tsig-key', flags.tsigKey);
  const keyOfZone = new Map(flags.sign.map((text) => pairIn('--sign', text, 'ZONE=KEY')));
  for (const [zone, name] of keyOfZone)
    if (!keys.some((key) => key.name === name))
      throw usageError(`--sign ${zone}=${name}: no file of --tsig-key has a key ${name}`);
  const tls = await tlsClientOf(host, flags);
  const tlsOfZone = new Map(
    flags.zoneTls.map((text) => {
      const [zone, serverName] = pairIn('--zone-tls', text, 'ZONE=NAME');
      return [zone, { ...tls, serverName }];
    }),
  );
  return { keys, keyOfZone, tlsOfZone };
}

/** Certificates for nameservers over TLS. */
export async function tlsClientOf(host: Host, flags: DnsFlags): Promise<TlsClient> {
  const { zoneTlsCa, zoneTlsCert: cert, zoneTlsKey: key } = flags;
  const authority = zoneTlsCa && (await fileOf(host, '--zone-tls-ca', zoneTlsCa));
  const files = { cert: ['--zone-tls-cert', cert], key: ['--zone-tls-key', key] } as const;
  const identity = cert === undefined && key === undefined ? undefined : await pair(host, files);
  return {
    ...(authority ? { authority } : {}),
    ...(identity ? { certificate: identity[0], key: identity[1] } : {}),
  };
}

function pairIn(flag: string, text: string, want: string): [string, string] {
  const [zone = '', name = ''] = text.split('=', 2).map((part) => part.replace(/\.$/, '').toLowerCase());
  if (zone === '' || name === '') throw usageError(`${flag} ${text}: want ${want}, such as world.svc.federation=east`);
  return [zone, name];
}

/** `ZONE=NS,NS`. Zones of `--stub` belong to federations; queries to them name the client's cluster. */
export function stubZonesOf(
  flags: Pick<DnsFlags, 'stub' | 'forwardZone'>,
  { keys, keyOfZone, tlsOfZone }: StubKeys = { keys: [], keyOfZone: new Map(), tlsOfZone: new Map() },
): StubZone[] {
  const parse = (flag: string, sendsSource: boolean) => (text: string) => {
    const [zone = '', servers = ''] = text.split('=', 2);
    const nameservers = servers.split(',').filter((server) => server !== '');
    if (zone === '' || nameservers.length === 0)
      throw usageError(`${flag} ${text}: want ZONE=NAMESERVER,NAMESERVER, such as world.svc.federation=10.0.0.53`);
    for (const server of nameservers) inFlag(`${flag} ${text}`, () => parseServerAddress(server));
    const name = zone.replace(/\.$/, '').toLowerCase();
    const key = keys.find((known) => known.name === keyOfZone.get(name));
    const tls = tlsOfZone.get(name);
    return { zone: name, nameservers, sendsSource, ...(key ? { key } : {}), ...(tls ? { tls } : {}) };
  };
  return [...flags.stub.map(parse('--stub', true)), ...flags.forwardZone.map(parse('--forward-zone', false))];
}

/** Time limits of nameservers, where a flag sets them. */
export function forwardTimesOf(flags: Pick<DnsFlags, 'forwardResendMs' | 'forwardTimeoutMs'>): Partial<ForwardTimes> {
  const { forwardResendMs: resend, forwardTimeoutMs: total } = flags;
  const range = { min: 100, max: 60_000 };
  return {
    ...(resend === undefined ? {} : { resendMs: numberIn('--forward-resend-ms', resend, range) }),
    ...(total === undefined ? {} : { totalMs: numberIn('--forward-timeout-ms', total, range) }),
  };
}

/** Without certificates of its own the endpoint uses those that joining made. */
export function isStubAutomatic({ stubListen, stubCert, stubKey, stubClientCa, stubIdentity }: DnsFlags): boolean {
  const given = [stubCert, stubKey, stubClientCa].some((file) => file !== undefined) || stubIdentity.length > 0;
  return stubListen !== undefined && !given;
}

export async function stubEndpointOf(host: Host, flags: DnsFlags): Promise<StubEndpoint | undefined> {
  const { stubListen, stubCert, stubKey, stubClientCa, stubIdentity } = flags;
  if (stubListen === undefined || isStubAutomatic(flags)) return undefined;
  if (stubClientCa === undefined || stubIdentity.length === 0)
    throw usageError(
      `--stub-listen ${stubListen}: want --stub-client-ca FILE and --stub-identity NAME, or any client could post`,
    );
  const [certificate, key] = await pair(host, { cert: ['--stub-cert', stubCert], key: ['--stub-key', stubKey] });
  return {
    ...parseListen(stubListen),
    certificate,
    key,
    clientAuthority: await fileOf(host, '--stub-client-ca', stubClientCa),
    allowed: stubIdentity,
    file: flags.stubFile,
    suffix: flags.stubSuffix,
  };
}
