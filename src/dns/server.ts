// Starts the DNS server of a cluster: UDP and TCP on every address given, DoT when it has a certificate. In this thread, or
// in workers that share the ports (server-workers.ts).

import type { TsigKey } from '../base/dns/tsig.ts';
import type { Log, LogFields } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { FederationTable } from '../catalog/federation/federation-table.ts';
import type { NameTable } from '../catalog/names/name-table.ts';
import type { ExternalTable } from '../catalog/outside/external-table.ts';
import type { PeerTable } from '../catalog/outside/peer-table.ts';
import type { ChainConfig, PeerNamesConfig } from './chain/chain.ts';
import { DnsService } from './chain/service.ts';
import { type DnsConfig, nobody, type StubZone, type TrustedServersConfig } from './config/config.ts';
import type { ExplainRequest } from './explain/explainer.ts';
import type { Explanation } from './explain/explanation.ts';
import { createSelfExplainer } from './explain/self-explainer.ts';
import { defaultClients } from './handlers/acl.ts';
import type { LocalConfig } from './handlers/local.ts';
import { reverseTrees } from './handlers/reverse.ts';
import { defaultSourceOption } from './message/wire.ts';
import { createCounters } from './metrics/observe.ts';
import { type CloseOptions, checkPortsFree, holdSockets, placesOf, type Serving } from './sockets/open-sockets.ts';
import { startWorkers } from './sockets/server-workers.ts';
import { markOf } from './source/trusted-servers.ts';
import type { Exchange } from './upstream/exchange.ts';
import { createTransport } from './upstream/transport.ts';
import { defaultWaitingMax } from './upstream/waiting-room.ts';

export interface DnsOptions extends DnsConfig {
  readonly world: World;
  readonly log: Log;
  /** The cluster's names; absent in a server that is a federation's authority and nothing else. */
  readonly catalog?: Catalog;
  /** Federations whose authority this server is. They lie in the catalog's own table if there is a catalog. */
  readonly federations?: readonly FederationTable[];
  /** Names of services that peers share; in the catalog's own table. */
  readonly peerTable?: PeerTable;
  /** Names of external services, beside those of peers. */
  readonly externalTable?: ExternalTable;
  /** How this server is called in NSID and `id.server`. */
  readonly serverId?: string;
  /** Static records; their table may change while the server runs. */
  readonly records?: NameTable;
  /** Rules, beside those records. */
  readonly local?: LocalConfig;
  /** Servers that may name the client's cluster; none by default. */
  readonly trusted?: TrustedServersConfig;
  /** Keys that trusted servers sign with (TSIG). */
  readonly keys?: readonly TsigKey[];
}

export interface DnsServer extends Serving {
  /** Why a question gets the answer it gets. */
  explain(request: ExplainRequest): Promise<Explanation>;
}

export async function startDns(options: DnsOptions): Promise<DnsServer> {
  const config = chainConfig(options);
  const { world, workers } = options;
  const fixed = clusterStubs(options);
  const withFixed = (zones: readonly StubZone[] = []) => [...zones, ...fixed];
  const stubZones = withFixed(options.stubZones);
  const table = tableOf(options);
  const exchange = createTransport(world);
  const explainer = createSelfExplainer({ ...options, config, table, exchange, stubZones });
  const serving = workers
    ? await startWorkers({ ...options, table, stubZones, config, workers })
    : await startHere({ ...options, table, stubZones, config, exchange });
  let closing: Promise<void> | undefined;
  async function close(how: CloseOptions | undefined): Promise<void> {
    explainer.close();
    await serving.close(how);
    exchange.close();
  }
  return {
    ...serving,
    explain: (request) => explainer.explain(request),
    setStubZones: (zones) => {
      explainer.setStubZones(withFixed(zones));
      serving.setStubZones(withFixed(zones));
    },
    setTrust: (trust) => serving.setTrust(trust),
    changeZones: (change) => {
      explainer.changeZones(change);
      serving.changeZones(change);
    },
    close: (how) => (closing ??= close(how)),
  };
}

async function startHere(
  options: DnsOptions & { readonly table: NameTable; readonly config: ChainConfig; readonly exchange: Exchange },
): Promise<Serving> {
  const { world, log, table, records, config, exchange } = options;
  const { memory } = table;
  const counters = createCounters();
  const writeLine = (fields: LogFields) => log.info('query', fields);
  const { stubZones = [] } = options;
  const shared = { memory, records: records?.memory };
  const service = new DnsService({ world, log, config, ...shared, stubZones, exchange, counters, writeLine });
  const stopNews = table.onNews((news) => service.take(news));
  const stopRecords = records?.onNews((news) => service.takeRecords(news));
  const { responder, tally } = service;
  // With port 0 the kernel would choose among ports that others share.
  const reusePort = options.listen.port !== 0;
  const held = holdSockets({ ...options, responder, tally, config, reusePort });
  const { takesOver } = options.listen;
  if (!takesOver) await checkPortsFree({ ...options, config });
  const sockets = takesOver ? placesOf(options.listen) : await held.open();
  return {
    ...{ ...sockets, tcpPort: sockets.udpPort },
    setTls: (material) => held.setTls(material),
    takeOver: async () => void (await held.open()),
    counters: () => [counters],
    workerRestarts: () => 0,
    setQueryLog: (isOn) => table.setQueryLog(isOn),
    setStubZones: (zones) => service.stubZones.replace(zones),
    setTrust: (trust) => service.trust.replace(trust),
    changeZones: (change) => service.changeZones(change),
    close: async (how) => {
      await held.close(how);
      stopNews();
      stopRecords?.();
    },
  };
}

/** The servers that answer for the cluster's domain know its addresses too. */
function clusterStubs({ catalog, clusterDomainForward: nameservers = [] }: DnsOptions): StubZone[] {
  if (!catalog || nameservers.length === 0) return [];
  const zones = [catalog.clusterZone.name, 'in-addr.arpa', 'ip6.arpa'];
  return zones.map((zone) => ({ zone, nameservers, sendsSource: false }));
}

/** The one table all zones of this server lie in. */
function tableOf(options: Pick<DnsOptions, 'catalog' | 'federations' | 'peerTable'>): NameTable {
  const { catalog, federations = [], peerTable } = options;
  const tables = new Set([catalog, peerTable, ...federations].flatMap((part) => (part ? [part.table] : [])));
  const [table, ...others] = tables;
  if (!table) throw new Error('start dns: want a catalog or a federation to answer from');
  if (others.length > 0) throw new Error('start dns: its zones use different tables; give them the same one');
  return table;
}

function chainConfig(options: DnsOptions): ChainConfig {
  const { catalog } = options;
  const isClusterForwarded = (options.clusterDomainForward ?? []).length > 0;
  return {
    serverId: options.serverId ?? 'portolan',
    clients: options.clients ?? defaultClients,
    cluster: catalog?.cluster ?? { id: '' },
    localCluster: catalog?.localCluster ?? 0,
    clusterZone: isClusterForwarded ? undefined : catalog?.clusterZone,
    clustersetZone: catalog?.clustersetZone,
    podNames: options.podNames,
    peerNames: peerNamesOf(options),
    federationZones: (options.federations ?? []).map(({ zone }) => zone),
    sourceOption: options.sourceOption ?? defaultSourceOption,
    mark: markOf(options.world.random),
    cookieSecret: Buffer.from(options.world.random.bytes(16)).toString('hex'),
    trusted: options.trusted ?? nobody,
    keys: options.keys,
    forward: options.forward,
    local: options.local,
    transfer: options.transfer,
    forwardTimes: options.forwardTimes,
    cache: options.cache,
    waitingMax: Math.ceil((options.waitingMax ?? defaultWaitingMax) / Math.max(1, options.workers ?? 0)),
  };
}

function peerNamesOf({ catalog, peerTable }: DnsOptions): PeerNamesConfig | undefined {
  if (peerTable === undefined) return undefined;
  const own = (catalog?.zones ?? []).map(({ bytes }) => bytes);
  return { zone: peerTable.zone, elsewhere: [...own, ...reverseTrees] };
}
