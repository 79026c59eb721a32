// The parts of a cluster's resolver: a catalog of names, the watches on the home that feed it, names of what peers
// share, the DNS server, and the endpoint that takes stub zones.

import type { Log } from '../../base/log.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import { Parts } from '../../base/parts.ts';
import type { World } from '../../base/world.ts';
import { Attachment } from '../../catalog/attach.ts';
import { Catalog } from '../../catalog/catalog.ts';
import { followDnsOptions } from '../../catalog/clusterset-options.ts';
import { keepNamesCopy, type NamesCopy } from '../../catalog/copy/copy-keeper.ts';
import type { NameTable } from '../../catalog/names/name-table.ts';
import { PodNames } from '../../catalog/names/pod-names.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import { attachOutside } from '../../catalog/outside/attach-outside.ts';
import { ExternalTable } from '../../catalog/outside/external-table.ts';
import { PeerTable } from '../../catalog/outside/peer-table.ts';
import type { ClusterPlace } from '../../catalog/packed/places.ts';
import { stubAuthorityAnnotation, stubEndpointAnnotation } from '../../clusterset/membership/resolver-authority.ts';
import type { DnsConfig, StubEndpoint, StubKeys } from '../../dns/config/config.ts';
import type { LocalConfig } from '../../dns/handlers/local.ts';
import { type DnsServer, startDns } from '../../dns/server.ts';
import { listenFederations } from '../../dns/sockets/server-federations.ts';
import { Federations, fileStore } from '../../dns/stub-zones/federations.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import type { Client } from '../../kube/client/client.ts';
import { keepPartLease, type PartLease } from '../../kube/controller/part-lease.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import { type StaleZones, staleZones } from './stale-zones.ts';

export interface ResolverOptions extends DnsConfig {
  readonly world: World;
  readonly log: Log;
  readonly home: Client;
  readonly cluster: ClusterPlace;
  readonly stubEndpoint?: StubEndpoint;
  /** Where members' federations reach that endpoint, for the broker; not reported if absent. Port 0 is the own one. */
  readonly stubAdvertise?: {
    readonly host: string;
    readonly port: number;
    /** Base64 of PEM: issues its certificate; empty while that is not known. */
    readonly caBundle: () => string;
  };
  /** How posted stub zones are secured. */
  readonly stubKeys?: StubKeys;
  readonly domains?: {
    readonly cluster?: string;
    readonly clusterset?: string;
    /** Ignores the clusterset's own setting while it runs. */
    readonly isClustersetFixed?: boolean;
    readonly ttlSeconds?: number;
  };
  /** Distinguishes it from other resolvers of the cluster in its Lease. */
  readonly partId?: string;
  /** Where it runs. */
  readonly node?: string;
  readonly hasClusterNames?: boolean;
  readonly ignoresEmptyServices?: boolean;
  /** Where PeerServices lie. */
  readonly peersNamespace?: string;
  /** Static records and rules, beside all zones. */
  readonly records?: NameTable;
  readonly local?: LocalConfig;
  /** Names on disk, for the next start; none are kept without it. */
  readonly namesCopy?: NamesCopy;
}

export interface Resolver {
  readonly port: number;
  readonly server: DnsServer;
  readonly catalog: Catalog;
  readonly leases: readonly PartLease[];
  /** The zones answered from data that may be old. */
  staleZones(): StaleZones;
  /** All that it answers for. */
  zones(): readonly Zone[];
  /** Port of the stub-zone endpoint, if there is one. */
  readonly stubPort: number | undefined;
  /** The names it cannot answer at present, in words; empty when it can answer everything. */
  notReady(): string;
  /** Resolves when all zones can be answered; until then the answer is SERVFAIL. */
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

export async function startResolver(options: ResolverOptions): Promise<Resolver> {
  const { world, log, home, cluster } = options;
  const parts = new Parts(log);
  const catalog = makeCatalog(options);
  const { ttlSeconds } = options.domains ?? {};
  const { serverAddresses } = options;
  const peerZone = { ttlSeconds, serverAddresses, otherZones: () => catalog.zones };
  const peerTable = new PeerTable({
    ...{ ...peerZone, table: catalog.table, clock: world.clock, otherParties: ['external'] },
    isTaken: (name) => externalTable.holds(name),
  });
  const { gate } = peerTable;
  const externalTable: ExternalTable = new ExternalTable({ table: catalog.table, peers: peerTable, gate });
  const allZones = () => [...catalog.zones, peerTable.zone];
  options.namesCopy?.loaded?.serve(catalog.table, allZones());
  const server = await startDns({
    ...options,
    catalog,
    peerTable,
    externalTable,
    serverId: cluster.id,
  });
  parts.add('dns server', () => server.close());
  try {
    const reserved = () => catalog.zones.map(({ name }) => name);
    const stubPort = await addStubEndpoint({ ...options, reserved }, server, parts);
    const isForwarded = (options.clusterDomainForward ?? []).length > 0;
    const attachment = new Attachment({
      catalog,
      client: home,
      world,
      log,
      ...(isForwarded ? { zones: ['imports'] } : {}),
      ...(options.podNames === 'verified' ? { pods: new PodNames(catalog.table, catalog.clusterZone) } : {}),
    });
    parts.add('catalog', () => attachment.stop());
    const { isClustersetFixed = false, clusterset } = options.domains ?? {};
    const fixed = {
      ttlSeconds,
      hasClusterNames: options.hasClusterNames,
      ...(isClustersetFixed ? { zone: clusterset } : {}),
    };
    const onZone = (clustersetZone: Zone) => server.changeZones({ clustersetZone });
    parts.add('dns options', followDnsOptions({ world, log, home, catalog, onZone, fixed }));
    const extras = () => reportOf(options.stubAdvertise, stubPort);
    const lease = keepPartLease({
      client: home,
      world,
      log,
      part: 'dns',
      id: options.partId ?? cluster.id,
      node: options.node,
      extras,
    });
    parts.add('lease', () => lease.stop());
    const namespace = options.peersNamespace ?? systemNamespace;
    const outside = { client: home, world, log };
    const peers = attachOutside<PeerService>({ ...outside, names: peerTable, type: peerServiceType, namespace });
    parts.add('names of peers', () => peers.stop());
    const external = attachOutside<MeshExternalService>({
      ...{ ...outside, names: externalTable, type: meshExternalServiceType, namespace: systemNamespace },
    });
    parts.add('names of external services', () => external.stop());
    const zones = () => (isForwarded ? [catalog.clustersetZone] : catalog.zones);
    const notReady = () => {
      const waiting = zones()
        .filter(({ id }) => !catalog.table.isReady(id))
        .map(({ name }) => name);
      if (peers.isWaiting()) waiting.push(peerTable.zone.name);
      if (external.isWaiting()) waiting.push('names of external services');
      return waiting.length === 0 ? '' : `not read yet: ${waiting.join(', ')}`;
    };
    const whenSynced = async () =>
      void (await Promise.all([attachment.whenSynced(), peers.whenSynced(), external.whenSynced()]));
    const { namesCopy: copy } = options;
    const keeping = { world, log, table: catalog.table, zones: allZones, whenSynced };
    const keeper = copy && keepNamesCopy({ ...keeping, copy, isWhole: () => notReady() === '' }, parts);
    return {
      port: server.udpPort,
      server,
      catalog,
      leases: [lease],
      zones: allZones,
      stubPort,
      notReady,
      staleZones: () =>
        staleZones({
          ...{ table: catalog.table, zones: [...zones(), peerTable.zone] },
          ...{ leaseProblem: lease.problem(), copyProblem: keeper?.problem() ?? '' },
        }),
      whenSynced,
      stop: () => parts.stop(),
    };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

/** Annotations of its Lease, which the agent reports at the broker. */
function reportOf(advertise: ResolverOptions['stubAdvertise'], stubPort: number | undefined): Record<string, string> {
  if (advertise === undefined || stubPort === undefined) return {};
  const { host, port } = advertise;
  const caBundle = advertise.caBundle();
  if (caBundle === '') return {};
  const url = `https://${formatHostPort(host, port || stubPort)}`;
  return { [stubEndpointAnnotation]: url, [stubAuthorityAnnotation]: caBundle };
}

function makeCatalog(options: ResolverOptions): Catalog {
  const { world, cluster, domains = {}, hasClusterNames, ignoresEmptyServices, serverAddresses } = options;
  return new Catalog({
    serverAddresses,
    clock: world.clock,
    timers: world.timers,
    cluster,
    clusterDomain: domains.cluster,
    clustersetDomain: domains.clusterset,
    ttlSeconds: domains.ttlSeconds,
    hasClusterNames,
    ignoresEmptyServices,
  });
}

async function addStubEndpoint(
  options: ResolverOptions & { readonly reserved: () => readonly string[] },
  server: DnsServer,
  parts: Parts,
): Promise<number | undefined> {
  const { stubEndpoint: endpoint, world, log } = options;
  if (endpoint === undefined) return undefined;
  const federations = new Federations({
    store: endpoint.store ?? fileStore(world.disk, endpoint.file),
    path: endpoint.file,
    log,
    allowed: endpoint.allowed,
    mayPost: endpoint.mayPost,
    fixed: options.stubZones ?? [],
    reserved: options.reserved,
    ...options.stubKeys,
    onChange: (zones) => server.setStubZones(zones),
    suffix: endpoint.suffix,
  });
  await federations.load();
  const listening = await listenFederations({ ...endpoint, federations, takesOver: options.listen.takesOver });
  parts.add('stub-zone endpoint', () => listening.close());
  return listening.port;
}
