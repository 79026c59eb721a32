// The names of what peers share with this cluster: those under `peers.local`, which is a zone of ours, and FQDNs of
// other people's domains, single names: that one is ours, its neighbours are not. PeerServices
// come in one by one; a change writes the names it touches and no others.

import { ByteReader, ByteWriter } from '../../base/dns/bytes.ts';
import { encodeName, isWithin, reverseName, tryEncodeName } from '../../base/dns/name.ts';
import { compareRights, type NameRight } from '../../base/name-right.ts';
import type { Clock } from '../../base/world.ts';
import { type PeerService, peersDomain } from '../../peering/kinds/peer-service.ts';
import { zoneMark } from '../names/answers.ts';
import type { NameTable } from '../names/name-table.ts';
import { OutsideGate, type OutsideParty } from '../names/outside-gate.ts';
import type { OwnerNames } from '../names/owner-names.ts';
import { fixedNames, makeZone, type Zone } from '../names/zones.ts';
import { PackedMap } from '../packed/packed-map.ts';
import {
  factsOfPeerService,
  namesOfPeer,
  type PeerFacts,
  packPeer,
  packTexts,
  unpackPeer,
  unpackTexts,
} from './peer-facts.ts';

export interface PeerTableOptions {
  readonly table: NameTable;
  readonly clock: Clock;
  readonly ttlSeconds?: number;
  /** Where the server is found that answers from this table. */
  readonly serverAddresses?: readonly string[];
  /** Zones in which no peer has a name. */
  readonly otherZones: () => readonly Zone[];
  /** Others that have names outside our zones; none when absent. */
  readonly otherParties?: readonly OutsideParty[];
  /** Whether a service of another kind has this name. */
  readonly isTaken?: (name: string) => boolean;
}

export interface Claimant {
  /** `namespace/name` of the PeerService. */
  readonly key: string;
  readonly facts: PeerFacts;
}

/** The service that answers at a name, and why others do not. */
export interface PeerNameReport {
  readonly holder: Claimant | undefined;
  readonly others: readonly Claimant[];
  /** Why this name is unavailable to all; empty if it is available. */
  readonly why: string;
}

const peersZoneId = 8;
const reverseTrees = ['in-addr.arpa', 'ip6.arpa'].map((tree) => ({ name: tree, bytes: encodeName(tree) }));

export class PeerTable {
  readonly zone: Zone;
  readonly table: NameTable;
  readonly #options: PeerTableOptions;
  readonly #fixed: ReadonlySet<string>;
  readonly gate: OutsideGate;
  readonly nameserver: string;
  /** By the key of the PeerService. */
  readonly #facts = new PackedMap();
  /** By name: keys of those that claim it. */
  readonly #claims = new PackedMap();
  readonly #writer = new ByteWriter(1024);

  constructor(options: PeerTableOptions) {
    const { table, ttlSeconds, serverAddresses } = options;
    this.#options = options;
    this.table = table;
    this.zone = makeZone(peersZoneId, { name: peersDomain, source: 'peers', ttlSeconds, serverAddresses });
    const fixed = fixedNames(this.zone);
    for (const [name, sets] of fixed) table.put(name, this.zone.id, sets);
    this.#fixed = new Set(fixed.keys());
    this.nameserver = `ns.dns.${this.zone.name}`;
    this.gate = new OutsideGate(table, this.zone.id, ['peers', ...(options.otherParties ?? [])]);
  }

  get memoryBytes(): number {
    return this.#facts.memoryBytes + this.#claims.memoryBytes;
  }

  upsert(service: PeerService): void {
    const { namespace = '', name } = service.metadata;
    this.#change(`${namespace}/${name}`, factsOfPeerService(service, this.#options.clock.monotonicMs()));
  }

  remove(key: string): void {
    this.#change(key, undefined);
  }

  *keys(): IterableIterator<string> {
    for (const key of this.#facts.keys()) yield Buffer.from(key).toString();
  }

  setSynced(): void {
    this.gate.setSynced('peers');
  }

  /** Unknown names may be forwarded from now on: peers' services are known, or not waited for. */
  passOthers(): void {
    this.gate.pass('peers');
  }

  nothingToRead(): void {
    this.passOthers();
  }

  /** Somebody of another kind takes a name, or leaves it. */
  whileOthersTake(name: string, change: () => void): void {
    const before = this.#namesAt(name);
    change();
    if (this.#write(name, before, this.#namesAt(name))) this.table.bumpSerial();
  }

  setStale(isStale: boolean): void {
    this.gate.setStale('peers', isStale);
  }

  /** Undefined for a name that no PeerService claims. */
  report(name: string): PeerNameReport | undefined {
    const claimants = this.#claimants(name);
    const [first, ...others] = claimants;
    if (first === undefined) return undefined;
    const why = this.#whyNot(name);
    return why === '' ? { holder: first, others, why } : { holder: undefined, others: claimants, why };
  }

  #change(key: string, after: PeerFacts | undefined): void {
    const before = this.#factsOf(key);
    if (before === undefined && after === undefined) return;
    const isSame = before !== undefined && after !== undefined && isSameButSeen(before, after);
    const touched = isSame ? [] : [...new Set([...(before?.hostnames ?? []), ...(after?.hostnames ?? [])])];
    const old = touched.map((name) => this.#namesAt(name));
    this.#keep(key, before, after);
    let hasChanged = false;
    touched.forEach((name, i) => {
      if (this.#write(name, old[i], this.#namesAt(name))) hasChanged = true;
    });
    if (!isSame && this.#writePointers(before, after)) hasChanged = true;
    if (hasChanged) this.table.bumpSerial();
  }

  #factsOf(key: string): PeerFacts | undefined {
    const packed = this.#facts.get(Buffer.from(key));
    return packed && unpackPeer(packed);
  }

  #keep(key: string, before: PeerFacts | undefined, after: PeerFacts | undefined): void {
    if (after === undefined) this.#facts.delete(Buffer.from(key));
    else this.#facts.set(Buffer.from(key), packPeer(this.#writer, after));
    for (const name of before?.hostnames ?? []) if (!after?.hostnames.includes(name)) this.#claim(name, key, false);
    for (const name of after?.hostnames ?? []) if (!before?.hostnames.includes(name)) this.#claim(name, key, true);
  }

  #claim(name: string, key: string, isClaimed: boolean): void {
    const bytes = Buffer.from(name);
    const others = this.#keysAt(name).filter((other) => other !== key);
    const keys = isClaimed ? [...others, key] : others;
    if (keys.length === 0) this.#claims.delete(bytes);
    else this.#claims.set(bytes, packTexts(this.#writer.reset(), keys).view());
  }

  #keysAt(name: string): string[] {
    const packed = this.#claims.get(Buffer.from(name));
    return packed ? unpackTexts(new ByteReader(packed)) : [];
  }

  /** The one that has the name first. */
  #claimants(name: string): Claimant[] {
    const claimants = this.#keysAt(name).flatMap((key) => {
      const facts = this.#factsOf(key);
      return facts === undefined ? [] : [{ key, facts }];
    });
    return claimants.length < 2 ? claimants : claimants.sort(byRight);
  }

  #namesAt(name: string): PeerNames | undefined {
    const holder = this.#claimants(name)[0]?.facts;
    if (holder === undefined || this.#whyNot(name) !== '') return undefined;
    const isSingleName = !this.#isOurs(name);
    const { sets } = namesOfPeer(name, holder, isSingleName ? { nameserver: this.nameserver } : {});
    const isOld = holder.state !== 'Active';
    return { sets, mark: this.zone.id | (isSingleName ? zoneMark.singleName : 0) | (isOld ? zoneMark.old : 0) };
  }

  #whyNot(name: string): string {
    const bytes = tryEncodeName(name);
    if (bytes === undefined) return 'it is not a domain name';
    if (name.split('.').some((label) => label.startsWith('_'))) return 'labels that begin with _ are for ports';
    const zones = [...this.#options.otherZones(), ...reverseTrees];
    const zone = zones.find((other) => isWithin(bytes, bytes.length, other.bytes));
    if (zone !== undefined) return `it lies in ${zone.name}, which is not a zone for names of peers`;
    if (this.#options.isTaken?.(name)) return 'an older MeshExternalService owns it';
    return this.#fixed.has(name) ? `it is a name of the zone ${this.zone.name} itself` : '';
  }

  #isOurs(name: string): boolean {
    return name === this.zone.name || name.endsWith(`.${this.zone.name}`);
  }

  /** True if anything was written. */
  #write(name: string, before: PeerNames | undefined, after: PeerNames | undefined): boolean {
    let hasChanged = false;
    if (after !== undefined && before === undefined) this.table.hold(name, this.zone);
    for (const [at, sets] of after?.sets ?? []) if (this.table.putIfOther(at, after!.mark, sets)) hasChanged = true;
    for (const at of before?.sets.keys() ?? []) {
      if (after?.sets.has(at)) continue;
      this.table.remove(at);
      hasChanged = true;
    }
    if (before !== undefined && after === undefined) this.table.release(name, this.zone);
    return hasChanged;
  }

  /** Its addresses lead back to its first name. */
  #writePointers(before: PeerFacts | undefined, after: PeerFacts | undefined): boolean {
    const [old, wanted] = [this.#pointersOf(before), this.#pointersOf(after)];
    let hasChanged = false;
    for (const reverse of new Set([...old.keys(), ...wanted.keys()])) {
      const [remove, add] = [old.get(reverse), wanted.get(reverse)];
      if (remove === add) continue;
      this.table.changePointers(reverse, { remove: present(remove), add: present(add) });
      hasChanged = true;
    }
    return hasChanged;
  }

  #pointersOf(facts: PeerFacts | undefined): Map<string, string> {
    const target = facts?.hostnames.find((name) => this.#whyNot(name) === '');
    if (facts === undefined || target === undefined) return new Map();
    return new Map(facts.ips.map((ip) => [reverseName(ip), target]));
  }
}

interface PeerNames {
  readonly sets: OwnerNames['sets'];
  /** The zone's number and the flags of the name. */
  readonly mark: number;
}

function byRight(one: Claimant, other: Claimant): number {
  return compareRights(rightOf(one), rightOf(other));
}

/** A verdict of the home goes before what is computed here. */
function rightOf({ key, facts }: Claimant): NameRight {
  return { key, isSettled: facts.hasVerdict, sinceMs: facts.firstSeenMs };
}

function isSameButSeen(one: PeerFacts, other: PeerFacts): boolean {
  const unseen = { resourceVersion: '', seenMs: 0 };
  const writers = [one, other].map((facts) => packPeer(new ByteWriter(), { ...facts, ...unseen }));
  return Buffer.compare(writers[0]!, writers[1]!) === 0;
}

function present(name: string | undefined): string[] {
  return name === undefined ? [] : [name];
}
