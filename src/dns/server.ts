// Starts the DNS server of a cluster: UDP and TCP on every address given, DoT when it has a certificate. In this thread, or
// in workers that share the ports (server-workers.ts).

import type { TsigKey } from '../base/dns/tsig.ts';
import type { Log, LogFields } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { FederationTable } from '../catalog/federation-table.ts';
import type { NameTable } from '../catalog/name-table.ts';
import type { PeerTable } from '../catalog/peer-table.ts';
import type { ChainConfig, ForwardConfig, PeerNamesConfig } from './chain.ts';
import {
  type ForwardTimes,
  type ListenOptions,
  nobody,
  type PeerConfig,
  type StubZone,
  type TrustConfig,
} from './config/config.ts';
import type { ExplainRequest } from './explain/explainer.ts';
import type { Explanation } from './explain/explanation.ts';
import { createSelfExplainer } from './explain/self-explainer.ts';
import { defaultClients } from './handlers/acl.ts';
import { reverseTrees } from './handlers/reverse.ts';
import { createFaultLog } from './metrics/fault-log.ts';
import { createCounters, type Tally } from './metrics/observe.ts';
import type { Responder } from './responder.ts';
import { DnsService, type ZoneChange } from './service.ts';
import { listenStream } from './sockets/server-stream.ts';
import { type Listening, listenUdp } from './sockets/server-udp.ts';
import { startWorkers } from './sockets/server-workers.ts';
import { markOf } from './source/trusted-servers.ts';
import type { CacheOptions } from './upstream/cache.ts';
import type { Exchange } from './upstream/exchange.ts';
import { createTransport } from './upstream/transport.ts';
import { defaultSourceOption } from './wire.ts';

export interface DnsOptions {
  readonly world: World;
  readonly log: Log;
  /** The cluster's names; absent in a server that is a federation's authority and nothing else. */
  readonly catalog?: Catalog;
  /** Federations whose authority this server is. They lie in the catalog's own table if there is a catalog. */
  readonly federations?: readonly FederationTable[];
  /** Names of services that peers share; in the catalog's own table. */
  readonly peerTable?: PeerTable;
  readonly listen: ListenOptions;
  /** Threads that share the ports; 0, the default, serves in the thread that calls. */
  readonly workers?: number;
  /** Address ranges that may ask; private addresses if absent. */
  readonly clients?: readonly string[];
  /** How this server is called in NSID and `id.server`. */
  readonly serverId?: string;
  /** Where names go that are nobody's here; without it they are refused. */
  readonly forward?: ForwardConfig;
  /** How long other servers may take. */
  readonly forwardTimes?: Partial<ForwardTimes>;
  readonly cache?: CacheOptions;
  readonly stubZones?: readonly StubZone[];
  /** Servers that answer the cluster's own domain, and reverse names, in our place: an existing CoreDNS. */
  readonly clusterDomainForward?: readonly string[];
  /** Whose word about the asking cluster is taken; nobody's by default. */
  readonly peers?: PeerConfig;
  /** Keys that peers sign with (TSIG). */
  readonly keys?: readonly TsigKey[];
  readonly sourceOption?: number;
}

interface Sockets {
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number | undefined;
  close(): Promise<void>;
}

export interface DnsServer extends Sockets {
  /** Why a question gets the answer it gets. */
  explain(request: ExplainRequest): Promise<Explanation>;
  /** For `readCounters` and `registerDnsMetrics`; one per thread. */
  counters(): readonly SharedArrayBuffer[];
  /** How many threads had to be replaced. */
  workerRestarts(): number;
  /** A line per query in the log, from now on or no longer. */
  setQueryLog(isOn: boolean): void;
  setStubZones(zones: readonly StubZone[]): void;
  /** Whom to believe from now on. */
  setTrust(trust: TrustConfig): void;
  /** Names of zones, their TTLs, and how peers say who asks, from now on. */
  changeZones(change: ZoneChange): void;
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
    ? await startWorkers({ ...options, stubZones, config, workers })
    : await startHere({ ...options, stubZones, config, exchange });
  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    explainer.close();
    await serving.close();
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
    close: () => (closing ??= close()),
  };
}

/** All that serves; explaining is added around it. */
export type Serving = Omit<DnsServer, 'explain'>;

async function startHere(
  options: DnsOptions & { readonly config: ChainConfig; readonly exchange: Exchange },
): Promise<Serving> {
  const { world, log, config, exchange } = options;
  const table = tableOf(options);
  const { memory } = table;
  const counters = createCounters();
  const writeLine = (fields: LogFields) => log.info('query', fields);
  const { stubZones = [] } = options;
  const service = new DnsService({ world, log, config, memory, stubZones, exchange, counters, writeLine });
  const stopNews = table.onNews((news) => service.take(news));
  const sockets = await openSockets({
    ...options,
    responder: service.responder,
    tally: service.tally,
    config,
    reusePort: false,
  });
  return {
    ...sockets,
    counters: () => [counters],
    workerRestarts: () => 0,
    setQueryLog: (isOn) => table.setQueryLog(isOn),
    setStubZones: (zones) => service.stubZones.replace(zones),
    setTrust: (trust) => service.trust.replace(trust),
    changeZones: (change) => service.changeZones(change),
    close: async () => {
      stopNews();
      await sockets.close();
    },
  };
}

/** Whoever answers for the cluster's domain knows its addresses too. */
function clusterStubs({ catalog, clusterDomainForward: nameservers = [] }: DnsOptions): StubZone[] {
  if (!catalog || nameservers.length === 0) return [];
  const zones = [catalog.clusterZone.name, 'in-addr.arpa', 'ip6.arpa'];
  return zones.map((zone) => ({ zone, nameservers, sendsSource: false }));
}

/** The one table all zones of this server lie in. */
export function tableOf(options: Pick<DnsOptions, 'catalog' | 'federations' | 'peerTable'>): NameTable {
  const { catalog, federations = [], peerTable } = options;
  const tables = new Set([catalog, peerTable, ...federations].flatMap((part) => (part ? [part.table] : [])));
  const [table, ...others] = tables;
  if (!table) throw new Error('start dns: want a catalog or a federation to answer from');
  if (others.length > 0) throw new Error('start dns: its zones lie in different tables; give them the same one');
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
    peerNames: peerNamesOf(options),
    federationZones: (options.federations ?? []).map(({ zone }) => zone),
    sourceOption: options.sourceOption ?? defaultSourceOption,
    mark: markOf(options.world.random),
    peers: options.peers ?? nobody,
    keys: options.keys,
    forward: options.forward,
    forwardTimes: options.forwardTimes,
    cache: options.cache,
  };
}

function peerNamesOf({ catalog, peerTable }: DnsOptions): PeerNamesConfig | undefined {
  if (peerTable === undefined) return undefined;
  const own = (catalog?.zones ?? []).map(({ bytes }) => bytes);
  return { zone: peerTable.zone, elsewhere: [...own, ...reverseTrees] };
}

interface SocketParts {
  readonly world: Pick<World, 'timers' | 'clock'>;
  readonly log: Log;
  readonly listen: ListenOptions;
  readonly responder: Responder;
  readonly config: ChainConfig;
  readonly tally: Tally;
  readonly reusePort: boolean;
}

const portTries = 20;

/** UDP and TCP on the same port: with port 0 the kernel chooses for UDP, and a taken TCP port means another try. */
export async function openSockets(parts: SocketParts): Promise<Sockets> {
  for (let tries = 1; ; tries++) {
    const opened: Listening[] = [];
    try {
      return await openOnce(parts, opened);
    } catch (error) {
      await Promise.all(opened.map((socket) => socket.close()));
      const isTaken = (error as { code?: string }).code === 'EADDRINUSE';
      if (parts.listen.port !== 0 || !isTaken || tries === portTries) throw error;
    }
  }
}

async function openOnce(parts: SocketParts, opened: Listening[]): Promise<Sockets> {
  const { listen, responder, reusePort, log, tally } = parts;
  const nsid = Buffer.from(parts.config.serverId);
  const { clock } = parts.world;
  const onError = createFaultLog({ clock, write: (error, unsaid) => log.warn('dns socket', { error, unsaid }) });
  let { port } = listen;
  for (const host of listen.hosts) {
    const udp = await listenUdp({ responder, nsid, host, port, reusePort, tally, onError });
    opened.push(udp);
    port = udp.port;
    opened.push(await listenStream({ ...streamOptions(parts, nsid), host, port, onError }));
  }
  let tlsPort = listen.tls?.port;
  if (listen.tls) {
    for (const host of listen.hosts) {
      const tls = listen.tls.material;
      const socket = await listenStream({ ...streamOptions(parts, nsid), host, port: tlsPort!, tls, onError });
      opened.push(socket);
      tlsPort = socket.port;
    }
  }
  return {
    udpPort: port,
    tcpPort: port,
    tlsPort,
    close: async () => {
      await Promise.all(opened.map((socket) => socket.close()));
    },
  };
}

function streamOptions({ responder, world, listen, reusePort, tally }: SocketParts, nsid: Uint8Array) {
  return {
    responder,
    nsid,
    timers: world.timers,
    reusePort,
    tally,
    idleMs: listen.tcpIdleMs,
    connectionsMax: listen.tcpConnectionsMax,
    handshakeMs: listen.tlsHandshakeMs,
  };
}
