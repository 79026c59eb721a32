// The process of `portolan dns`: from flags to a running resolver.

import { formatHostPort } from '../../base/net/host-port.ts';
import { followCertificateFiles } from '../../base/real/certificate-files.ts';
import { followValue } from '../../base/real/followed-value.ts';
import { zoneAtStart } from '../../catalog/clusterset-options.ts';
import { clusterInCopy, clustersetZoneIn, ownerOf } from '../../catalog/copy/copy-keeper.ts';
import { usageError } from '../../cli/exit-codes.ts';
import {
  cacheOf,
  checkFlags,
  type DnsFlags,
  forwardTimesOf,
  isStubAutomatic,
  localTtlOf,
  stubEndpointOf,
  stubKeysOf,
  stubZonesOf,
  tlsClientOf,
} from '../../cli/roles/dns-flags.ts';
import { nameserversOf, numberIn, sourceOptionOf, ttlOf } from '../../cli/roles/dns-server-flags.ts';
import { parseAdvertise, parseListen } from '../../cli/roles/options.ts';
import type { StubCertificates, StubEndpoint, StubStore } from '../../dns/config/config.ts';
import type { DnsServer } from '../../dns/server.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { type FollowedClusterId, followClusterId } from '../identity/followed-cluster-id.ts';
import { dnsCertificates } from './certificates.ts';
import { LocalNames } from './local-names.ts';
import { startResolver } from './part.ts';
import { type Hands, namesCopyOf, type Running, runDnsServer, serverOptions } from './server-process.ts';
import { shareStubZones } from './shared-stub-zones.ts';
import { staleRemark } from './stale-zones.ts';
import { openStubAccess } from './stub-access.ts';

export function runDns(flags: DnsFlags): Promise<void> {
  checkFlags(flags);
  return runDnsServer(flags, { name: 'dns', start, followId: followIdUnlessGiven });
}

/** A resolver serves the cluster that a flag names, else the one that the home belongs to. */
async function followIdUnlessGiven(
  flags: DnsFlags,
  hands: Omit<Hands, 'served'>,
): Promise<FollowedClusterId | undefined> {
  if (flags.clusterId !== undefined) return undefined;
  const { world, log, parts } = hands;
  const home = await clientAt(flags.kubeconfig, flags.context, hands);
  const last = flags.state === undefined ? undefined : await clusterInCopy(world.disk, flags.state);
  const followed = await followClusterId({ world, log, home, ...(last === undefined ? {} : { last }) });
  parts.add('id of the cluster', () => followed.stop());
  return followed;
}

async function start(flags: DnsFlags, hands: Hands): Promise<Running> {
  const { log, host, served, parts } = hands;
  const id = flags.clusterId!;
  const { nameservers, ...common } = await serverOptions(flags, hands);
  const namesCopy = await namesCopyOf(flags, ownerOf(id), hands);
  const home = await clientAt(flags.kubeconfig, flags.context, hands);
  const names = await localNamesOf(flags, home, hands);
  const stubKeys = await stubKeysOf(host, flags);
  const stub = isStubAutomatic(flags) ? await automaticStub(flags, home, hands) : undefined;
  const given = stub?.endpoint ?? (await stubFromFiles(flags, hands));
  const stubEndpoint = given && { ...given, store: flags.stubShared ? sharedStore(home, hands) : undefined };
  const resolver = await startResolver({
    ...common,
    namesCopy,
    ...(nameservers.length > 0 ? { forward: { nameservers, tls: await tlsClientOf(host, flags) } } : {}),
    forwardTimes: forwardTimesOf(flags),
    cache: cacheOf(flags),
    ...(names ? { records: names.records, local: names.local } : {}),
    waitingMax: numberIn('--forward-waiting', flags.forwardWaiting, { min: 1, max: 1_000_000 }),
    sourceOption: sourceOptionOf(flags),
    home,
    cluster: { id, zone: flags.zone, region: flags.region },
    stubZones: stubZonesOf(flags, stubKeys),
    stubKeys,
    stubEndpoint,
    stubAdvertise: stub?.advertise,
    domains: {
      cluster: flags.clusterDomain,
      isClustersetFixed: flags.clustersetDomain !== undefined,
      clusterset: flags.clustersetDomain ?? (await zoneAtStart(home, log, namesCopy && clustersetZoneIn(namesCopy))),
      ttlSeconds: ttlOf(flags),
    },
    clusterDomainForward: await nameserversOf(host, '--cluster-domain-forward', flags.clusterDomainForward),
    peersNamespace: flags.peersNamespace,
    hasClusterNames: flags.clusterNames,
    podNames: flags.pods,
    ignoresEmptyServices: flags.ignoreEmptyService,
  });
  const { catalog, stubPort, server } = resolver;
  names?.follow((local) => server.changeZones({ local }));
  parts.add('nameservers in files', followForward(flags, { ...hands, nameservers, server }));
  return {
    server,
    stubAddress: stubPort === undefined ? undefined : formatHostPort(parseListen(flags.stubListen!).host, stubPort),
    admin: {
      part: 'dns',
      catalog,
      registrations: resolver.leases,
      certificates: dnsCertificates({ tls: () => served.tls?.certificate, stubEndpoint }),
      zones: () => resolver.zones(),
      notReady: () => resolver.notReady(),
      status: () => ({ cluster: id, ...resolver.staleZones(), ...(names ? { local: names.status() } : {}) }),
      remark: () => [staleRemark(resolver.staleZones()), ...(names?.problems() ?? [])].filter(Boolean).join('\n'),
    },
    whenSynced: () => resolver.whenSynced(),
    stop: () => resolver.stop(),
  };
}

/** Static records and rules, if a flag names some. */
async function localNamesOf(flags: DnsFlags, home: Client, hands: Hands): Promise<LocalNames | undefined> {
  const { hosts, records, nameRules: rules, namesFrom: configMap } = flags;
  if (hosts.length + records.length + rules.length === 0 && configMap === undefined) return undefined;
  const names = new LocalNames({
    ...{ ...hands, home, hosts, records, rules, configMap },
    ttlSeconds: localTtlOf(flags),
  });
  hands.parts.add('records and rules', () => names.stop());
  try {
    await names.read();
  } catch (cause) {
    throw usageError((cause as Error).message, { cause });
  }
  return names;
}

const readAgainMs = 5_000;

/** Files such as /etc/resolv.conf are read again. A file that lists none, or is gone, leaves those of before. */
function followForward(
  flags: DnsFlags,
  {
    world,
    log,
    host,
    nameservers: first,
    server,
  }: Hands & { readonly nameservers: string[]; readonly server: DnsServer },
): () => void {
  if (!flags.forward.some((text) => text.startsWith('/'))) return () => {};
  return followValue({
    ...{ world, log, what: '--forward', everyMs: readAgainMs, first },
    read: () => nameserversOf(host, '--forward', flags.forward),
    onChange: async (nameservers) =>
      server.changeZones({ forward: { nameservers, tls: await tlsClientOf(host, flags) } }),
  });
}

/** The endpoint for stub zones with certificates from files. */
async function stubFromFiles(flags: DnsFlags, { world, log, host, parts }: Hands): Promise<StubEndpoint | undefined> {
  const endpoint = await stubEndpointOf(host, flags);
  if (endpoint === undefined) return undefined;
  const listeners = new Set<(next: StubCertificates) => void>();
  const read = async (): Promise<StubCertificates> => {
    const { certificate, key, clientAuthority } = (await stubEndpointOf(host, flags))!;
    return { certificate, key, clientAuthority };
  };
  const { certificate, key, clientAuthority } = endpoint;
  const onChange = (next: StubCertificates) => {
    for (const listener of listeners) listener(next);
  };
  const files = { world, log, first: { certificate, key, clientAuthority }, read, onChange };
  parts.add('certificate files for stub zones', followCertificateFiles(files));
  return {
    ...endpoint,
    onRenewed: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The endpoint for stub zones with certificates that joining made. */
async function automaticStub(flags: DnsFlags, home: Client, { world, log, parts }: Hands) {
  const listen = parseListen(flags.stubListen!, '--stub-listen');
  const advertise = parseAdvertise(flags.stubAdvertise ?? formatHostPort(listen.host, listen.port));
  const access = await openStubAccess({ world, log, home, hosts: [advertise.host] });
  parts.add('certificates for stub zones', () => access.stop());
  const { stubSuffix: suffix, stubFile: file } = flags;
  return {
    advertise: { ...advertise, caBundle: access.caBundle },
    endpoint: { ...listen, ...access, file, ...(suffix === undefined ? {} : { suffix }) },
  };
}

/** Where several resolvers stand behind one address, all of them know what was posted to one. */
function sharedStore(client: Client, { world, log, parts }: Hands): StubStore {
  const store = shareStubZones({ client, world, log });
  parts.add('shared stub zones', () => store.stop());
  return store;
}

async function clientAt(
  kubeconfig: string | undefined,
  context: string | undefined,
  hands: Pick<Hands, 'world' | 'host' | 'parts'>,
): Promise<Client> {
  const { world, host, parts } = hands;
  const access = await findHome({ host, clock: world.clock, kubeconfig, context });
  const client = createClient(world.network.http(access), { world, userAgent: 'portolan-dns' });
  parts.add('client', () => client.close());
  return client;
}
