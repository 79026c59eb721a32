// Every name of a cluster's two zones and what stands behind it, derived from the facts of its services. A change
// recomputes the names of the one service it belongs to, and only names that came out different are written. No I/O:
// attach.ts watches the home and src/dns answers.

import type { AddressClaim } from '../addresses/address-claim.ts';
import { addressProblem, noOthers } from '../addresses/address-right.ts';
import { isSameJson } from '../base/json.ts';
import { formatAddress, formatRange, type IpRange } from '../base/net/ip.ts';
import { carriedTrace } from '../base/telemetry/carried-trace.ts';
import type { Clock, Timer, Timers } from '../base/world.ts';
import { seenFrom } from '../clusterset/rules/choice/locality.ts';
import { type SetLocality, unknownLocality } from '../clusterset/rules/locality.ts';
import { oneNetwork, type SetNetworks } from '../clusterset/rules/networks/networks.ts';
import { readImportableSinceMs } from '../clusterset/rules/propagation.ts';
import { readRouting, routingAnnotation } from '../clusterset/rules/routing/routing.ts';
import { ClaimedAddresses, importOfClaim } from './claims/claimed-addresses.ts';
import { FactIndex, type Side, splitKey } from './facts/fact-index.ts';
import type { ImportLike, NamedSlice, OwnerFacts } from './facts/facts.ts';
import { areSameRecords, type RecordSet } from './names/answers.ts';
import { namesOfService } from './names/cluster-names.ts';
import { namesOfImport } from './names/clusterset-names.ts';
import { NameTable } from './names/name-table.ts';
import { type OwnerInput, OwnerNames } from './names/owner-names.ts';
import type { Sets } from './names/port-names.ts';
import { isTransparentOwner, transparentNames } from './names/transparent-names.ts';
import { fixedNames, makeZone, type Zone, type ZoneSource } from './names/zones.ts';
import type { ClusterPlace } from './packed/places.ts';

export interface CatalogOptions {
  readonly clock: Clock;
  /** Its own if absent; one index serves all that is derived from one home. */
  readonly facts?: FactIndex;
  /** Changes that come within one batch time are written together. Without timers the caller must call `flush`. */
  readonly timers?: Timers;
  readonly batchMs?: number;
  readonly cluster: ClusterPlace;
  readonly clusterDomain?: string;
  readonly clustersetDomain?: string;
  readonly ttlSeconds?: number;
  /** Where the server is found that answers from this catalog. */
  readonly serverAddresses?: readonly string[];
  /** Whether services of the cluster without a ready endpoint have no names. */
  readonly ignoresEmptyServices?: boolean;
  /** Whether `<clusterid>.<svc>.<ns>.svc.<clusterset domain>` exists. */
  readonly hasClusterNames?: boolean;
}

export interface CatalogChange {
  readonly zone: Zone;
  readonly namespace: string;
  readonly service: string;
  readonly names: readonly string[];
  /** Monotonic time at which the first fact of this change came in. */
  readonly sinceMs: number;
  /** For a new import: wall time since which this cluster could have imported it. */
  readonly importableSinceMs?: number;
  /** For a new import that carries a trace. */
  readonly traceparent?: string;
}

interface Dirty {
  readonly before: OwnerNames;
  readonly sinceMs: number;
  importableSinceMs?: number;
  traceparent?: string;
}

/** Slices are read when they are asked for. */
interface SliceReads {
  readonly slices: () => NamedSlice[];
  readonly hasHostnames: () => boolean;
}

/** All that is known of one Service or ServiceImport. */
class FactsOfOwner implements OwnerInput {
  readonly owner: OwnerFacts;
  readonly name: string;
  readonly ordinalOf: (cluster: string) => number;
  readonly #read: SliceReads;
  #slices: readonly NamedSlice[] | undefined;

  constructor(options: Pick<OwnerInput, 'owner' | 'name' | 'ordinalOf'>, read: SliceReads) {
    this.owner = options.owner;
    this.name = options.name;
    this.ordinalOf = options.ordinalOf;
    this.#read = read;
  }

  get hasHostnames(): boolean {
    return this.#read.hasHostnames();
  }

  get slices(): readonly NamedSlice[] {
    return (this.#slices ??= this.#read.slices());
  }
}

const dirtyMax = 2048;
/** How many services get their names before other work has a turn: a few milliseconds of work. */
const ownersPerTurn = 500;
/** How long names stay in a renamed zone: far longer than a thread needs to learn of it. */
const oldZoneMs = 1000;
const noNames = new OwnerNames('');
/** Names are held from one level above; no service has this name. */
const anyService = '*';

export class Catalog {
  readonly facts: FactIndex;
  readonly table: NameTable;
  readonly clusterZone: Zone;
  #clustersetZone: Zone;
  readonly localCluster: number;
  readonly #options: CatalogOptions;
  readonly #dirty = new Map<string, Dirty>();
  readonly #listeners = new Set<(changes: readonly CatalogChange[]) => void>();
  /** Until everything has been read once, facts are only kept: names made now would be made again with each slice. */
  readonly #stage: Record<Side, 'reading' | 'filling' | 'read'> = { s: 'reading', i: 'reading' };
  readonly #filling: Partial<Record<Side, Generator<void>>> = {};
  /** Owners that have got their names because their facts changed while names were being made. */
  readonly #touched: Record<Side, Set<string>> = { s: new Set(), i: new Set() };
  readonly #ordinalOf = (cluster: string) => this.table.places.ordinalOf(cluster);
  readonly #namespaces = new Set<string>();
  readonly #claims = new ClaimedAddresses();
  #hasClusterNames: boolean;
  #locality: SetLocality = unknownLocality;
  #networks: SetNetworks = oneNetwork;
  #seen: ReturnType<typeof seenFrom>;
  #timer: Timer | undefined;

  constructor(options: CatalogOptions) {
    this.#options = options;
    this.facts = options.facts ?? new FactIndex(options);
    this.#seen = this.#seenFromHere(unknownLocality);
    this.#hasClusterNames = options.hasClusterNames ?? false;
    this.table = new NameTable({ serial: Math.floor(options.clock.wallMs() / 1000) });
    this.localCluster = this.table.places.place(options.cluster);
    const { ttlSeconds, serverAddresses, clusterDomain = 'cluster.local' } = options;
    const { clustersetDomain = 'clusterset.local' } = options;
    const shared = { ttlSeconds, serverAddresses };
    this.clusterZone = makeZone(0, { ...shared, name: clusterDomain, source: 'services' });
    this.#clustersetZone = makeZone(1, { ...shared, name: clustersetDomain, source: 'imports' });
    for (const zone of this.zones) {
      for (const [name, sets] of fixedNames(zone)) this.table.put(name, zone.id, sets);
    }
    this.facts.onTouch((ownerKey, incoming) => this.#touch(ownerKey, incoming));
  }

  get cluster(): ClusterPlace {
    return this.#options.cluster;
  }

  get clustersetZone(): Zone {
    return this.#clustersetZone;
  }

  get zones(): readonly Zone[] {
    return [this.clusterZone, this.clustersetZone];
  }

  /** Bytes of the facts and the names together. */
  get memoryBytes(): number {
    return this.table.memoryBytes + this.facts.memoryBytes + this.#claims.memoryBytes;
  }

  /** Hears of every change after it has been written. */
  onChange(listener: (changes: readonly CatalogChange[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** RFC 8020 and Kubernetes alike: the name of a namespace exists, whether there is a service in it or not. */
  upsertNamespace(name: string): void {
    if (this.#namespaces.has(name)) return;
    this.#namespaces.add(name);
    this.table.hold(nameIn(this.clusterZone, name, anyService), this.clusterZone);
    this.table.bumpSerial();
  }

  removeNamespace(name: string): void {
    if (!this.#namespaces.delete(name)) return;
    this.table.release(nameIn(this.clusterZone, name, anyService), this.clusterZone);
    this.table.bumpSerial();
  }

  namespaces(): IterableIterator<string> {
    return this.#namespaces.values();
  }

  upsertAddressClaim(claim: AddressClaim): void {
    const owner = importOfClaim(claim);
    const before = this.#claims.importOf(claim.metadata.name);
    if (owner !== undefined) this.#touchImport(owner);
    if (before !== undefined && before !== owner) this.#touchImport(before);
    this.#claims.upsert(claim);
  }

  removeAddressClaim(name: string): void {
    const before = this.#claims.importOf(name);
    if (before !== undefined) this.#touchImport(before);
    this.#claims.remove(name);
  }

  claimNames(): IterableIterator<string> {
    return this.#claims.keys();
  }

  /** All claims were listed: from now on an address without one, in the ranges of agents, is not answered. */
  setClaimsListed(): void {
    if (this.#claims.isListed) return;
    if (this.#claims.ranges.length === 0) this.#claims.setListed();
    else this.#remakeImports(() => this.#claims.setListed());
  }

  /** Ranges that agents allocate from. */
  setAllocatedRanges(ranges: readonly IpRange[]): void {
    if (ranges.map(formatRange).join() === this.#claims.ranges.map(formatRange).join()) return;
    this.#remakeImports(() => this.#claims.setRanges(ranges));
  }

  #touchImport(key: string): void {
    if (this.facts.has(`i/${key}`)) this.#touch(`i/${key}`, undefined);
  }

  // Two names may lead to an address that no agent allocates: each is its namespace's own. In the ranges of agents a claim
  // that comes or goes changes the names of its owner alone.
  #addressProblem(ip: Uint8Array, importKey: string): string | undefined {
    const address = formatAddress(ip);
    if (!this.#claims.isAllocated(address)) return undefined;
    return addressProblem(address, this.#claims.rightOf(address, importKey), noOthers);
  }

  /** Where a cluster lies, for the order of answers. */
  placeCluster(place: ClusterPlace): void {
    this.table.places.place(place);
  }

  /** Until then its names answer SERVFAIL: a resolver would remember NXDOMAIN long after we know better. */
  setSynced(source: ZoneSource): void {
    for (const _ of this.fill(source));
    this.flush();
    for (const zone of this.zones) if (zone.source === source) this.table.setReady(zone.id, true);
  }

  /**
   * Makes the names of what has been read, some at a time: between two steps queries can be answered and facts may
   * change. A second call before it is done returns the same run.
   */
  fill(source: ZoneSource): Iterable<void> {
    const side = sideOf(source);
    if (side === undefined || this.#stage[side] === 'read') return [];
    this.#filling[side] ??= this.#fill(side);
    return this.#filling[side];
  }

  /** The home cannot be asked at present: answers go on, marked as old. */
  setStale(source: ZoneSource, isStale: boolean): void {
    for (const zone of this.zones) if (zone.source === source) this.table.setStale(zone.id, isStale);
  }

  get hasClusterNames(): boolean {
    return this.#hasClusterNames;
  }

  setClusterNames(hasClusterNames: boolean): void {
    if (hasClusterNames === this.#hasClusterNames) return;
    this.#remakeImports(() => {
      this.#hasClusterNames = hasClusterNames;
    });
  }

  /**
   * All names of imports move to another zone. The new ones are written at once; the old ones stay until every thread that
   * answers has had time to learn of the new zone: at no moment are there neither.
   */
  setClustersetDomain(name: string): void {
    const before = this.#clustersetZone;
    const zone = { ...makeZone(1, { ...before, name }) };
    if (zone.name === before.name) return;
    const isRead = this.#stage.i !== 'reading';
    if (isRead) for (const _ of this.fill('imports'));
    this.flush();
    const imports = isRead ? [...this.facts.ownerKeys('i')] : [];
    this.#clustersetZone = zone;
    for (const [fixed, sets] of fixedNames(zone)) this.table.put(fixed, zone.id, sets);
    const sinceMs = this.#nowMs();
    const changes = imports.map((key) => this.#changeOf(key, this.#move(key, before), { sinceMs }));
    const leave = () => this.table.removeLeftBehind(before, this.#clustersetZone);
    if (this.#options.timers) this.#options.timers.after(oldZoneMs, leave);
    else leave();
    this.table.bumpSerial();
    for (const listener of this.#listeners) listener(changes);
  }

  /** Writes an owner's names where they lie now. Those in the old zone stay without an owner. */
  #move(ownerKey: string, before: Zone): string[] {
    const names = this.#presentNames(ownerKey);
    const [namespace, service] = splitKey(ownerKey.slice(2));
    if (names.sets.size > 0) this.table.release(nameIn(before, namespace, service), before);
    return this.#write(ownerKey, noNames, names);
  }

  /** Where clusters lie and how far traffic goes, for endpoints that clients reach by name. */
  setLocality(locality: SetLocality): void {
    if (isSameLocality(locality, this.#locality)) return;
    this.#remakeImports(() => {
      this.#locality = locality;
      this.#seen = this.#seenFromHere(locality);
    });
  }

  /** Clusters of other networks, whose endpoints have no names. */
  setNetworks(networks: SetNetworks): void {
    const isSame = isSameJson([...networks.clusters], [...this.#networks.clusters]);
    if (!isSame)
      this.#remakeImports(() => {
        this.#networks = networks;
      });
  }

  #seenFromHere(locality: SetLocality) {
    const { id: cluster, zone, region } = this.#options.cluster;
    return seenFrom({ cluster, zone, region }, locality);
  }

  /** The inputs shared by all names of imports change rarely. */
  #remakeImports(change: () => void): void {
    if (this.#stage.i === 'reading') return change();
    for (const _ of this.fill('imports'));
    this.flush();
    const imports = [...this.facts.ownerKeys('i')];
    const transparent =
      this.#stage.s === 'reading' ? [] : imports.map((key) => key.slice(2)).filter((key) => this.isTransparent(key));
    for (const key of [...imports, ...transparent.map((each) => `s/${each}`)])
      this.#dirty.set(key, { before: this.#presentNames(key), sinceMs: this.#nowMs() });
    change();
    this.flush();
  }

  /** Writes what has changed. Names that came out as they were are not touched. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#dirty.size === 0) return;
    const changes: CatalogChange[] = [];
    for (const [key, dirty] of this.#dirty) {
      const names = this.#write(key, dirty.before, this.#presentNames(key));
      if (names.length > 0) changes.push(this.#changeOf(key, names, dirty));
    }
    this.#dirty.clear();
    if (changes.length === 0) return;
    this.table.bumpSerial();
    for (const listener of this.#listeners) listener(changes);
  }

  /** The names of one owner as the present facts make them, with all reasons; `s/ns/name` or `i/ns/name`. */
  namesOf(ownerKey: string): OwnerNames {
    return this.#namesFrom(this.factsOf(ownerKey), ownerKey, { isExplained: true });
  }

  /** The same without reasons: slices are read only where names depend on them. */
  #presentNames(ownerKey: string): OwnerNames {
    return this.#namesFrom(this.factsOf(ownerKey), ownerKey);
  }

  factsOf(ownerKey: string, name = this.#nameOf(ownerKey)): FactsOfOwner {
    const owner = this.facts.ownerOf(ownerKey);
    return new FactsOfOwner(
      { owner, name, ordinalOf: this.#ordinalOf },
      {
        slices: () => this.facts.slicesOf(ownerKey, owner),
        hasHostnames: () => this.facts.hasHostnames(ownerKey, owner),
      },
    );
  }

  #namesFrom(facts: FactsOfOwner, ownerKey: string, { isExplained = false } = {}): OwnerNames {
    const key = ownerKey.slice(2);
    const ofImport = (owner: OwnerInput, hasClusterNames: boolean) =>
      namesOfImport(owner, {
        hasClusterNames,
        ...this.#seen,
        networks: this.#networks,
        addressProblem: (ip) => this.#addressProblem(ip, key),
        isExplained,
      });
    if (this.#zoneOf(ownerKey) !== this.clusterZone) return ofImport(facts, this.#hasClusterNames);
    const own = namesOfService(facts, { ignoresEmpty: this.#options.ignoresEmptyServices ?? false });
    if (!this.isTransparent(key)) return own;
    return transparentNames(own, ofImport(this.factsOf(`i/${key}`, facts.name), false), facts.name);
  }

  /** Whether the own name of a service leads to the import of that name. */
  isTransparent(key: string): boolean {
    return isTransparentOwner(this.facts.ownerOf(`i/${key}`));
  }

  /** Also gives back the memory that reading it all left. */
  *#fill(side: Side): Generator<void> {
    this.#stage[side] = 'filling';
    this.facts.compact();
    this.#claims.compact();
    let owners = 0;
    for (const key of this.facts.ownerKeys(side)) {
      if (this.#touched[side].has(key)) continue;
      this.#fillOwner(key);
      owners += 1;
      if (owners % ownersPerTurn === 0) yield;
    }
    this.#stage[side] = 'read';
    this.#touched[side].clear();
    this.table.compact();
    this.table.bumpSerial();
  }

  /** The names of an owner that has none yet. */
  #fillOwner(ownerKey: string): void {
    this.#writeNew(ownerKey, this.#presentNames(ownerKey));
  }

  #writeNew(ownerKey: string, names: OwnerNames): void {
    if (names.sets.size === 0) return;
    const zone = this.#zoneOf(ownerKey);
    this.table.hold(this.#nameOf(ownerKey), zone);
    for (const [name, sets] of names.stored()) this.table.put(name, zone.id, sets);
    this.#writePointers(noNames.pointers, names.pointers, []);
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #zoneOf(ownerKey: string): Zone {
    return ownerKey[0] === 's' ? this.clusterZone : this.clustersetZone;
  }

  #nameOf(ownerKey: string): string {
    const [namespace, service] = splitKey(ownerKey.slice(2));
    return nameIn(this.#zoneOf(ownerKey), namespace, service);
  }

  /** Remembers what the owner's names are before its facts change. */
  #touch(ownerKey: string, incoming: ImportLike | undefined): void {
    const side = ownerKey[0] as Side;
    if (this.#stage[side] === 'reading') return;
    if (side === 'i' && this.#isOrWillBeTransparent(ownerKey, incoming))
      this.#touch(`s/${ownerKey.slice(2)}`, undefined);
    const isNewImport = incoming !== undefined && this.#stage.i === 'read' && !this.facts.ownerOf(ownerKey).isPresent;
    if (!this.#dirty.has(ownerKey)) this.#rememberNames(ownerKey, side);
    if (!isNewImport) return;
    const dirty = this.#dirty.get(ownerKey)!;
    dirty.importableSinceMs = readImportableSinceMs(incoming.metadata.annotations);
    dirty.traceparent = carriedTrace(incoming);
  }

  #isOrWillBeTransparent(ownerKey: string, incoming: ImportLike | undefined): boolean {
    const text = incoming?.metadata.annotations?.[routingAnnotation];
    const willBe = typeof text === 'string' && readRouting(text).isTransparent === true;
    return willBe || this.isTransparent(ownerKey.slice(2));
  }

  #rememberNames(ownerKey: string, side: Side): void {
    if (this.#dirty.size >= dirtyMax) this.flush();
    const isKnown = this.facts.has(ownerKey);
    if (this.#stage[side] === 'filling' && !this.#touched[side].has(ownerKey)) {
      if (isKnown && !this.table.has(this.#nameOf(ownerKey))) this.#fillOwner(ownerKey);
      this.#touched[side].add(ownerKey);
    }
    this.#dirty.set(ownerKey, { before: isKnown ? this.#presentNames(ownerKey) : noNames, sinceMs: this.#nowMs() });
    const { timers, batchMs = 1 } = this.#options;
    if (timers && !this.#timer) this.#timer = timers.after(batchMs, () => this.flush());
  }

  #changeOf(
    key: string,
    names: readonly string[],
    { sinceMs, importableSinceMs, traceparent }: Omit<Dirty, 'before'>,
  ): CatalogChange {
    const [namespace, service] = splitKey(key.slice(2));
    return { zone: this.#zoneOf(key), namespace, service, names, sinceMs, importableSinceMs, traceparent };
  }

  /** Brings the table from `before` to `after`; returns the names that changed. */
  #write(ownerKey: string, before: OwnerNames, after: OwnerNames): string[] {
    const zone = this.#zoneOf(ownerKey);
    const service = this.#nameOf(ownerKey);
    const changed: string[] = [];
    // Parents come first and go last: no name exists below one that does not.
    if (before.sets.size === 0 && after.sets.size > 0) this.table.hold(service, zone);
    const stored = { before: before.stored(), after: after.stored() };
    const isNew = !stored.before.has(service);
    const others = [...otherSets(stored.before, stored.after)];
    // A name that its service listed until now has an entry before the service no longer lists it.
    for (const [name, sets] of others) if (isNew || name !== service) this.table.put(name, zone.id, sets);
    for (const [name, sets] of others) if (!isNew && name === service) this.table.put(name, zone.id, sets);
    for (const name of stored.before.keys()) if (!stored.after.has(name)) this.table.remove(name);
    for (const [name] of otherSets(before.sets, after.sets)) changed.push(name);
    for (const name of before.sets.keys()) if (!after.sets.has(name)) changed.push(name);
    if (before.sets.size > 0 && after.sets.size === 0) this.table.release(service, zone);
    this.#writePointers(before.pointers, after.pointers, changed);
    return changed;
  }

  #writePointers(before: OwnerNames['pointers'], after: OwnerNames['pointers'], changed: string[]): void {
    if (before.size === 0 && after.size === 0) return;
    for (const reverse of new Set([...before.keys(), ...after.keys()])) {
      const remove = before.get(reverse) ?? [];
      const add = after.get(reverse) ?? [];
      if (remove.length === add.length && remove.every((name, i) => name === add[i])) continue;
      this.table.changePointers(reverse, { remove, add });
      changed.push(reverse);
    }
  }
}

function sideOf(source: ZoneSource): Side | undefined {
  return source === 'services' ? 's' : source === 'imports' ? 'i' : undefined;
}

function nameIn(zone: Zone, namespace: string, service: string): string {
  return `${service}.${namespace}.svc.${zone.name}`;
}

function isSameLocality(a: SetLocality, b: SetLocality): boolean {
  return a.preference === b.preference && isSameJson(Object.fromEntries(a.clusters), Object.fromEntries(b.clusters));
}

/** Those that are new or were something else before. */
function* otherSets(before: Sets, after: Sets): IterableIterator<[name: string, sets: readonly RecordSet[]]> {
  for (const [name, sets] of after) {
    const old = before.get(name);
    if (!old || !areSameSets(old, sets)) yield [name, sets];
  }
}

function areSameSets(a: readonly RecordSet[], b: readonly RecordSet[]): boolean {
  return a.length === b.length && a.every((set, i) => isSameSet(set, b[i]!));
}

function isSameSet(a: RecordSet, b: RecordSet): boolean {
  if (a.type !== b.type || a.order !== b.order || a.records.length !== b.records.length) return false;
  if (a.namesEndpoints !== b.namesEndpoints) return false;
  return areSameRecords(a.records, b.records);
}
