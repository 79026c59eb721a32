// The public records that should exist for a federation's services: one global name each, and, if wanted, one per region
// and zone that leads one level up when nothing healthy is there. Pure; the order of the input never matters.

import { encodeName, tryEncodeName } from '../../base/dns/name.ts';
import { formatAddress, parseAddress } from '../../base/net/ip.ts';

export interface PublicShard {
  readonly cluster: string;
  readonly zone?: string;
  readonly region?: string;
  readonly externalIPs: readonly string[];
  /** Load balancers that have a name instead of an address. */
  readonly hostnames: readonly string[];
  readonly isHealthy: boolean;
}

export interface PublicService {
  readonly federation: string;
  readonly namespace: string;
  readonly service: string;
  readonly shards: readonly PublicShard[];
}

interface Place {
  readonly zone?: string;
  readonly region?: string;
}

export interface WantedOptions {
  /** The registered domain, `ubernetes.io`. */
  readonly domain: string;
  /** `federation` */
  readonly suffix: string;
  readonly hasPlaceNames: boolean;
  /** Where the federation's clusters are: a place without a shard still gets its names. */
  readonly places: readonly Place[];
}

export type PublicType = 'A' | 'AAAA' | 'CNAME';

/** One record set, values sorted, names without a trailing dot and in lower case. */
export interface PublicSet {
  readonly name: string;
  readonly type: PublicType;
  readonly values: readonly string[];
  /** Where the provider gives it another one than the zone's. */
  readonly ttlSeconds?: number;
}

export interface Wanted {
  readonly sets: readonly PublicSet[];
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}

export function wantedZone(services: readonly PublicService[], options: WantedOptions): Wanted {
  const sets: PublicSet[] = [];
  const leftOut: { what: string; why: string }[] = [];
  for (const service of services) {
    const base = `${service.service}.${service.namespace}.${service.federation}.svc`.toLowerCase();
    const end = `${options.suffix}.${options.domain}`.toLowerCase();
    const healthy = service.shards.filter((shard) => shard.isHealthy);
    const global = `${base}.${end}`;
    const own = setsOf(global, healthy, leftOut);
    // Without a single healthy shard the name is not there at all: better no answer than one that leads nowhere.
    if (own.length === 0) continue;
    sets.push(...own);
    if (options.hasPlaceNames) sets.push(...placeSets({ base, end, global }, healthy, options.places, leftOut));
  }
  const known = sets.filter((set) => {
    if (tryEncodeName(set.name)) return true;
    leftOut.push({ what: set.name, why: 'no valid domain name' });
    return false;
  });
  return { sets: known.sort(bySet), leftOut };
}

function placeSets(
  names: { readonly base: string; readonly end: string; readonly global: string },
  shards: readonly PublicShard[],
  places: readonly Place[],
  leftOut: { what: string; why: string }[],
): PublicSet[] {
  const sets: PublicSet[] = [];
  const regions = new Set(places.flatMap(({ region }) => (region ? [region] : [])));
  for (const region of regions) {
    const inRegion = shards.filter((shard) => shard.region === region);
    const regionName = `${names.base}.${region}.${names.end}`.toLowerCase();
    sets.push(...orAlias(setsOf(regionName, inRegion, leftOut), regionName, names.global));
    const zones = new Set(places.flatMap((place) => (place.region === region && place.zone ? [place.zone] : [])));
    for (const zone of zones) {
      const zoneName = `${names.base}.${zone}.${region}.${names.end}`.toLowerCase();
      const inZone = inRegion.filter((shard) => shard.zone === zone);
      sets.push(...orAlias(setsOf(zoneName, inZone, leftOut), zoneName, regionName));
    }
  }
  return sets;
}

function orAlias(sets: PublicSet[], name: string, levelUp: string): PublicSet[] {
  return sets.length > 0 ? sets : [{ name, type: 'CNAME', values: [levelUp] }];
}

function setsOf(name: string, shards: readonly PublicShard[], leftOut: { what: string; why: string }[]): PublicSet[] {
  // As the zone will show them: an address may be spelled in several ways.
  const spelled = shards.flatMap((shard) => shard.externalIPs).flatMap((ip) => parseAddress(ip) ?? []);
  const addresses = unique(spelled.map((bytes) => formatAddress(bytes)));
  const hostnames = unique(shards.flatMap((shard) => shard.hostnames.map(plainName))).filter((host) =>
    tryEncodeName(host),
  );
  const sets: PublicSet[] = [];
  for (const [type, size] of [
    ['A', 4],
    ['AAAA', 16],
  ] as const) {
    const values = addresses.filter((ip) => parseAddress(ip)!.length === size).sort(byCodeUnits);
    if (values.length > 0) sets.push({ name, type, values });
  }
  const [first, ...others] = hostnames.sort(byCodeUnits);
  const isAlone = sets.length === 0 && first !== undefined;
  // RFC 1912 section 2.4: an alias has no neighbours, and there is only one.
  for (const host of isAlone ? others : hostnames) {
    leftOut.push({ what: `load balancer ${host} of ${name}`, why: 'an alias cannot stand beside other records' });
  }
  return isAlone ? [{ name, type: 'CNAME', values: [first] }] : sets;
}

function plainName(name: string): string {
  return name.replace(/\.$/, '').toLowerCase();
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function bySet(a: PublicSet, b: PublicSet): number {
  return byCodeUnits(`${a.name} ${a.type}`, `${b.name} ${b.type}`);
}

/** rdata of a value, as it stands in messages. */
export function dataOf(type: PublicType, value: string): Uint8Array {
  return type === 'CNAME' ? encodeName(value) : parseAddress(value)!;
}
