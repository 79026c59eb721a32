// The record of one service in one cluster, made from the export of a member, and its form in etcd:
// the key /<federation>/<namespace>/<service>/<cluster> and a JSON value. Seed 001's two plain fields are still read and
// written; the other fields came later. Pure.

import { formatRange, type IpRange, isInRange, parseIp } from '../../base/net/ip.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { inverse, readAddressRules, readTranslations, translate } from '../../clusterset/rules/address-translation.ts';
import type { AddressRules } from '../../clusterset/rules/endpoint-address.ts';
import { mayExport } from '../../clusterset/rules/may-export.ts';
import { parseRecordName } from '../../clusterset/rules/names.ts';
import { usableAddresses } from '../../clusterset/rules/shard-addresses.ts';
import type { Federation, FederationPolicy } from '../kinds/federation.ts';

export interface ShardKey {
  readonly federation: string;
  readonly namespace: string;
  readonly service: string;
  readonly cluster: string;
}

interface ShardPortRecord {
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
}

/** The address rules of the cluster, as texts: they travel with the record. */
interface HostnameRules {
  readonly allowedRanges: readonly string[];
  readonly virtualRanges: readonly string[];
}

export interface ShardRecord {
  /** Addresses for clients in the shard's own cluster. */
  readonly clusterIPs: readonly string[];
  /** Addresses for all other clients. */
  readonly externalIPs: readonly string[];
  /** Load balancers that have a name instead of an address. */
  readonly hostnames: readonly string[];
  /** Where those names may lead. Absent in records that others wrote: then special ranges alone are refused. */
  readonly hostnameRules?: HostnameRules;
  readonly ports: readonly ShardPortRecord[];
  readonly zone?: string;
  readonly region?: string;
  readonly isReady: boolean;
}

/** Where a record was read and when, for those who explain it. */
export interface ShardSeen {
  readonly revision: string;
  /** Monotonic. */
  readonly seenMs: number;
}

/** Receives the contents of a federation, one shard at a time, from their watcher. */
export interface FederationSink {
  upsertShard(key: ShardKey, record: ShardRecord, seen?: ShardSeen): void;
  removeShard(key: ShardKey): void;
  /** A cluster whose lease has run out is not healthy, whatever its shards say. */
  setClusterAlive(cluster: string, isAlive: boolean): void;
  setPolicy(federation: string, policy: FederationPolicy): void;
  /** All shards have been delivered once. */
  setSynced(): void;
  /** The source cannot be asked at present. */
  setStale(isStale: boolean): void;
}

export function formatShardKey(key: ShardKey): string {
  return `/${key.federation}/${key.namespace}/${key.service}/${key.cluster}`;
}

export function parseShardKey(text: string): ShardKey | undefined {
  const [empty, federation, namespace, service, cluster, ...rest] = text.split('/');
  if (empty !== '' || rest.length > 0 || !federation || !namespace || !service || !cluster) return undefined;
  return { federation, namespace, service, cluster };
}

interface StoredShard {
  externalIP?: unknown;
  clusterIP?: unknown;
  externalIPs?: unknown;
  clusterIPs?: unknown;
  hostnames?: unknown;
  hostnameRules?: unknown;
  ports?: unknown;
  zone?: unknown;
  region?: unknown;
  ready?: unknown;
}

/** Undefined if the text is no shard. A comma behind the last field is forgiven: the seed prints one. */
export function parseShardRecord(text: string): ShardRecord | undefined {
  let stored: StoredShard;
  try {
    stored = JSON.parse(text.replace(/,(\s*[}\]])/g, '$1')) as StoredShard;
  } catch {
    return undefined;
  }
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return undefined;
  return {
    clusterIPs: unique([...texts(stored.clusterIP), ...texts(stored.clusterIPs)]),
    externalIPs: unique([...texts(stored.externalIP), ...texts(stored.externalIPs)]),
    hostnames: unique(texts(stored.hostnames)),
    ...hostnameRulesIn(stored.hostnameRules),
    ports: portsOf(stored.ports),
    ...(typeof stored.zone === 'string' ? { zone: stored.zone } : {}),
    ...(typeof stored.region === 'string' ? { region: stored.region } : {}),
    isReady: stored.ready !== false,
  };
}

export function formatShardRecord(record: ShardRecord): string {
  const stored: Record<string, unknown> = {};
  if (record.externalIPs[0]) stored['externalIP'] = record.externalIPs[0];
  if (record.clusterIPs[0]) stored['clusterIP'] = record.clusterIPs[0];
  if (record.externalIPs.length > 1) stored['externalIPs'] = record.externalIPs;
  if (record.clusterIPs.length > 1) stored['clusterIPs'] = record.clusterIPs;
  if (record.hostnames.length > 0) stored['hostnames'] = record.hostnames;
  if (record.hostnames.length > 0 && record.hostnameRules) stored['hostnameRules'] = record.hostnameRules;
  if (record.ports.length > 0) stored['ports'] = record.ports;
  if (record.zone) stored['zone'] = record.zone;
  if (record.region) stored['region'] = record.region;
  if (!record.isReady) stored['ready'] = false;
  return JSON.stringify(stored);
}

function hostnameRulesIn(value: unknown): { hostnameRules?: HostnameRules } {
  if (typeof value !== 'object' || value === null) return {};
  const { allowedRanges, virtualRanges } = value as Record<string, unknown>;
  return { hostnameRules: { allowedRanges: texts(allowedRanges), virtualRanges: texts(virtualRanges) } };
}

function texts(value: unknown): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string' && item !== '') : [];
}

function unique(values: string[]): string[] {
  return [...new Set(values)];
}

const protocols = ['TCP', 'UDP', 'SCTP'] as const;

function portsOf(value: unknown): ShardPortRecord[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: { name?: unknown; protocol?: unknown; port?: unknown }) => {
    const protocol = protocols.find((known) => known === (item?.protocol ?? 'TCP'));
    if (!protocol || typeof item.port !== 'number' || item.port < 1 || item.port > 65_535) return [];
    return [{ name: typeof item.name === 'string' ? item.name.toLowerCase() : '', protocol, port: item.port }];
  });
}

export interface MemberShard {
  readonly shard: ServiceShard;
  readonly cluster: Cluster;
  /** Ranges of the clusterset's own, in which no member has an address. */
  readonly virtualRanges: readonly IpRange[];
}

/** Undefined for a record that is not named after a service, of a cluster outside the federation, or not allowed to it. */
export function federatedShard(
  member: MemberShard,
  federation: Federation,
): { readonly key: ShardKey; readonly record: ShardRecord } | undefined {
  const { shard, cluster } = member;
  const service = parseRecordName(shard.metadata.name);
  const { clusters } = federation.spec ?? {};
  if (!service || (clusters && !clusters.includes(cluster.metadata.name))) return undefined;
  if (!mayExport(cluster.spec, service)) return undefined;
  const key = {
    federation: federation.metadata.name,
    namespace: service.namespace,
    service: service.name,
    cluster: cluster.metadata.name,
  };
  return { key, record: recordOf(member) };
}

function recordOf({ shard: { spec }, cluster: { spec: place }, virtualRanges }: MemberShard): ShardRecord {
  const rules = readAddressRules(virtualRanges, place.allowedRanges);
  const { clusterIPs, loadBalancer } = usableAddresses(spec, rules);
  // A service exported to some clusters only must not be handed to the others: it stays its own cluster's.
  // Published as others would reach them: the cluster itself has no use for a way around.
  const back = inverse(readTranslations(place.translations).translations);
  const balancers = spec.exportTo === undefined ? loadBalancer : [];
  const hostnames = balancers.flatMap(({ ip, hostname }) => (hostname && !ip ? [hostname] : []));
  return {
    clusterIPs: [...clusterIPs, ...localIps(spec, rules)].flatMap((address) => translate(address, back) ?? []),
    externalIPs: balancers.flatMap(({ ip }) => (ip ? [ip] : [])),
    hostnames,
    ...(hostnames.length === 0
      ? {}
      : {
          hostnameRules: {
            allowedRanges: place.allowedRanges ?? [],
            virtualRanges: virtualRanges.map(formatRange),
          },
        }),
    ports: (spec.ports ?? []).map(({ name = '', protocol = 'TCP', port }) => ({ name, protocol, port })),
    ...(place.zone ? { zone: place.zone } : {}),
    ...(place.region ? { region: place.region } : {}),
    isReady: (spec.readyEndpoints ?? 0) > 0 && spec.draining !== true && place.draining !== true,
  };
}

/** Only clients of the member itself get them. Virtual addresses are the service's own, as the member holds them. */
function localIps({ localIPs, clusterSetIPs = [] }: ServiceShard['spec'], rules: AddressRules): readonly string[] {
  const [virtual, others] = [[] as string[], [] as string[]];
  const isOwn = (address: string) => {
    const ip = parseIp(address);
    return ip !== undefined && clusterSetIPs.includes(address) && rules.virtualRanges.some((one) => isInRange(ip, one));
  };
  for (const address of localIPs ?? []) (isOwn(address) ? virtual : others).push(address);
  return [...virtual, ...usableAddresses({ clusterIPs: others }, rules).clusterIPs];
}
