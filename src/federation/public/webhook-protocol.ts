// What a webhook provider of external-dns and its caller say to each other: endpoints as JSON, and the record sets that we
// make of them. What a provider answers is checked field by field. Pure.

import { isObject } from '../../base/json.ts';
import { formatAddress, parseAddress } from '../../base/net/ip.ts';
import { type NameChange, ownerText, type ZoneSet } from './difference.ts';
import type { PublicSet } from './wanted.ts';

export const webhookMediaType = 'application/external.dns.webhook+json;version=1';

/** One record set, as external-dns names its parts. */
export interface Endpoint {
  readonly dnsName: string;
  readonly recordType: string;
  readonly targets: readonly string[];
  readonly recordTTL?: number;
  readonly setIdentifier?: string;
  readonly providerSpecific?: unknown;
}

export interface Changes {
  readonly create: readonly Endpoint[];
  readonly updateOld: readonly Endpoint[];
  readonly updateNew: readonly Endpoint[];
  readonly delete: readonly Endpoint[];
}

/** More are not read: a zone of ours has a few names for each service. */
const endpointsMax = 200_000;

/** Throws if it is no list of endpoints; a list may be null. */
export function readEndpoints(value: unknown, what: string): Endpoint[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw new Error(`${what}: a list of endpoints was expected`);
  if (value.length > endpointsMax)
    throw new Error(`${what}: ${value.length} endpoints, at most ${endpointsMax} are read`);
  return value.map((item: unknown, index) => readEndpoint(item, `${what}[${index}]`));
}

function readEndpoint(value: unknown, what: string): Endpoint {
  if (!isObject(value)) throw new Error(`${what}: an endpoint was expected`);
  const { dnsName, recordType, targets, recordTTL, setIdentifier, providerSpecific } = value;
  if (typeof dnsName !== 'string' || typeof recordType !== 'string')
    throw new Error(`${what}: an endpoint needs dnsName and recordType`);
  const texts: unknown[] = Array.isArray(targets) ? targets : [];
  return {
    dnsName: plainName(dnsName),
    recordType,
    targets: texts.filter((text) => typeof text === 'string'),
    ...(typeof recordTTL === 'number' && recordTTL > 0 ? { recordTTL } : {}),
    ...(typeof setIdentifier === 'string' && setIdentifier !== '' ? { setIdentifier } : {}),
    ...(providerSpecific === undefined || providerSpecific === null ? {} : { providerSpecific }),
  };
}

/** Why the provider does not serve a domain, by the filter that it answered; undefined if it does. */
export function filterProblem(value: unknown, domain: string): string | undefined {
  const include: unknown = isObject(value) ? value['include'] : undefined;
  const zones = Array.isArray(include) ? include.filter((zone) => typeof zone === 'string' && zone !== '') : [];
  const isServed = zones.some((zone) => domain === plainName(zone) || domain.endsWith(`.${plainName(zone)}`));
  return zones.length === 0 || isServed
    ? undefined
    : `the webhook serves ${zones.slice(0, 5).join(', ')}, not ${domain}`;
}

/** Record sets below the domain; each name and type once. A set that is one of several under one name is not ours to write. */
export function zoneSetsOf(endpoints: readonly Endpoint[], domain: string): ZoneSet[] {
  const sets = new Map<string, { -readonly [K in keyof ZoneSet]: ZoneSet[K] }>();
  for (const { dnsName: name, recordType, targets, recordTTL: ttl, setIdentifier } of endpoints) {
    if (name !== domain && !name.endsWith(`.${domain}`)) continue;
    const type = setIdentifier === undefined && isKnown(recordType) ? recordType : 'other';
    const values = targets.map((target) => targetValue(type, target));
    const known = sets.get(`${name} ${type}`);
    if (known === undefined) sets.set(`${name} ${type}`, { name, type, values, ...(ttl === undefined ? {} : { ttl }) });
    else known.values = [...known.values, ...values];
  }
  return [...sets.values()];
}

function isKnown(type: string): type is 'A' | 'AAAA' | 'CNAME' | 'TXT' {
  return type === 'A' || type === 'AAAA' || type === 'CNAME' || type === 'TXT';
}

/** Some providers give texts in quotes, some without. */
function targetValue(type: ZoneSet['type'], target: string): string {
  if (type === 'TXT') return target.replace(/^"(.*)"$/s, '$1');
  if (type === 'CNAME') return plainName(target);
  const address = parseAddress(target);
  return address === undefined ? target : formatAddress(address);
}

function plainName(name: string): string {
  return name.replace(/\.$/, '').toLowerCase();
}

export function endpointOf({ name, type, values, ttlSeconds }: PublicSet, ttlDefault: number): Endpoint {
  return { dnsName: name, recordType: type, targets: values, recordTTL: ttlSeconds ?? ttlDefault };
}

/**
 * The TTLs that the provider gives the sets that were asked for. It may not answer other names or values: what is
 * published is what the federation has.
 */
export function adjustedSets(asked: readonly PublicSet[], answered: readonly Endpoint[]): PublicSet[] {
  const byKey = new Map(asked.map((set) => [`${set.name} ${set.type}`, set]));
  const found = new Map<string, PublicSet>();
  for (const { dnsName, recordType, targets, recordTTL } of answered) {
    const key = `${dnsName} ${recordType}`;
    const set = byKey.get(key);
    if (set === undefined) throw new Error(`the webhook's adjusted endpoints have ${key}, which was not asked for`);
    const values = new Set(targets.map((target) => targetValue(set.type, target)));
    if (values.size !== set.values.length || set.values.some((value) => !values.has(value)))
      throw new Error(`the webhook's adjusted endpoints have other targets for ${key} than were asked for`);
    found.set(key, recordTTL === undefined ? set : { ...set, ttlSeconds: recordTTL });
  }
  const missing = [...byKey.keys()].filter((key) => !found.has(key));
  if (missing.length > 0)
    throw new Error(
      `the webhook's adjusted endpoints lack ${missing.length} that were asked for, such as ${missing[0]}`,
    );
  return asked.map((set) => found.get(`${set.name} ${set.type}`)!);
}

export interface ChangeFacts {
  readonly owner: string;
  readonly ttlSeconds: number;
  /** Record sets that are there, by name. */
  readonly current: ReadonlyMap<string, readonly ZoneSet[]>;
}

/**
 * The changes in two steps. First the marks of new names and what must go, then the records and the marks of names that
 * are gone: whatever is lost in between, a record of ours is never without its mark, and an alias never beside records.
 */
export function stepsOf(changes: readonly NameChange[], facts: ChangeFacts): Changes[] {
  const [first, second] = [noChanges(), noChanges()];
  for (const change of changes) {
    const there = (facts.current.get(change.name) ?? []).filter(({ type }) => isKnown(type) && type !== 'TXT');
    const mark = {
      dnsName: change.ownerName,
      recordType: 'TXT',
      targets: [`"${ownerText(facts.owner, change.name)}"`],
      recordTTL: facts.ttlSeconds,
    };
    if (change.kind === 'create') first.create.push(mark);
    if (change.kind === 'delete') second.delete.push(mark);
    for (const old of there) if (!change.sets.some(({ type }) => type === old.type)) first.delete.push(asEndpoint(old));
    for (const set of change.sets) {
      const old = there.find(({ type }) => type === set.type);
      const wanted = endpointOf(set, facts.ttlSeconds);
      if (old === undefined) second.create.push(wanted);
      else {
        second.updateOld.push(asEndpoint(old));
        second.updateNew.push(wanted);
      }
    }
  }
  return [first, second].filter((step) => Object.values(step).some((list) => list.length > 0));
}

function noChanges() {
  return {
    create: [] as Endpoint[],
    updateOld: [] as Endpoint[],
    updateNew: [] as Endpoint[],
    delete: [] as Endpoint[],
  };
}

function asEndpoint({ name, type, values, ttl }: ZoneSet): Endpoint {
  return { dnsName: name, recordType: type, targets: values, ...(ttl === undefined ? {} : { recordTTL: ttl }) };
}
