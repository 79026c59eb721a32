// The authority role of a DNS server: the source of its records (the broker's shards, or etcd), the servers it
// trusts, and, on the leading one of several authorities, the work for the others: the records in etcd, the resolvers
// of members, the public zone and the status.

import type { EtcdAccess } from '../../base/etcd.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { LookUp } from '../../base/net/followed-names.ts';
import { Parts } from '../../base/parts.ts';
import type { World } from '../../base/world.ts';
import type { FederationTable } from '../../catalog/federation/federation-table.ts';
import type { ZoneChange } from '../../dns/chain/service.ts';
import { parseServerAddress, type TrustConfig } from '../../dns/config/config.ts';
import { defaultSourceOption } from '../../dns/message/wire.ts';
import { watchAuthorities } from '../../federation/authority-watch.ts';
import type { Federation } from '../../federation/kinds/federation.ts';
import { FederationPublisher } from '../../federation/public/follow.ts';
import type { DnsConnection } from '../../federation/public/rfc2136.ts';
import { BalancerNames } from '../../federation/records/balancer-names.ts';
import { FederationAttachment } from '../../federation/records/broker-records.ts';
import { runFederationRecords } from '../../federation/records/controller.ts';
import { EtcdRecords } from '../../federation/records/etcd-records.ts';
import { federationLeaseName } from '../../federation/rules/broker-names.ts';
import type { FederationSink } from '../../federation/rules/record.ts';
import { allOf, FederationShardSet } from '../../federation/rules/shard-set.ts';
import { runFederationStatus } from '../../federation/status.ts';
import { StubZonesController } from '../../federation/stub-zones/controller.ts';
import { type FederationIdentityOptions, openFederationIdentity } from '../../federation/stub-zones/identity.ts';
import { FollowedTrust } from '../../federation/trust.ts';
import type { Client } from '../../kube/client/client.ts';
import { type LeaderTimes, standForLeader } from '../../kube/controller/leader.ts';

export interface AuthoritySetup {
  /** Name of the federation, and of its object at the broker. */
  readonly federation: string;
  /** Given at start; what is not is as the Federation says, also when it says something new. */
  readonly fixed?: ZoneWish;
  /** The Federation as it was before we began to follow it. */
  readonly said?: Federation;
  readonly broker?: {
    readonly client: Client;
    readonly clusterset: string;
    /** PEM of the authorities by which it is known; undefined for those of the system. */
    readonly trustedAuthorities?: () => string | undefined;
  };
  /** Records are read from here; with a broker, the leader keeps them. */
  readonly etcd?: EtcdAccess;
  /** Besides whom the Federation names. */
  readonly trust: TrustConfig;
  /** By it the leader is known to members' resolvers; PEM. One is made if absent. */
  readonly identity?: { readonly certificate: string; readonly key: string };
  readonly leaderTimes?: LeaderTimes;
}

export interface ZoneWish {
  readonly suffix?: string;
  readonly ttlSeconds?: number;
  /** Code of the EDNS option that names the asking cluster. */
  readonly sourceOption?: number;
  /** Addresses of the servers that the zone names. */
  readonly serverAddresses?: readonly string[];
}

export interface AuthorityRoleOptions extends AuthoritySetup {
  readonly world: World;
  readonly log: Log;
  readonly table: FederationTable;
  readonly setTrust: (trust: TrustConfig) => void;
  /** The table's zone, its TTL or the option's code are not what they were. */
  readonly onZone: (change: ZoneChange) => void;
  /** For load balancers that have only a name; without it they are left out. */
  readonly lookUp?: LookUp;
  readonly connect: (server: string) => DnsConnection;
}

export interface AuthorityRole {
  whenSynced(): Promise<void>;
  isLeading(): boolean;
  stop(): Promise<void>;
}

export function startAuthorityRole(options: AuthorityRoleOptions): AuthorityRole {
  const { world, table, federation, broker, etcd } = options;
  const log = options.log.with({ federation });
  const parts = new Parts(log);
  const sink = withLookUp(options, parts);
  const records = etcd && new EtcdRecords({ ...etcd, world, log, federation });
  const shards = new FederationShardSet();
  const followed = records && followEtcd(records, sink, parts);
  let isLeading = () => false;
  let attachment: FederationAttachment | undefined;
  if (broker) {
    const fromBroker = records ? allOf([shards, policyOnly(table)]) : allOf([shards, sink]);
    attachment = new FederationAttachment({
      sink: fromBroker,
      federation,
      broker: broker.client,
      clusterset: broker.clusterset,
      world,
      log,
    });
    parts.add('federation', () => attachment?.stop());
    const { trust: given, setTrust } = options;
    const { federations } = attachment;
    const trust = new FollowedTrust({ world, log, broker, federation, federations, given, setTrust });
    parts.add('trust', () => trust.stop());
    parts.add('zone', followZone(options, attachment));
    const candidate = standForLeader({
      client: broker.client,
      world,
      log,
      namespace: broker.clusterset,
      name: federationLeaseName(federation),
      identity: world.random.uuid(),
      whileLeading: (signal) =>
        lead({ ...options, log, broker }, { attachment: attachment!, shards, records, trust }, signal),
      times: options.leaderTimes,
    });
    isLeading = () => candidate.isLeader();
    parts.add('leader', () => candidate.stop());
    // A leader that hangs is told before its Lease ends and the next one takes over.
    const isWatched = (key: string) => key === `${broker.clusterset}/${federation}` && !candidate.isLeader();
    const watch = watchAuthorities({ world, log, client: broker.client, federations, isWatched });
    parts.add('authority watch', () => watch.stop());
  }
  return {
    whenSynced: () => followed ?? attachment?.whenSynced() ?? Promise.resolve(),
    isLeading: () => isLeading(),
    stop: () => parts.stop(),
  };
}

function withLookUp({ table, lookUp, world, log }: AuthorityRoleOptions, parts: Parts): FederationSink {
  if (lookUp === undefined) return table;
  const names = new BalancerNames({ sink: table, lookUp, world, log });
  parts.add('names of load balancers', () => names.stop());
  return names;
}

/** Resolves when etcd has been read once. */
function followEtcd(records: EtcdRecords, sink: FederationSink, parts: Parts): Promise<void> {
  const ending = new AbortController();
  let following: Promise<void> = Promise.resolve();
  parts.add('etcd', async () => {
    ending.abort(new Error('stopping'));
    await following;
  });
  return new Promise((resolve) => {
    const noticing: FederationSink = {
      ...allOf([sink]),
      setSynced: () => {
        sink.setSynced();
        resolve();
      },
    };
    following = records.follow(noticing, ending.signal);
  });
}

/** Records come from etcd; only how to order them is the broker's to say. */
function policyOnly(table: FederationTable): FederationSink {
  const nothing = () => {};
  return {
    upsertShard: nothing,
    removeShard: nothing,
    setClusterAlive: nothing,
    setPolicy: (federation, policy) => table.setPolicy(federation, policy),
    setSynced: nothing,
    setStale: nothing,
  };
}

/** Suffix, TTL and option: given at start, else from the Federation, else the caller's default. */
export function zoneWish({ fixed }: Pick<AuthoritySetup, 'fixed'>, said: Federation | undefined): ZoneWish {
  const { suffix, ttlSeconds, source, nameservers = [] } = said?.spec ?? {};
  return {
    suffix: fixed?.suffix ?? suffix,
    ttlSeconds: fixed?.ttlSeconds ?? ttlSeconds,
    sourceOption: fixed?.sourceOption ?? source?.optionCode,
    serverAddresses: fixed?.serverAddresses ?? nameservers.flatMap(addressIn),
  };
}

function addressIn(nameserver: string): string[] {
  try {
    return [parseServerAddress(nameserver).host];
  } catch {
    return [];
  }
}

/** A Federation that is deleted has no names any more; what its zone was is left as it is. */
function followZone(options: AuthorityRoleOptions, { federations }: FederationAttachment): () => void {
  const { broker, federation: name, table, log } = options;
  const optionOf = (said: Federation | undefined) => zoneWish(options, said).sourceOption ?? defaultSourceOption;
  let sourceOption = optionOf(options.said);
  return federations.on((key, next) => {
    if (key !== `${broker!.clusterset}/${name}` || next === undefined) return;
    const isOtherZone = table.setZone(zoneWish(options, next));
    if (!isOtherZone && optionOf(next) === sourceOption) return;
    sourceOption = optionOf(next);
    const { suffix, zone } = table;
    log.info('settings of the Federation changed', { suffix, ttlSeconds: zone.ttlSeconds, sourceOption });
    options.onZone({ federationZones: [table.zone], sourceOption });
  });
}

interface LeaderFacts {
  readonly attachment: FederationAttachment;
  readonly shards: FederationShardSet;
  readonly records: EtcdRecords | undefined;
  readonly trust: FollowedTrust;
}

/** Without it members are not told of the federation, and everything else works. */
async function openIdentity(options: FederationIdentityOptions & { readonly log: Log }) {
  try {
    return await openFederationIdentity(options);
  } catch (error) {
    options.log.warn('stub zones are not posted: the certificate for it cannot be made', { error: errorText(error) });
    return undefined;
  }
}

async function lead(
  options: AuthorityRoleOptions & { readonly broker: NonNullable<AuthoritySetup['broker']> },
  { attachment, shards, records, trust }: LeaderFacts,
  signal: AbortSignal,
): Promise<void> {
  const { world, log, federation, identity } = options;
  const { client: broker, clusterset } = options.broker;
  const { federations, clusters } = attachment;
  const shared = { world, log, broker, clusterset, federation, federations, clusters, shards };
  const parts = new Parts(log);
  const onState = () => status.nudge();
  const suffix = options.fixed?.suffix;
  const made = identity === undefined ? await openIdentity(shared) : undefined;
  const shown = identity === undefined ? made && (() => made.current()) : () => identity;
  const stubZones = shown && new StubZonesController({ ...shared, identity: shown, onState, suffix });
  const publisher = new FederationPublisher({ ...shared, suffix, connect: options.connect, onState });
  const status = runFederationStatus({
    ...shared,
    caBundle: made?.caBundle,
    stubZones: () => stubZones?.states() ?? [],
    publicRecords: () => publisher.publicRecords(),
    publicProblem: () => publisher.problem(),
    trustProblem: () => trust.problem(),
  });
  parts.add('news of trust', trust.onProblem(onState));
  parts.add('status', () => status.stop());
  parts.add('public zone', () => publisher.stop());
  if (stubZones) parts.add('stub zones', () => stubZones.stop());
  if (records) {
    const writer = runFederationRecords({ world, log, shards, store: records });
    parts.add('federation records', () => writer.stop());
  }
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await parts.stop();
}
