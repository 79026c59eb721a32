// The process of `portolan dns`: from flags to a running server, its admin endpoint, and its end.

import { availableParallelism, hostname } from 'node:os';
import type { EtcdAccess } from '../../base/etcd.ts';
import { errorText, type Log } from '../../base/log.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import { Parts } from '../../base/parts.ts';
import { followCertificateFiles } from '../../base/real/certificate-files.ts';
import { growFreely, stayCompact } from '../../base/real/collect-garbage.ts';
import { createRealHost } from '../../base/real/host.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { sleep, type World } from '../../base/world.ts';
import { zoneAtStart } from '../../catalog/clusterset-options.ts';
import {
  clusterInCopy,
  clustersetZoneIn,
  findNamesCopy,
  type NamesCopy,
  ownerOf,
} from '../../catalog/copy/copy-keeper.ts';
import {
  checkFlags,
  type DnsFlags,
  etcdOf,
  forwardTimesOf,
  identityOf,
  isStubAutomatic,
  listenOf,
  nameserversOf,
  numberIn,
  serverAddressesOf,
  stubEndpointOf,
  stubKeysOf,
  stubZonesOf,
  tlsClientOf,
  tlsMaterialOf,
  trustOf,
} from '../../cli/roles/dns-flags.ts';
import { parseAdvertise, parseListen } from '../../cli/roles/options.ts';
import type { StubCertificates, StubEndpoint, StubStore, TlsMaterial } from '../../dns/config/config.ts';
import type { DnsServer } from '../../dns/server.ts';
import { type Federation, federationType } from '../../federation/kinds/federation.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { openAuthorityBroker } from '../authority/broker.ts';
import type { AuthorityOptions } from '../authority/part.ts';
import type { AuthoritySetup } from '../authority/role.ts';
import { type FollowedClusterId, followClusterId } from '../ground/followed-cluster-id.ts';
import { nodeName, processLog, untilStopped, withParts } from '../process.ts';
import { startDnsAdmin } from './admin.ts';
import { dnsCertificates } from './certificates.ts';
import { startResolver } from './part.ts';
import { shareStubZones } from './shared-stub-zones.ts';
import { staleRemark } from './stale-zones.ts';
import { openStubAccess } from './stub-access.ts';

interface Running {
  readonly server: DnsServer;
  readonly admin: Omit<Parameters<typeof startDnsAdmin>[0], 'world' | 'listen' | 'server'>;
  readonly stubPort: number | undefined;
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

interface Hands {
  readonly world: World;
  readonly log: Log;
  readonly host: ReturnType<typeof createRealHost>;
  readonly parts: Parts;
  /** The certificate for DNS over TLS at present. */
  readonly served: { tls?: TlsMaterial };
}

/** As long as a query may wait for nameservers by default. */
const drainMs = 5000;

export async function runDns(flags: DnsFlags): Promise<void> {
  checkFlags(flags);
  parseListen(flags.adminListen, '--admin-listen');
  growFreely();
  const lameduckMs = 1000 * numberIn('--lameduck', flags.lameduck, { min: 0, max: 600 });
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const outer: Outer = { world, log, host: createRealHost(), isStopping: () => isStopping };
  let isStopping = false;
  await withParts(log, async (parts) => {
    const followed = await followIdUnlessGiven(flags, { ...outer, parts });
    let run = await startRun(withId(flags, followed?.current()), outer);
    // The last run, whichever that is then.
    parts.add('dns', () => run.parts.stop());
    let isReady = false;
    const sayReady = () => {
      if (!isReady && flags.takeOver) sayWhereItListens(run);
      if (!isReady) process.stdout.write('ready\n');
      isReady = true;
      stayCompact();
    };
    const failed = Promise.withResolvers<never>();
    const awaitServing = (started: Run) =>
      started.whenServing().then(sayReady, (error: unknown) => {
        if (started === run && !isStopping) failed.reject(error);
      });
    let turn: Promise<void> = Promise.resolve();
    followed?.onChange((id) => {
      turn = turn.then(async () => {
        if (isStopping || run.flags.clusterId === id) return;
        log.info('the cluster has another id: serving it from now on', { id });
        await run.parts.stop();
        run = await startRun(withId(run.flags, id), outer);
        void awaitServing(run);
      });
      turn.catch(failed.reject);
    });
    const stopped = untilStopped(log, async (signal) => {
      isStopping = true;
      // Those who choose among several servers need a while to notice that this one is leaving.
      if (signal === 'SIGTERM') await sleep(world.timers, lameduckMs);
      await turn.catch(() => {});
      await run.server.close({ drainMs });
      await parts.stop();
    });
    if (flags.takeOver) process.stdout.write(`admin ${run.adminUrl}\n`);
    else sayWhereItListens(run);
    void awaitServing(run);
    await Promise.race([stopped, failed.promise]);
  });
}

interface Outer extends Omit<Hands, 'parts' | 'served'> {
  isStopping(): boolean;
}

/** One resolver or authority: until its end, or until the cluster has another id. */
interface Run extends Pick<Running, 'server' | 'stubPort'> {
  /** Resolves when everything was read, and clients are answered from it. */
  whenServing(): Promise<void>;
  /** With the ports that it has taken. */
  readonly flags: DnsFlags;
  readonly adminUrl: string;
  readonly parts: Parts;
}

async function startRun(flags: DnsFlags, outer: Outer): Promise<Run> {
  const { world, log } = outer;
  const parts = new Parts(log);
  const hands: Hands = { ...outer, parts, served: {} };
  try {
    const running = await start(flags, hands);
    parts.add('dns', () => running.stop());
    const { server, admin, stubPort } = running;
    followTlsFiles(flags, hands, server);
    let isListening = !flags.takeOver;
    const notReady = () => {
      if (outer.isStopping()) return 'stopping';
      return admin.notReady() || (isListening ? '' : 'not listening yet');
    };
    const listen = parseListen(flags.adminListen, '--admin-listen');
    const endpoint = await startDnsAdmin({ ...admin, notReady, world, listen, server });
    parts.add('admin endpoint', () => endpoint.close());
    const whenServing = async () => {
      await running.whenSynced();
      if (isListening) return;
      await server.takeOver();
      isListening = true;
    };
    return {
      server,
      stubPort,
      whenServing,
      adminUrl: endpoint.url,
      parts,
      flags: pinned(flags, running, endpoint.url),
    };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

/** Clients were given these ports. */
function pinned(flags: DnsFlags, { server, stubPort }: Running, adminUrl: string): DnsFlags {
  const { stubListen } = flags;
  return {
    ...flags,
    listen: server.addresses.map(({ host, port }) => formatHostPort(host, port)),
    adminListen: new URL(adminUrl).host,
    ...(server.tlsPort === undefined ? {} : { tlsPort: String(server.tlsPort) }),
    ...(stubListen === undefined ? {} : { stubListen: formatHostPort(parseListen(stubListen).host, stubPort!) }),
  };
}

function withId(flags: DnsFlags, clusterId: string | undefined): DnsFlags {
  return clusterId === undefined ? flags : { ...flags, clusterId };
}

/** A resolver serves the cluster that a flag names, else the one that the home belongs to. */
async function followIdUnlessGiven(
  flags: DnsFlags,
  hands: Pick<Hands, 'world' | 'log' | 'host' | 'parts'>,
): Promise<FollowedClusterId | undefined> {
  if (flags.clusterId !== undefined || flags.federation !== undefined) return undefined;
  const { world, log, parts } = hands;
  const home = await clientAt(flags.kubeconfig, flags.context, hands);
  const last = flags.state === undefined ? undefined : await clusterInCopy(world.disk, flags.state);
  const followed = await followClusterId({ world, log, home, ...(last === undefined ? {} : { last }) });
  parts.add('id of the cluster', () => followed.stop());
  return followed;
}

function followTlsFiles(flags: DnsFlags, { world, log, host, parts, served }: Hands, server: DnsServer): void {
  if (served.tls === undefined) return;
  const onChange = (next: TlsMaterial) => {
    served.tls = next;
    server.setTls(next);
  };
  const read = () => tlsMaterialOf(host, flags);
  parts.add('certificate files', followCertificateFiles({ world, log, first: served.tls, read, onChange }));
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

function sayWhereItListens({ server, stubPort, adminUrl, flags }: Run): void {
  const { addresses } = server;
  const tlsHosts = addresses.filter(({ port }) => port === server.udpPort).map(({ host }) => host);
  const say = (text: string) => process.stdout.write(`${text}\n`);
  say(`admin ${adminUrl}`);
  if (server.tlsPort !== undefined)
    say(`tls ${tlsHosts.map((host) => formatHostPort(host, server.tlsPort!)).join(' ')}`);
  if (stubPort !== undefined)
    say(`stub zones https://${formatHostPort(parseListen(flags.stubListen!).host, stubPort)}`);
  say(`listening ${addresses.map(({ host, port }) => formatHostPort(host, port)).join(' ')}`);
}

async function start(flags: DnsFlags, hands: Hands): Promise<Running> {
  const { world, log, host, served } = hands;
  const authority = flags.federation === undefined ? undefined : await authorityOf(flags, hands);
  const sourceOption = sourceOptionOf(flags);
  const namesCopy = await namesCopyOf(flags, hands);
  const nameservers = await nameserversOf(host, '--forward', flags.forward);
  const listen = await listenOf(host, flags);
  served.tls = listen.tls?.material;
  const common = {
    world,
    log,
    namesCopy,
    listen,
    serverAddresses: serverAddressesOf(flags),
    partId: hostname(),
    node: nodeName(),
    workers: flags.workers === undefined ? spareCores() : numberIn('--workers', flags.workers, { min: 0, max: 256 }),
    ...(nameservers.length > 0 ? { forward: { nameservers, tls: await tlsClientOf(host, flags) } } : {}),
    forwardTimes: forwardTimesOf(flags),
    waitingMax: numberIn('--forward-waiting', flags.forwardWaiting, { min: 1, max: 1_000_000 }),
    clients: flags.client.length === 0 ? undefined : flags.client,
  };
  if (flags.clusterId === undefined) return startAuthorityOnly(common, authority!, hands);
  const home = await clientAt(flags.kubeconfig, flags.context, hands);
  const stubKeys = await stubKeysOf(host, flags);
  const stub = isStubAutomatic(flags) ? await automaticStub(flags, home, hands) : undefined;
  const given = stub?.endpoint ?? (await stubFromFiles(flags, hands));
  const stubEndpoint = given && { ...given, store: flags.stubShared ? sharedStore(home, hands) : undefined };
  const resolver = await startResolver({
    ...common,
    sourceOption: sourceOption ?? authority?.said?.spec?.source?.optionCode,
    home,
    cluster: { id: flags.clusterId, zone: flags.zone, region: flags.region },
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
    authority,
  });
  const { catalog, authority: running } = resolver;
  return {
    server: resolver.server,
    stubPort: resolver.stubPort,
    admin: {
      catalog,
      registrations: resolver.leases,
      certificates: dnsCertificates({
        tls: () => served.tls?.certificate,
        ...{ stubEndpoint, identity: authority?.identity },
      }),
      zones: () => resolver.zones(),
      notReady: () => resolver.notReady(),
      status: () => ({
        cluster: flags.clusterId,
        ...(running ? { isLeading: running.role.isLeading() } : {}),
        ...resolver.staleZones(),
      }),
      remark: () => staleRemark(resolver.staleZones()),
    },
    whenSynced: () => resolver.whenSynced(),
    stop: () => resolver.stop(),
  };
}

/** The endpoint for stub zones with certificates that joining made. */
async function automaticStub(flags: DnsFlags, home: Client, { world, log, parts }: Hands) {
  const listen = parseListen(flags.stubListen!, '--stub-listen');
  const advertise = parseAdvertise(flags.stubAdvertise ?? formatHostPort(listen.host, listen.port));
  const access = await openStubAccess({ world, log, home, hosts: [advertise.host] });
  parts.add('certificates for stub zones', () => access.stop());
  const { suffix, stubFile: file } = flags;
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

async function namesCopyOf(flags: DnsFlags, { world, log }: Hands): Promise<NamesCopy | undefined> {
  const hours = numberIn('--state-max-age', flags.stateMaxAge, { min: 1, max: 100_000 });
  if (flags.state === undefined) return undefined;
  const { clusterId, federation, state: directory } = flags;
  const owner = clusterId === undefined ? `federation ${federation}` : ownerOf(clusterId);
  return findNamesCopy({ world, log, directory, owner, maxAgeMs: hours * 3_600_000 });
}

/** One stays for reading the home. */
function spareCores(): number {
  return Math.min(workersMax, availableParallelism() - 1);
}

type Common = Omit<AuthorityOptions, keyof AuthoritySetup>;

async function startAuthorityOnly(common: Common, setup: AuthoritySetup, { served }: Hands): Promise<Running> {
  const { startAuthority } = await import('../authority/part.ts');
  const authority = await startAuthority({ ...common, ...setup });
  const { server, table, role } = authority;
  return {
    server,
    stubPort: undefined,
    admin: {
      registrations: authority.leases,
      certificates: dnsCertificates({ tls: () => served.tls?.certificate, identity: setup.identity }),
      zones: () => [table.zone],
      notReady: () => (table.table.isReady(table.zone.id) ? '' : `not read yet: ${table.zone.name}`),
      status: () => ({ federation: setup.federation, isLeading: role.isLeading(), ...authority.staleZones() }),
      remark: () => staleRemark(authority.staleZones()),
    },
    whenSynced: () => authority.whenSynced(),
    stop: () => authority.stop(),
  };
}

async function authorityOf(flags: DnsFlags, hands: Hands): Promise<AuthoritySetup> {
  const { host } = hands;
  const federation = flags.federation!;
  const { brokerKubeconfig } = flags;
  const broker =
    brokerKubeconfig === undefined
      ? undefined
      : await openAuthorityBroker({ ...flags, federation, brokerKubeconfig }, hands);
  const etcd = await etcdAt(flags, hands);
  const said = broker && (await readFederation(broker.client, flags, hands.log));
  const identity = await identityOf(host, flags);
  return {
    federation,
    trust: await trustOf(host, flags),
    fixed: {
      suffix: flags.suffix,
      ttlSeconds: ttlOf(flags),
      sourceOption: sourceOptionOf(flags),
      ...(flags.serverAddress.length === 0 ? {} : { serverAddresses: flags.serverAddress }),
    },
    said,
    ...(broker === undefined ? {} : { broker: { ...broker, clusterset: flags.clusterset } }),
    etcd,
    identity,
  };
}

async function etcdAt(flags: DnsFlags, { world, host, parts }: Hands): Promise<EtcdAccess | undefined> {
  const found = await etcdOf(host, flags);
  if (found === undefined) return undefined;
  const transports = found.endpoints.map((access) => world.network.http(access));
  for (const transport of transports) parts.add('etcd client', () => transport.close());
  const { credentials } = found;
  return { transports, ...(credentials ? { credentials } : {}) };
}

const firstLookMs = 3000;
/** Default threads: more would seldom be busy, and each takes memory. */
const workersMax = 16;

/** Its suffix and TTL before it is followed. A broker that is away must not keep us from answering what etcd knows. */
async function readFederation(broker: Client, flags: DnsFlags, log: Log): Promise<Federation | undefined> {
  const ref = { namespace: flags.clusterset, name: flags.federation! };
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

function sourceOptionOf({ sourceOption }: DnsFlags): number | undefined {
  if (sourceOption === undefined) return undefined;
  return numberIn('--source-option', sourceOption, { min: 65_001, max: 65_534 });
}

function ttlOf({ ttl }: DnsFlags): number | undefined {
  return ttl === undefined ? undefined : numberIn('--ttl', ttl, { min: 0, max: 86_400 });
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
