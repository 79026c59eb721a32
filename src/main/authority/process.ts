// The process of `portolan authority`: from flags to a running authority of a federation.

import type { EtcdAccess } from '../../base/etcd.ts';
import { errorText, type Log } from '../../base/log.ts';
import {
  type AuthorityFlags,
  checkAuthorityFlags,
  identityOf,
  transferOf,
  trustOf,
} from '../../cli/roles/authority-flags.ts';
import { sourceOptionOf, ttlOf } from '../../cli/roles/dns-server-flags.ts';
import { etcdOf } from '../../cli/roles/etcd-flags.ts';
import { type Federation, federationType } from '../../federation/kinds/federation.ts';
import type { Client } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { dnsCertificates } from '../dns/certificates.ts';
import { type Hands, namesCopyOf, type Running, runDnsServer, serverOptions } from '../dns/server-process.ts';
import { staleRemark } from '../dns/stale-zones.ts';
import { openAuthorityBroker } from './broker.ts';
import { startAuthority } from './part.ts';
import type { AuthoritySetup } from './role.ts';

const firstLookMs = 3000;

export function runAuthority(flags: AuthorityFlags): Promise<void> {
  checkAuthorityFlags(flags);
  return runDnsServer(flags, { name: 'authority', start });
}

async function start(flags: AuthorityFlags, hands: Hands): Promise<Running> {
  const setup = await setupOf(flags, hands);
  const namesCopy = await namesCopyOf(flags, `federation ${flags.federation}`, hands);
  const transfer = await transferOf(hands.host, flags);
  const authority = await startAuthority({ ...(await serverOptions(flags, hands)), ...setup, namesCopy, transfer });
  const { server, table, role } = authority;
  return {
    server,
    admin: {
      part: 'authority',
      registrations: authority.leases,
      certificates: dnsCertificates({ tls: () => hands.served.tls?.certificate, identity: setup.identity }),
      zones: () => [table.zone],
      notReady: () => (table.table.isReady(table.zone.id) ? '' : `not read yet: ${table.zone.name}`),
      status: () => ({
        federation: flags.federation,
        isLeading: role.isLeading(),
        secondaries: authority.secondaries(),
        ...authority.staleZones(),
      }),
      remark: () =>
        [staleRemark(authority.staleZones()), ...authority.secondaries().map(({ problem }) => problem)]
          .filter(Boolean)
          .join('\n'),
    },
    whenSynced: () => authority.whenSynced(),
    stop: () => authority.stop(),
  };
}

async function setupOf(flags: AuthorityFlags, hands: Hands): Promise<AuthoritySetup> {
  const { host } = hands;
  const { federation, brokerKubeconfig } = flags;
  const broker =
    brokerKubeconfig === undefined ? undefined : await openAuthorityBroker({ ...flags, brokerKubeconfig }, hands);
  return {
    federation,
    trust: await trustOf(host, flags),
    fixed: {
      suffix: flags.suffix,
      ttlSeconds: ttlOf(flags),
      sourceOption: sourceOptionOf(flags),
      ...(flags.serverAddress.length === 0 ? {} : { serverAddresses: flags.serverAddress }),
    },
    said: broker && (await readFederation(broker.client, flags, hands.log)),
    ...(broker === undefined ? {} : { broker: { ...broker, clusterset: flags.clusterset } }),
    etcd: await etcdAt(flags, hands),
    identity: await identityOf(host, flags),
  };
}

async function etcdAt(flags: AuthorityFlags, { world, host, parts }: Hands): Promise<EtcdAccess | undefined> {
  const found = await etcdOf(host, flags);
  if (found === undefined) return undefined;
  const transports = found.endpoints.map((access) => world.network.http(access));
  for (const transport of transports) parts.add('etcd client', () => transport.close());
  const { credentials } = found;
  return { transports, ...(credentials ? { credentials } : {}) };
}

/** Its suffix and TTL before it is followed. A broker that is away must not keep us from answering what etcd knows. */
async function readFederation(broker: Client, flags: AuthorityFlags, log: Log): Promise<Federation | undefined> {
  const ref = { namespace: flags.clusterset, name: flags.federation };
  try {
    return await broker.get<Federation>(federationType, ref, { timeoutMs: firstLookMs });
  } catch (error) {
    if (isNotFound(error)) log.warn('the Federation does not exist yet; using defaults', ref);
    else
      log.warn('the broker does not answer; suffix and TTL are the defaults until it does', {
        error: errorText(error),
      });
    return undefined;
  }
}
