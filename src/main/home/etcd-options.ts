// From the flags of a home to its etcd.

import type { Host } from '../../base/host.ts';
import type { HostPort } from '../../base/net/host-port.ts';
import { usageError } from '../../cli/exit-codes.ts';
import { fileOf } from '../../cli/roles/dns-server-flags.ts';
import { etcdOf, type HomeEtcdFlags } from '../../cli/roles/etcd-flags.ts';
import { parseListen } from '../../cli/roles/options.ts';
import { Seal } from '../../home/store/etcd/seal.ts';
import type { EtcdOptions } from './etcd-store.ts';

const prefixPattern = /^\/([\w.-]+\/)*$/;

export async function etcdOptionsOf(host: Host, flags: HomeEtcdFlags): Promise<EtcdOptions | undefined> {
  const found = await etcdOf(host, flags);
  if (found === undefined) return undefined;
  const { etcdPrefix, etcdKeysFile } = flags;
  const prefix = etcdPrefix.endsWith('/') ? etcdPrefix : `${etcdPrefix}/`;
  if (!prefixPattern.test(prefix) || prefix === '/')
    throw usageError(`--etcd-prefix ${etcdPrefix}: want a path such as /portolan/east/`);
  const sealKeys = etcdKeysFile && (await fileOf(host, '--etcd-keys-file', etcdKeysFile));
  if (sealKeys) checkKeys(sealKeys);
  return {
    endpoints: found.endpoints.map(({ server, certificateAuthority, clientCertificate, clientKey }) => ({
      url: server,
      ca: certificateAuthority,
      certificate: clientCertificate,
      key: clientKey,
    })),
    credentials: found.credentials,
    prefix,
    sealKeys: sealKeys || undefined,
    compacts: flags.etcdCompact !== false,
    acceptsRestored: flags.etcdAcceptRestored === true,
  };
}

export function replicasOf({ etcd, replica }: HomeEtcdFlags): HostPort[] {
  if (etcd === undefined && replica.length > 0)
    throw usageError('--replica: the processes of a home share an etcd; give it with --etcd');
  return replica.map((text) => parseListen(text, '--replica'));
}

function checkKeys(text: string): void {
  try {
    Seal.parse(text, { bytes: (count) => new Uint8Array(count) });
  } catch (error) {
    throw usageError(`--etcd-keys-file: ${(error as Error).message}`);
  }
}
