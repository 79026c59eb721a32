// The flags that say where an etcd is and how it is reached, for every role that stores something there.

import type { Command } from 'commander';
import type { Host } from '../../base/host.ts';
import type { HttpAccess } from '../../base/http.ts';
import { usageError } from '../exit-codes.ts';
import { fileOf, pair } from './dns-server-flags.ts';

export interface EtcdFlags {
  readonly etcd?: string;
  readonly etcdCa?: string;
  readonly etcdCert?: string;
  readonly etcdKey?: string;
  readonly etcdUser?: string;
  readonly etcdPasswordFile?: string;
}

export function addEtcdOptions(command: Command, description: string): Command {
  return command
    .option('--etcd <url,url>', description)
    .option('--etcd-ca <file>', "certificate authority of etcd (default: the system's)")
    .option('--etcd-cert <file>', 'client certificate for etcd')
    .option('--etcd-key <file>', 'its key')
    .option('--etcd-user <name>', 'user of etcd')
    .option('--etcd-password-file <file>', 'file with its password');
}

export interface HomeEtcdFlags extends EtcdFlags {
  readonly etcdPrefix: string;
  readonly etcdKeysFile?: string;
  readonly etcdCompact?: boolean;
  readonly etcdAcceptRestored?: boolean;
  readonly replica: string[];
}

/** Flags of a home that keeps its objects in etcd. */
export function addHomeEtcdOptions(command: Command): Command {
  return addEtcdOptions(command, 'endpoints of an etcd to keep the objects in, instead of the data folder')
    .option('--etcd-prefix <path>', 'where in etcd; each home has its own', '/portolan/home/')
    .option(
      '--etcd-keys-file <file>',
      'keys to encrypt what is stored there with, the first one encrypts (default: none)',
    )
    .option('--no-etcd-compact', 'leave it to others to give up older states of etcd')
    .option('--etcd-accept-restored', 'start although etcd was restored to an older state')
    .option(
      '--replica <host:port...>',
      'where other processes of this home are reached; in its certificate, its kubeconfig and in join tokens',
      [],
    );
}

export interface EtcdEndpoints {
  readonly endpoints: readonly HttpAccess[];
  readonly credentials?: { readonly name: string; readonly password: string };
}

/** URLs with commas between them; certificates and passwords in files. */
export async function etcdOf(host: Host, flags: EtcdFlags): Promise<EtcdEndpoints | undefined> {
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
