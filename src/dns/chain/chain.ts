// The path of every query, in this order. Each handler answers or hands on; nothing happens outside this list.

import { hashBytes, isWithin } from '../../base/dns/name.ts';
import type { TsigKey } from '../../base/dns/tsig.ts';
import type { World } from '../../base/world.ts';
import { namesOutside } from '../../catalog/names/outside-gate.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import type { ClusterPlace } from '../../catalog/packed/places.ts';
import {
  type CacheOptions,
  type ForwardConfig,
  type ForwardTimes,
  type PodMode,
  parseServerAddress,
  type ServerAddress,
  type TlsClient,
  type TransferConfig,
  type TrustedServersConfig,
} from '../config/config.ts';
import { aclHandler } from '../handlers/acl.ts';
import { chaosHandler } from '../handlers/chaos.ts';
import { cookieHandler } from '../handlers/cookies.ts';
import { forwardHandler } from '../handlers/forward.ts';
import { type LocalConfig, localHandler } from '../handlers/local.ts';
import { peerFqdnHandler } from '../handlers/peer-fqdns.ts';
import { podHandler } from '../handlers/pods.ts';
import { ednsHandler, metaHandler, refuseHandler } from '../handlers/refusals.ts';
import { reverseHandler, virtualRanges } from '../handlers/reverse.ts';
import { specialHandler } from '../handlers/special.ts';
import { stubHandler } from '../handlers/stub.ts';
import { transferHandler } from '../handlers/transfer.ts';
import { tsigHandler } from '../handlers/tsig.ts';
import { zoneHandler } from '../handlers/zone.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler } from '../message/handler.ts';
import type { Query } from '../message/wire.ts';
import type { Tally } from '../metrics/observe.ts';
import type { ServerStats } from '../metrics/server-stats.ts';
import { createAskerFinder } from '../source/asker.ts';
import { markOf, SourceTagger, type Trust } from '../source/trusted-servers.ts';
import type { StubZones } from '../stub-zones/stub-zones.ts';
import { ReplyCache } from '../upstream/cache.ts';
import type { Exchange } from '../upstream/exchange.ts';
import { Forwarder } from '../upstream/forwarder.ts';
import { ServerSet } from '../upstream/servers.ts';
import { WaitingRoom } from '../upstream/waiting-room.ts';
import type { CatalogReader } from '../zones/reader.ts';
import type { OldView } from '../zones/zone-answers.ts';
import { createAliasFollower, type FollowAlias } from './alias-follower.ts';

/** Plain data, so that a worker thread can be given it. */
export interface ChainConfig {
  readonly serverId: string;
  /** Address ranges that may ask. */
  readonly clients: readonly string[];
  readonly cluster: ClusterPlace;
  /** Ordinal of the cluster this server stands in. */
  readonly localCluster: number;
  /** Absent in a server that is a federation's authority and nothing else. */
  readonly clusterZone?: Zone;
  readonly clustersetZone?: Zone;
  readonly podNames?: PodMode;
  readonly peerNames?: PeerNamesConfig;
  /** Zones of federations whose authority this server is. */
  readonly federationZones: readonly Zone[];
  /** Code of the EDNS option that names the asking cluster. */
  readonly sourceOption: number;
  /** How this server knows queries again that come back to it; the same in all threads. */
  readonly mark?: string;
  /** Secret for cookies; the same in all threads. */
  readonly cookieSecret?: string;
  /** Servers that may name the client's cluster. */
  readonly trusted: TrustedServersConfig;
  /** Keys that trusted servers sign with; a good signature makes a server trusted. */
  readonly keys?: readonly TsigKey[];
  readonly transfer?: TransferConfig | undefined;
  readonly forward?: ForwardConfig | undefined;
  /** Static records and rules of this server's operator. */
  readonly local?: LocalConfig | undefined;
  /** How long any other server may take, also those of stub zones. */
  readonly forwardTimes?: Partial<ForwardTimes>;
  readonly cache?: CacheOptions;
  /** How many queries may wait for other servers, in each thread. */
  readonly waitingMax?: number;
}

/** Names of services that peers share. */
export interface PeerNamesConfig {
  readonly zone: Zone;
  /** Zones in which a peer can have none, whoever answers for them. */
  readonly elsewhere: readonly Uint8Array[];
}

export interface ChainParts {
  readonly config: ChainConfig;
  readonly reader: CatalogReader;
  /** Static records; given with `config.local`. */
  readonly records?: CatalogReader | undefined;
  readonly stubZones: StubZones;
  readonly trust: Trust;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly exchange: Exchange;
  readonly tally?: Tally;
  readonly serverStats?: ServerStats;
  readonly onAnswered?: (query: Query, answer: Answer) => void;
  /** Told of errors of ours, which concern one answer. */
  readonly onFault: (error: unknown) => void;
}

export function buildChain(parts: ChainParts): Handler[] {
  const { config, reader, records, stubZones, trust, world, exchange, onAnswered, onFault } = parts;
  const { clusterZone, peerNames, forward } = config;
  const local = reader.places.standAt(config.localCluster);
  const here = () => local;
  const cache = new ReplyCache(config.cache);
  const { hasRandomCase } = forward ?? {};
  const { forwardTimes: times } = config;
  const { tally, serverStats } = parts;
  const room = new WaitingRoom({ max: config.waitingMax, onAnswered, onFault });
  const own = ownZones(config);
  const ownZoneOf = (name: Uint8Array) => {
    const found = own.find(({ zone }) => isWithin(name, name.length, zone.bytes))?.zone;
    return found && stubZones.isBelow(found.bytes, name, name.length) ? undefined : found;
  };
  const isOurs = (name: Uint8Array) =>
    ownZoneOf(name) !== undefined || reader.names.find(name, name.length, hashBytes(name, 0, name.length)) >= 0;
  const forwarding = { world, exchange, cache, room, times, hasRandomCase, tally, serverStats, onFault };
  const { trusted } = trust;
  const { mark = markOf(world.random) } = config;
  const tagger = new SourceTagger({
    cluster: config.cluster,
    optionCode: config.sourceOption,
    trusted,
    mark,
  });
  const asker = createAskerFinder({ trusted, places: reader.places, local });
  const servers = new ServerSet(
    (forward?.nameservers ?? []).map((text) => withTls(parseServerAddress(text), forward?.tls)),
    { takesTurns: true },
  );
  const upstream =
    forward &&
    forwardHandler({
      forwarder: new Forwarder({
        ...forwarding,
        servers,
        isRecursive: true,
        loop: { mark, zone: '' },
        isOfOthers: (name) => isOurs(name) || stubZones.find(name, name.length) !== undefined,
      }),
    });
  const stub = stubHandler({ zones: stubZones, tagger, mark, forwarding, isOurs });
  const follow: FollowAlias = (query, answer, target) => followOn(query, answer, target);
  const answering = { reader, follow, ownZoneOf, stubZones };
  const { old } = reader;
  const fromOld = old && oldViews(old, parts);
  const asked = { ...answering, standpointOf: asker, old: fromOld?.byAsker };
  const askedHere = { ...answering, standpointOf: here, old: fromOld?.here };
  const zoneOf = ({ name, zone }: OwnZone) =>
    zoneHandler({ ...(name === 'authority' ? asked : askedHere), name, zone });
  const elsewhere = [...(peerNames?.elsewhere ?? []), ...own.map(({ zone }) => zone.bytes)];
  const peerFqdns = peerNames && peerFqdnHandler({ ...askedHere, ...peerNames, elsewhere, name: 'peers' });
  const ownHandlers = own.map(zoneOf);
  const locals = records && config.local && localHandler({ ...config.local, records, reader, stubZones, follow });
  const followOn = createAliasFollower({
    handlers: [...ownHandlers, ...present(locals), ...present(peerFqdns), stub, ...present(upstream)],
    onAnswered,
    onFault,
  });
  const outside = peerNames ? [namesOutside] : [];
  return [
    aclHandler({
      clients: [...config.clients, ...secondaryHosts(config.transfer)],
      isForwarding: forward !== undefined,
    }),
    ednsHandler(),
    cookieHandler({ secret: config.cookieSecret ?? mark, clock: world.clock }),
    tsigHandler({ keys: () => trust.keys, transferKeys: config.transfer?.keys ?? [], clock: world.clock }),
    ...present(
      config.transfer &&
        transferHandler({ ...config.transfer, reader, zones: config.federationZones, clock: world.clock }),
    ),
    metaHandler(),
    chaosHandler({ serverId: config.serverId }),
    ...present(config.clustersetZone || forward ? specialHandler({ stubZones }) : undefined),
    ...present(clusterZone && config.podNames === 'insecure' ? podHandler({ zone: clusterZone }) : undefined),
    ...ownHandlers,
    ...present(locals),
    ...present(peerFqdns),
    // A server that answers for the cluster's domain in our place knows its addresses, but not those of peers'
    // services.
    ...present(
      clusterZone
        ? undefined
        : peerNames &&
            reverseHandler({ reader, zone: peerNames.zone, waitsFor: outside, old, ownRanges: virtualRanges }),
    ),
    stub,
    ...present(
      clusterZone && reverseHandler({ reader, zone: clusterZone, waitsFor: [clusterZone.id, ...outside], old }),
    ),
    ...present(upstream),
    refuseHandler(),
  ];
}

/** A copy left by an earlier process numbers clusters and places in its own way. */
function oldViews(old: CatalogReader, { config, trust: { trusted } }: ChainParts): Record<'here' | 'byAsker', OldView> {
  const { places } = old;
  const local = places.standAt(places.find('c', config.cluster.id));
  return {
    here: { reader: old, standpointOf: () => local },
    byAsker: { reader: old, standpointOf: createAskerFinder({ trusted, places, local }) },
  };
}

interface OwnZone {
  readonly name: string;
  readonly zone: Zone;
}

/**
 * The zones that this server itself answers for. Zones may lie in each other: the longest that fits a name is asked
 * first.
 */
function ownZones({ clusterZone, clustersetZone, peerNames, federationZones }: ChainConfig): OwnZone[] {
  const zones = [
    ...present(clusterZone && { name: 'cluster', zone: clusterZone }),
    ...present(clustersetZone && { name: 'clusterset', zone: clustersetZone }),
    ...present(peerNames && { name: 'peers', zone: peerNames.zone }),
    ...federationZones.map((zone) => ({ name: 'authority', zone })),
  ];
  const isIn = (inner: OwnZone, outer: OwnZone) =>
    inner !== outer && isWithin(inner.zone.bytes, inner.zone.bytes.length, outer.zone.bytes);
  const depth = (zone: OwnZone) => zones.filter((outer) => isIn(zone, outer)).length;
  return zones.sort((a, b) => depth(b) - depth(a));
}

/** They ask for the SOA, too. */
function secondaryHosts(transfer: TransferConfig | undefined): string[] {
  return (transfer?.secondaries ?? []).map((text) => parseServerAddress(text).host);
}

/** An object of its own for each server: connections are kept by it. */
function withTls(server: ServerAddress, tls: TlsClient | undefined): ServerAddress {
  return server.tls && tls ? { ...server, tls: { ...tls, ...server.tls } } : server;
}

function present<T>(part: T | undefined): T[] {
  return part === undefined ? [] : [part];
}
