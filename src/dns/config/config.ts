// The configuration of the DNS role: what flags say, what the resolver and the authority are built from, and what a worker
// thread is given. Plain data.

import type { TsigKey } from '../../base/dns/tsig.ts';
import { parseHostPort } from '../../base/net/host-port.ts';
import { parseIp } from '../../base/net/ip.ts';

export interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  /** CA of trusted client certificates; clients without one are served as anonymous. */
  readonly clientAuthority?: string;
}

export interface ListenOptions {
  /** One socket each. */
  readonly hosts: readonly string[];
  /** 0 takes a free one, the same for UDP and TCP and for every address. */
  readonly port: number;
  /** Addresses with ports of their own. */
  readonly others?: readonly { readonly host: string; readonly port: number }[];
  readonly tls?: {
    readonly port: number;
    readonly material: TlsMaterial;
    /** DNS over HTTPS, with the same certificate. */
    readonly httpsPort?: number | undefined;
  };
  /** Opens its sockets when it is told to, beside those of another server of the same user; all ports are given. */
  readonly takesOver?: boolean;
  readonly tcpIdleMs?: number;
  readonly tcpConnectionsMax?: number;
  readonly tlsHandshakeMs?: number;
}

/** PEM texts. Plain data, so that a worker thread can be given it. */
export interface TlsClient {
  /** CA of the server's certificate; the system's authorities if absent. */
  readonly authority?: string;
  /** In the server's certificate; its address if absent. */
  readonly serverName?: string;
  readonly certificate?: string;
  readonly key?: string;
}

export interface StubZone {
  /** Without a trailing dot. */
  readonly zone: string;
  /** `10.0.0.1`, `10.0.0.1:5353`, `[fd00::1]:5353` */
  readonly nameservers: readonly string[];
  /** Whether the servers receive the asking cluster: a federation's do, others do not. */
  readonly sendsSource: boolean;
  /** Signs what is sent there. */
  readonly key?: TsigKey;
  /** The servers are asked over TLS, and only that way: on port 853 unless they say another. */
  readonly tls?: TlsClient;
}

/** Names of Pods such as `10-244-0-7.shop.pod.cluster.local`: none, any address, or those of Pods that exist. */
export type PodMode = 'disabled' | 'insecure' | 'verified';

export interface TrustedServersConfig {
  /** Address ranges of servers that may name the client's cluster. */
  readonly ranges: readonly string[];
  /** Names in client certificates, over DoT. */
  readonly identities: readonly string[];
}

export const nobody: TrustedServersConfig = { ranges: [], identities: [] };

export interface TrustConfig {
  readonly trusted: TrustedServersConfig;
  /** Keys that trusted servers sign with; a good signature makes a server trusted. */
  readonly keys: readonly TsigKey[];
}

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  /** It is asked over TLS, and only that way. */
  readonly tls?: TlsClient;
}

/** `10.0.0.1`, `10.0.0.1:5353`, `[fd00::1]:5353`, `fd00::1`, `fe80::1%eth0`; over TLS `tls://10.0.0.1#dns.example`. */
export function parseServerAddress(text: string, defaultPort = 53): ServerAddress {
  const isTls = text.startsWith(tlsScheme);
  const [plain = '', serverName] = isTls ? text.slice(tlsScheme.length).split('#', 2) : [text];
  const [bare, link] = withoutLink(plain);
  const address = parseHostPort(bare, isTls ? dotPort : defaultPort);
  if (address === undefined || parseIp(address.host) === undefined || address.port === 0 || serverName === '') {
    throw new Error(
      `nameserver ${JSON.stringify(text)}: want an address with an optional port, such as 10.0.0.1:5353, or over TLS ` +
        'tls://10.0.0.1#name-in-its-certificate',
    );
  }
  const server = { host: `${address.host}${link}`, port: address.port };
  return isTls ? { ...server, tls: serverName === undefined ? {} : { serverName } } : server;
}

/** A link-local address names its link, `fe80::1%eth0`: routers announce themselves so, and it ends up in resolv.conf. */
function withoutLink(text: string): [bare: string, link: string] {
  const link = /^\[?fe[89ab][0-9a-f:]*(%[\w.-]{1,15})/i.exec(text)?.[1] ?? '';
  return [text.replace(link, ''), link];
}

const tlsScheme = 'tls://';
export const dotPort = 853;

/** The `nameserver` lines of a resolv.conf. */
export function nameserversIn(text: string): string[] {
  const lines = text.split('\n').map((line) => /^\s*nameserver\s+([^\s#;]+)/.exec(line)?.[1]);
  return lines.filter((address) => address !== undefined);
}

export interface StubKeys {
  readonly keys: readonly TsigKey[];
  /** Zone to the name of a key. */
  readonly keyOfZone: ReadonlyMap<string, string>;
  /** Zone to how its servers are asked over TLS. */
  readonly tlsOfZone: ReadonlyMap<string, TlsClient>;
}

/** PEM. */
export interface StubCertificates {
  readonly certificate: string;
  readonly key: string;
  /** Signs the certificates of those who may post. */
  readonly clientAuthority: string;
}

/** Where federations post their stub zones, and who may. */
export interface StubEndpoint extends StubCertificates {
  readonly host: string;
  readonly port: number;
  /** Names in client certificates that may post for any federation. */
  readonly allowed: readonly string[];
  /** Besides those: whether this name may post for this federation. */
  readonly mayPost?: (identity: string, federation: string) => boolean;
  /** Calls back with every later set of certificates; returns how to end that. */
  readonly onRenewed?: (listener: (next: StubCertificates) => void) => () => void;
  /** Where what was posted survives a restart. */
  readonly file: string;
  /** In place of that file. */
  readonly store?: StubStore;
  readonly suffix?: string;
}

/** Keeps the text of posted stub zones. */
export interface StubStore {
  read(): Promise<Uint8Array | undefined>;
  write(bytes: Uint8Array): Promise<void>;
  /** Calls back with every text that somebody else wrote, and with the own ones. */
  onChange?(listener: (text: string) => void): void;
}

/** Who takes the zones of federations from here. */
export interface TransferConfig {
  /** They are told of changes; their addresses may ask for the whole zone. */
  readonly secondaries: readonly string[];
  /** If there are any, a transfer is signed with one of them. */
  readonly keys: readonly TsigKey[];
}

export interface RaceTimes {
  /** After so long the next server is asked too. */
  readonly hedgeMs: number;
  /** After so long a silent server is asked again. */
  readonly resendMs: number;
  readonly totalMs: number;
}

/** How long other servers may take. */
export interface ForwardTimes extends RaceTimes {
  /** A server that does not answer a probe for so long is silent. */
  readonly probeMs: number;
  /** All that is waited for if all servers are silent. */
  readonly silentMs: number;
  /** After so long an old answer is served, if there is one (RFC 8767 section 5: 1.8 seconds). */
  readonly staleAfterMs: number;
}

export interface ForwardConfig {
  readonly nameservers: readonly string[];
  readonly hasRandomCase?: boolean;
  /** For nameservers that are asked over TLS. */
  readonly tls?: TlsClient | undefined;
}

export interface CacheOptions {
  /** In each thread. */
  readonly bytesMax: number;
  readonly ttlSecondsMax: number;
  /** How long after its end an answer may still be served when no server answers (RFC 8767). */
  readonly staleMs: number;
}

/** Server options from flags: the resolver, the authority and the sockets use it unchanged. */
export interface DnsConfig {
  readonly listen: ListenOptions;
  /** Threads that share the ports; 0, the default, serves in the thread that calls. */
  readonly workers?: number;
  /** Address ranges that may ask; private addresses if absent. */
  readonly clients?: readonly string[];
  /** Where the server is found, as far as that is known. */
  readonly serverAddresses?: readonly string[];
  /** Upstream for unknown names; without it they are refused. */
  readonly forward?: ForwardConfig;
  /** How long other servers may take, those of stub zones too. */
  readonly forwardTimes?: Partial<ForwardTimes>;
  readonly cache?: CacheOptions;
  /** How many queries may wait for other servers, over all threads. */
  readonly waitingMax?: number;
  readonly transfer?: TransferConfig | undefined;
  readonly podNames?: PodMode;
  readonly stubZones?: readonly StubZone[];
  /** Servers that answer the cluster's own domain, and reverse names, in our place: an existing CoreDNS. */
  readonly clusterDomainForward?: readonly string[];
  /** Code of the EDNS option that names the client's cluster. */
  readonly sourceOption?: number;
}
