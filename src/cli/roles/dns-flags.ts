// Turns the flags of `portolan dns` into configuration. Reads only the files that flags name.

import { isDnsLabel, isDnsSubdomain } from '../../base/dns/labels.ts';
import type { TsigKey } from '../../base/dns/tsig.ts';
import type { Host } from '../../base/host.ts';
import type { HttpAccess } from '../../base/http.ts';
import type { LogLevel } from '../../base/log.ts';
import { parseIp, parseRange } from '../../base/net/ip.ts';
import {
  type ForwardTimes,
  type ListenOptions,
  nameserversIn,
  type PodMode,
  parseServerAddress,
  type StubEndpoint,
  type StubKeys,
  type StubZone,
  type TlsClient,
  type TlsMaterial,
  type TrustConfig,
} from '../../dns/config/config.ts';
import { parseTsigFile } from '../../federation/rules/tsig-secret.ts';
import { usageError } from '../exit-codes.ts';
import { parseListen } from './options.ts';

export interface DnsFlags {
  readonly listen: string[];
  readonly adminListen: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly clusterId?: string;
  readonly zone?: string;
  readonly region?: string;
  readonly serverAddress: string[];
  readonly workers?: string;
  readonly lameduck: string;
  readonly takeOver?: boolean;
  readonly client: string[];
  readonly forward: string[];
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
  readonly ttl?: string;
  readonly sourceOption?: string;
  readonly tlsPort: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsClientCa?: string;
  readonly stubListen?: string;
  readonly stubAdvertise?: string;
  readonly stubCert?: string;
  readonly stubKey?: string;
  readonly stubClientCa?: string;
  readonly stubIdentity: string[];
  readonly stubFile: string;
  readonly stubShared?: boolean;
  readonly federation?: string;
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
  readonly state?: string;
  readonly stateMaxAge: string;
  readonly logLevel: LogLevel;
}

export function checkFlags(flags: DnsFlags): void {
  if (flags.federation !== undefined && flags.brokerKubeconfig === undefined && flags.etcd === undefined) {
    throw usageError(`--federation ${flags.federation}: want --broker-kubeconfig FILE or --etcd URL to read it from`);
  }
  for (const [flag, name, problems] of [
    ['--federation', flags.federation, isDnsLabel(flags.federation ?? 'a')],
    ['--suffix', flags.suffix, isDnsSubdomain(flags.suffix ?? 'a')],
  ] as const) {
    if (problems.length > 0) throw usageError(`${flag} ${name}: ${problems.join('; ')}`);
  }
  const ports = [...flags.listen.map((text) => parseListen(text).port), Number(flags.tlsPort)];
  if (flags.takeOver && ports.includes(0))
    throw usageError('--take-over: want the ports of the running server in --listen and --tls-port, not 0');
  for (const text of flags.serverAddress)
    if (!parseIp(text)) throw usageError(`--server-address ${text}: want an address such as 10.96.0.10`);
  for (const [flag, texts] of [
    ['--forward', flags.forward],
    ['--cluster-domain-forward', flags.clusterDomainForward],
  ] as const) {
    for (const text of texts) if (!text.startsWith('/')) inFlag(`${flag} ${text}`, () => parseServerAddress(text));
  }
  for (const [flag, texts] of [
    ['--client', flags.client],
    ['--trusted-range', flags.trustedRange],
  ] as const) {
    for (const text of texts)
      if (!parseRange(text)) throw usageError(`${flag} ${text}: want an address or a range such as 10.0.0.0/8`);
  }
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

async function keysIn(host: Host, flag: string, paths: readonly string[]): Promise<TsigKey[]> {
  const keys = await Promise.all(
    paths.map(async (path) => parseTsigFile(await fileOf(host, flag, path), `${flag} ${path}`)),
  );
  return keys.flat();
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

/** A file such as /etc/resolv.conf stands for the nameservers it lists. */
export async function nameserversOf(host: Host, flag: string, texts: readonly string[]): Promise<string[]> {
  const lists = await Promise.all(
    texts.map(async (text) => {
      if (!text.startsWith('/')) return [text];
      const found = nameserversIn(await fileOf(host, flag, text));
      if (found.length === 0) throw usageError(`${flag} ${text}: the file has no nameserver line`);
      for (const address of found) inFlag(`${flag} ${text}`, () => parseServerAddress(address));
      return found;
    }),
  );
  return [...new Set(lists.flat())];
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

/** The addresses of this server. A wildcard address is left out: clients cannot use it. */
export function serverAddressesOf(flags: Pick<DnsFlags, 'serverAddress' | 'listen'>): string[] {
  if (flags.serverAddress.length > 0) return flags.serverAddress;
  const hosts = flags.listen.map((text) => parseListen(text).host);
  return hosts.filter((host) => parseIp(host) && host !== '0.0.0.0' && !/^[0:]+$/.test(host));
}

export function numberIn(flag: string, text: string, range: { readonly min: number; readonly max: number }): number {
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text) || value < range.min || value > range.max)
    throw usageError(`${flag} ${text}: want a number from ${range.min} to ${range.max}`);
  return value;
}

export async function listenOf(host: Host, flags: DnsFlags): Promise<ListenOptions> {
  const addresses = flags.listen.map((text) => parseListen(text));
  const port = addresses[0]?.port ?? 53;
  const hosts = addresses.filter((address) => address.port === port).map((address) => address.host);
  const others = addresses.filter((address) => address.port !== port);
  const takesOver = flags.takeOver ? { takesOver: true } : {};
  const listen = { hosts, port, ...(others.length > 0 ? { others } : {}), ...takesOver };
  const { tlsCert, tlsKey } = flags;
  if (tlsCert === undefined && tlsKey === undefined) return listen;
  const material = await tlsMaterialOf(host, flags);
  const tlsPort = numberIn('--tls-port', flags.tlsPort, { min: 0, max: 65_535 });
  return { ...listen, tls: { port: tlsPort, material } };
}

/** Read again while the server runs. */
export async function tlsMaterialOf(host: Host, flags: DnsFlags): Promise<TlsMaterial> {
  const { tlsCert, tlsKey, tlsClientCa } = flags;
  const [certificate, key] = await pair(host, { cert: ['--tls-cert', tlsCert], key: ['--tls-key', tlsKey] });
  const clientAuthority = tlsClientCa && (await fileOf(host, '--tls-client-ca', tlsClientCa));
  return { certificate, key, ...(clientAuthority ? { clientAuthority } : {}) };
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
    suffix: flags.suffix,
  };
}

/** The client certificate of an authority that posts stub zones. */
export async function identityOf(
  host: Host,
  { federationCert, federationKey }: DnsFlags,
): Promise<{ certificate: string; key: string } | undefined> {
  if (federationCert === undefined && federationKey === undefined) return undefined;
  const [certificate, key] = await pair(host, {
    cert: ['--federation-cert', federationCert],
    key: ['--federation-key', federationKey],
  });
  return { certificate, key };
}

type TrustFlags = 'trustedRange' | 'trustedIdentity' | 'trustedKey';

export async function trustOf(host: Host, flags: Pick<DnsFlags, TrustFlags>): Promise<TrustConfig> {
  const { trustedRange: ranges, trustedIdentity: identities, trustedKey } = flags;
  return { trusted: { ranges, identities }, keys: await keysIn(host, '--trusted-key', trustedKey) };
}

export interface EtcdEndpoints {
  readonly endpoints: readonly HttpAccess[];
  readonly credentials?: { readonly name: string; readonly password: string };
}

/** URLs with commas between them; certificates and passwords in files. */
export async function etcdOf(host: Host, flags: DnsFlags): Promise<EtcdEndpoints | undefined> {
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

type FileFlag = readonly [flag: string, path: string | undefined];

async function pair(host: Host, { cert, key }: { cert: FileFlag; key: FileFlag }): Promise<[string, string]> {
  if (cert[1] === undefined) throw usageError(`${key[0]}: want ${cert[0]} FILE too`);
  if (key[1] === undefined) throw usageError(`${cert[0]}: want ${key[0]} FILE too`);
  return [await fileOf(host, cert[0], cert[1]), await fileOf(host, key[0], key[1])];
}

async function fileOf(host: Host, flag: string, path: string): Promise<string> {
  const text = await host.readText(path);
  if (text === undefined) throw usageError(`${flag} ${path}: no such file`);
  return text;
}

function inFlag<T>(what: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw usageError(`${what}: ${(cause as Error).message}`, { cause });
  }
}
