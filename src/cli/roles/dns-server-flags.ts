// The flags of both DNS servers, `portolan dns` and `portolan authority`: where they listen, what they serve TLS with, whom
// they answer, and the copy of their names.

import { type Command, Option } from 'commander';
import type { TsigKey } from '../../base/dns/tsig.ts';
import type { Host } from '../../base/host.ts';
import type { LogLevel } from '../../base/log.ts';
import { parseIp, parseRange } from '../../base/net/ip.ts';
import { type ListenOptions, nameserversIn, parseServerAddress, type TlsMaterial } from '../../dns/config/config.ts';
import { parseTsigFile } from '../../federation/rules/tsig-secret.ts';
import { usageError } from '../exit-codes.ts';
import { logLevelOption, parseListen } from './options.ts';

export interface DnsServerFlags {
  readonly listen: string[];
  readonly adminListen: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly workers?: string;
  readonly takeOver?: boolean;
  readonly lameduck: string;
  readonly client: string[];
  readonly serverAddress: string[];
  readonly forward: string[];
  readonly ttl?: string;
  readonly state?: string;
  readonly stateMaxAge: string;
  readonly tlsPort: string;
  readonly httpsPort?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsClientCa?: string;
  readonly sourceOption?: string;
  readonly logLevel: LogLevel;
}

/** `settings` is the object that the defaults of some of them come from. */
export function addServerOptions(command: Command, settings: 'ClusterSet' | 'Federation'): Command {
  return command
    .option(
      '--listen <host:port...>',
      'addresses to listen on, UDP and TCP; ports may differ, and port 0 takes a free one',
      ['127.0.0.1:53'],
    )
    .option(
      '--admin-listen <host:port>',
      'address of /metrics, /livez, /readyz, /explain and /querylog; port 0 takes a free one',
      '127.0.0.1:0',
    )
    .option(
      '--workers <n>',
      'threads that share the port; 0 serves in the main one (default: one for each core beyond the first)',
    )
    .option(
      '--take-over',
      `listen beside the portolan ${command.name()} that has these addresses now, once all names are read; stop that one after \`ready\``,
    )
    .option('--lameduck <seconds>', 'how long to keep answering after SIGTERM, while /readyz fails', '0')
    .addOption(list('--client <cidr...>', 'allowed clients', 'private and loopback addresses'))
    .addOption(
      list(
        '--server-address <ip...>',
        'addresses of the server that its zones name (NS)',
        'those it listens on, if they are its own',
      ),
    )
    .option('--ttl <seconds>', `TTL of answers from its own zones (default: 5, or that of the ${settings})`)
    .option(
      '--state <dir>',
      'folder for a copy of all names, which are answered at once after a restart, marked as stale (default: no copy)',
    )
    .option('--state-max-age <hours>', 'maximum age of that copy', '24')
    .option('--tls-port <port>', 'DNS over TLS, on the same addresses', '853')
    .option(
      '--tls-cert <file>',
      'certificate for DNS over TLS; with --tls-key it is served, and read again when it is renewed',
    )
    .option('--tls-key <file>', 'its key')
    .option(
      '--https-port <port>',
      'DNS over HTTPS, https://ADDRESS:PORT/dns-query, with that certificate (default: none)',
    )
    .option('--tls-client-ca <file>', 'certificate authority of client certificates')
    .option(
      '--source-option <code>',
      `the EDNS option that names the client's cluster, 65001 to 65534 (default: 65001${
        settings === 'Federation' ? ', or that of the Federation' : ''
      })`,
    )
    .addOption(logLevelOption('info'));
}

/** A flag that takes several values; `without` describes its default. */
export function list(flags: string, description: string, without = 'none'): Option {
  return new Option(flags, description).default([], without);
}

/** Names are the same in upper and lower case, with or without a dot at the end. */
export function plainName(text: string): string {
  return text.replace(/\.$/, '').toLowerCase();
}

export function checkServerFlags(flags: DnsServerFlags): void {
  const ports = [
    ...flags.listen.map((text) => parseListen(text).port),
    Number(flags.tlsPort),
    Number(flags.httpsPort ?? 1),
  ];
  if (flags.takeOver && ports.includes(0))
    throw usageError(
      '--take-over: want the ports of the running server in --listen, --tls-port and --https-port, not 0',
    );
  if (flags.httpsPort !== undefined && (flags.tlsCert === undefined || flags.tlsKey === undefined))
    throw usageError(`--https-port ${flags.httpsPort}: want --tls-cert FILE and --tls-key FILE too`);
  for (const text of flags.serverAddress)
    if (!parseIp(text)) throw usageError(`--server-address ${text}: want an address such as 10.96.0.10`);
  checkNameservers('--forward', flags.forward);
  checkRanges('--client', flags.client);
}

export function checkNameservers(flag: string, texts: readonly string[]): void {
  for (const text of texts) if (!text.startsWith('/')) inFlag(`${flag} ${text}`, () => parseServerAddress(text));
}

export function checkRanges(flag: string, texts: readonly string[]): void {
  for (const text of texts)
    if (!parseRange(text)) throw usageError(`${flag} ${text}: want an address or a range such as 10.0.0.0/8`);
}

export async function listenOf(host: Host, flags: DnsServerFlags): Promise<ListenOptions> {
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
  const httpsPort =
    flags.httpsPort === undefined ? undefined : numberIn('--https-port', flags.httpsPort, { min: 0, max: 65_535 });
  return { ...listen, tls: { port: tlsPort, material, httpsPort } };
}

/** Read again while the server runs. */
export async function tlsMaterialOf(host: Host, flags: DnsServerFlags): Promise<TlsMaterial> {
  const { tlsCert, tlsKey, tlsClientCa } = flags;
  const [certificate, key] = await pair(host, { cert: ['--tls-cert', tlsCert], key: ['--tls-key', tlsKey] });
  const clientAuthority = tlsClientCa && (await fileOf(host, '--tls-client-ca', tlsClientCa));
  return { certificate, key, ...(clientAuthority ? { clientAuthority } : {}) };
}

/** The addresses of this server. A wildcard address is left out: clients cannot use it. */
export function serverAddressesOf(flags: Pick<DnsServerFlags, 'serverAddress' | 'listen'>): string[] {
  if (flags.serverAddress.length > 0) return flags.serverAddress;
  const hosts = flags.listen.map((text) => parseListen(text).host);
  return hosts.filter((host) => parseIp(host) && host !== '0.0.0.0' && !/^[0:]+$/.test(host));
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

export function numberIn(flag: string, text: string, range: { readonly min: number; readonly max: number }): number {
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text) || value < range.min || value > range.max)
    throw usageError(`${flag} ${text}: want a number from ${range.min} to ${range.max}`);
  return value;
}

export function ttlOf({ ttl }: Pick<DnsServerFlags, 'ttl'>): number | undefined {
  return ttl === undefined ? undefined : numberIn('--ttl', ttl, { min: 0, max: 86_400 });
}

export function sourceOptionOf({ sourceOption }: Pick<DnsServerFlags, 'sourceOption'>): number | undefined {
  if (sourceOption === undefined) return undefined;
  return numberIn('--source-option', sourceOption, { min: 65_001, max: 65_534 });
}

/** Keys in files as tsig-keygen writes them. */
export async function keysIn(host: Host, flag: string, paths: readonly string[]): Promise<TsigKey[]> {
  const keys = await Promise.all(
    paths.map(async (path) => parseTsigFile(await fileOf(host, flag, path), `${flag} ${path}`)),
  );
  return keys.flat();
}

type FileFlag = readonly [flag: string, path: string | undefined];

/** Both or an error that names the missing one. */
export async function pair(host: Host, { cert, key }: { cert: FileFlag; key: FileFlag }): Promise<[string, string]> {
  if (cert[1] === undefined) throw usageError(`${key[0]}: want ${cert[0]} FILE too`);
  if (key[1] === undefined) throw usageError(`${cert[0]}: want ${key[0]} FILE too`);
  return [await fileOf(host, cert[0], cert[1]), await fileOf(host, key[0], key[1])];
}

export async function fileOf(host: Host, flag: string, path: string): Promise<string> {
  const text = await host.readText(path);
  if (text === undefined) throw usageError(`${flag} ${path}: no such file`);
  return text;
}

export function inFlag<T>(what: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw usageError(`${what}: ${(cause as Error).message}`, { cause });
  }
}
