// The sealed records of all members, with one informer, and what this cluster can open of them. What cannot be opened is
// not there for anybody here; what was opened last stays while a later record is refused.

import type { Hpke, KeyPair } from '../../base/keys/hpke.ts';
import type { Log } from '../../base/log.ts';
import type { InformerOptions } from '../../kube/controller/informer.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { endpointShardType } from '../kinds/endpoint-shard.ts';
import { type SealedRecord, sealedRecordType } from '../kinds/sealed-record.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { parseRecordName } from '../rules/names.ts';
import { type AudienceKey, keyInfo } from '../rules/sealing/key-record.ts';
import type { PlainRecord } from '../rules/sealing/plain-record.ts';
import { openRecord } from '../rules/sealing/sealed-content.ts';
import { publishedServiceKey } from '../rules/shard-record.ts';
import { OpenedPart } from './opened-part.ts';
import { type RecordPart, SharedCopy } from './shared-copy.ts';

interface Exporter {
  readonly id: string;
  /** Undefined while none is trusted. */
  readonly publicKey: Uint8Array | undefined;
}

/** The highest epochs and counters that were opened here, by exporter; what is lower was put back. */
export interface SeenMarks {
  /** 0 if none was opened. */
  highest(exporter: string, name: string): number;
  note(exporter: string, name: string, mark: number): void;
}

export interface SealedCopyOptions extends Pick<InformerOptions<SealedRecord, SealedRecord>, 'client' | 'world'> {
  readonly log: Log;
  readonly hpke: Hpke;
  readonly memory: SeenMarks;
  readonly clusterset: string;
  readonly clusterId: string;
  /** This cluster's keys; undefined while there are none. */
  readonly identity: () => KeyPair | undefined;
  /** Whose records lie in a namespace; undefined if no member's do. */
  readonly exporterIn: (namespace: string) => Exporter | undefined;
  readonly onShard: (next: ServiceShard | undefined, previous: ServiceShard | undefined) => void;
  readonly onEndpoints: (next: EndpointSlice | undefined, previous: EndpointSlice | undefined) => void;
}

/** Where an opened record comes from. */
export interface Origin {
  readonly name: string;
  readonly resourceVersion: string | undefined;
  readonly audience: string;
  readonly epoch: number;
  readonly counter: number;
}

type OpenedRecord = ServiceShard | EndpointSlice;

interface Turn {
  readonly counter: number;
  /** Empty once the record was deleted: the same one put back is refused too. */
  readonly data: string;
}

/** The key of one audience of one exporter. */
interface Lock {
  /** Epoch of the key record that is open or being opened. */
  epoch: number;
  sealedKey: string;
  state: 'opening' | 'open' | 'closed';
  key?: AudienceKey;
  /** The one before: what is sealed with it is being sealed anew. */
  before?: AudienceKey | undefined;
}

interface Source {
  openedBy: string;
  readonly locks: Map<string, Lock>;
  readonly opened: Map<string, OpenedRecord>;
  /** The latest that was opened of each record, also of those that are gone: an older one is not taken again. */
  readonly seen: Map<string, Turn>;
  readonly refused: Map<string, string>;
  readonly shards: OpenedPart<ServiceShard>;
  readonly endpoints: OpenedPart<EndpointSlice>;
}

/** Records that are gone are remembered up to this number, for each member. */
const goneMax = 20_000;

export class SealedCopy {
  readonly #options: SealedCopyOptions;
  readonly #records: SharedCopy<SealedRecord>;
  readonly #sources = new Map<string, Source>();
  readonly #byName = new Map<string, Set<ServiceShard>>();
  readonly #origins = new WeakMap<object, Origin>();
  #opening = 0;
  #wasSettled = false;

  constructor(options: SealedCopyOptions) {
    this.#options = options;
    const { client, world, log } = options;
    this.#records = new SharedCopy<SealedRecord>({ client, world, log, type: sealedRecordType, keepsLost: true });
    this.#records.on((_key, next, previous) => this.#changed(next, previous));
  }

  get isOpen(): boolean {
    return this.#records.isOpen;
  }

  /** Everything was listed, and opened if it could be, since it is open. */
  get isReady(): boolean {
    this.#wasSettled ||= this.#records.hasSynced && this.#opening === 0;
    return this.#wasSettled;
  }

  get problem(): string | undefined {
    return this.#records.problem;
  }

  open(): void {
    this.#records.open();
  }

  close(): void {
    this.#records.close();
    this.#wasSettled = false;
    for (const namespace of [...this.#sources.keys()]) this.drop(namespace);
  }

  /** Forgets what is known of one exporter. */
  drop(namespace: string): void {
    const source = this.#sources.get(namespace);
    for (const name of [...(source?.opened.keys() ?? [])]) this.#forget(source!, name);
    this.#sources.delete(namespace);
  }

  relist(): void {
    this.#records.relist();
  }

  onReturn(handler: () => void): void {
    this.#records.onReturn(handler);
  }

  /** As they lie at the broker. */
  part(namespace: string): RecordPart<SealedRecord> {
    return this.#records.part(namespace);
  }

  shards(namespace: string): OpenedPart<ServiceShard> | undefined {
    return this.#sources.get(namespace)?.shards;
  }

  endpoints(namespace: string): OpenedPart<EndpointSlice> | undefined {
    return this.#sources.get(namespace)?.endpoints;
  }

  /** Opened shards of that name, of all members. */
  named(name: string): Iterable<ServiceShard> {
    return this.#byName.get(name) ?? [];
  }

  /** What was opened of a sealed record. */
  openedFrom(namespace: string, name: string): OpenedRecord | undefined {
    return this.#sources.get(namespace)?.opened.get(name);
  }

  /** Undefined for a record that was never sealed. */
  originOf(record: object): Origin | undefined {
    return this.#origins.get(record);
  }

  keyOf(namespace: string, audience: string): AudienceKey | undefined {
    return this.#sources.get(namespace)?.locks.get(audience)?.key;
  }

  /** The highest epoch of an audience, or counter of a record, that was ever opened here. */
  highest(namespace: string, name: string): number {
    const exporter = this.#options.exporterIn(namespace);
    return exporter === undefined ? 0 : this.#options.memory.highest(exporter.id, name);
  }

  /** Records that were refused, and why. */
  refusedIn(namespace: string): ReadonlyMap<string, string> {
    return this.#sources.get(namespace)?.refused ?? new Map();
  }

  /** The exporter or one of the keys may be another one now; of all exporters if none is given. */
  reconsider(namespace?: string): void {
    const namespaces = namespace === undefined ? [...this.#sources.keys()] : [namespace];
    for (const one of namespaces) {
      const source = this.#sources.get(one);
      if (source === undefined && this.#records.part(one).size === 0) continue;
      if (source?.openedBy === this.#keysFor(one)) continue;
      this.#sourceOf(one).openedBy = this.#keysFor(one);
      for (const lock of source?.locks.values() ?? []) {
        lock.state = 'closed';
        lock.sealedKey = '';
      }
      const records = this.#records.part(one).values();
      for (const record of records) if (isKeyRecord(record)) this.#keyChanged(record);
      for (const record of records) if (!isKeyRecord(record)) this.#contentChanged(record);
    }
  }

  /** Both keys that opening the records of an exporter takes. */
  #keysFor(namespace: string): string {
    const keys = [this.#options.exporterIn(namespace)?.publicKey, this.#options.identity()?.publicKey];
    return keys.map((key) => (key === undefined ? '' : Buffer.from(key).toString('base64'))).join();
  }

  #changed(next: SealedRecord | undefined, previous: SealedRecord | undefined): void {
    const record = (next ?? previous)!;
    const { name, namespace = '' } = record.metadata;
    if (next !== undefined && isKeyRecord(next)) return this.#keyChanged(next);
    if (next !== undefined) return this.#contentChanged(next);
    const source = this.#sources.get(namespace);
    if (source === undefined) return;
    source.refused.delete(name);
    if (!isKeyRecord(record)) {
      const seen = source.seen.get(name);
      if (seen !== undefined) {
        source.seen.set(name, { ...seen, data: '' });
        this.#note(namespace, name, seen.counter + 1);
      }
      return this.#forget(source, name);
    }
    const lock = source.locks.get(name);
    if (lock !== undefined) Object.assign(lock, { state: 'closed', sealedKey: '', key: undefined, before: undefined });
    this.#again(namespace, name);
  }

  #keyChanged(record: SealedRecord): void {
    const { name, namespace = '' } = record.metadata;
    const source = this.#sourceOf(namespace);
    const { epoch, readers } = record.spec;
    const lock = source.locks.get(name) ?? { epoch: 0, sealedKey: '', state: 'closed' };
    source.locks.set(name, lock);
    if (epoch < Math.max(lock.epoch, this.highest(namespace, name)))
      return this.#refuse(namespace, name, `its key of epoch ${epoch} was replaced before`);
    source.refused.delete(name);
    const own = (readers ?? []).find(({ cluster }) => cluster === this.#options.clusterId);
    if (epoch === lock.epoch && lock.state !== 'closed' && own?.key === lock.sealedKey) return;
    if (epoch > lock.epoch && lock.key !== undefined) lock.before = lock.key;
    const exporter = this.#options.exporterIn(namespace);
    const recipient = this.#options.identity();
    Object.assign(lock, { epoch, sealedKey: own?.key ?? '', state: 'closed', key: undefined });
    if (own === undefined || exporter?.publicKey === undefined || recipient === undefined) {
      lock.before = undefined;
      return this.#again(namespace, name);
    }
    lock.state = 'opening';
    this.#opening += 1;
    const { clusterset, clusterId: reader, hpke } = this.#options;
    const info = keyInfo({ clusterset, exporter: exporter.id, audience: name, epoch, reader });
    const request = { sender: exporter.publicKey, recipient, info, sealed: Buffer.from(own.key, 'base64') };
    const done = (key: Uint8Array | undefined) => {
      this.#opening -= 1;
      if (lock.state !== 'opening' || lock.epoch !== epoch || lock.sealedKey !== own.key) return;
      if (key === undefined) {
        Object.assign(lock, { state: 'closed', before: undefined });
        this.#refuse(namespace, name, `its key is not sealed by ${exporter.id} for this cluster`);
      } else {
        Object.assign(lock, { state: 'open', key: { epoch, key } });
        this.#note(namespace, name, epoch);
      }
      this.#again(namespace, name);
    };
    hpke.open(request).then(done, () => done(undefined));
  }

  /** The records of an audience, whose key is another one now. */
  #again(namespace: string, audience: string): void {
    for (const record of this.#records.part(namespace).values())
      if (!isKeyRecord(record) && record.spec.audience === audience) this.#contentChanged(record);
  }

  #contentChanged(record: SealedRecord): void {
    const { name, namespace = '' } = record.metadata;
    const exporter = this.#options.exporterIn(namespace);
    const source = this.#sourceOf(namespace);
    const { audience, epoch, counter = 0, data = '' } = record.spec;
    const lock = source.locks.get(audience);
    if (exporter === undefined || lock === undefined || lock.state === 'closed') return this.#forget(source, name);
    // The key of a later epoch is on its way, or what is sealed with an older one is being sealed anew.
    const key = [lock.key, lock.before].find((one) => one?.epoch === epoch);
    if (key === undefined) return;
    const seen = source.seen.get(name);
    const present = source.opened.get(name);
    if (present !== undefined && seen?.counter === counter && seen.data === data) {
      this.#origins.set(present, originOf(record));
      return;
    }
    if (counter < this.highest(namespace, name) || (seen !== undefined && isOlder({ counter, data }, seen)))
      return this.#refuse(namespace, name, 'an older state of it was put back');
    const { clusterset } = this.#options;
    const place = { clusterset, exporter: exporter.id, object: name, audience, epoch, counter };
    const opened = openRecord(data, place, key.key);
    if (opened.kind === 'refused') return this.#refuse(namespace, name, opened.why);
    source.refused.delete(name);
    source.seen.delete(name);
    source.seen.set(name, { counter, data });
    this.#note(namespace, name, counter);
    this.#put(source, record, opened.record);
  }

  #note(namespace: string, name: string, mark: number): void {
    const exporter = this.#options.exporterIn(namespace);
    if (exporter !== undefined) this.#options.memory.note(exporter.id, name, mark);
  }

  #put(source: Source, sealed: SealedRecord, plain: PlainRecord): void {
    const { name, namespace } = sealed.metadata;
    const { creationTimestamp, resourceVersion, uid } = sealed.metadata;
    const metadata = { ...plain.metadata, namespace, creationTimestamp, resourceVersion, uid };
    const previous = source.opened.get(name);
    const isSame = previous?.kind === plain.kind && previous.metadata.name === plain.metadata.name;
    if (previous !== undefined && !isSame) this.#forget(source, name);
    const type = plain.kind === 'ServiceShard' ? serviceShardType : endpointShardType;
    const next = { ...plain, apiVersion: apiVersionOf(type), metadata } as OpenedRecord;
    this.#origins.set(next, originOf(sealed));
    source.opened.set(name, next);
    if (isShard(next)) {
      const before = isSame ? (previous as ServiceShard) : undefined;
      source.shards.set(next);
      this.#unname(before);
      const named = this.#byName.get(next.metadata.name) ?? new Set();
      this.#byName.set(next.metadata.name, named.add(next));
      this.#options.onShard(next, before);
    } else {
      source.endpoints.set(next);
      this.#options.onEndpoints(next, isSame ? (previous as EndpointSlice) : undefined);
    }
  }

  #forget(source: Source, name: string): void {
    const opened = source.opened.get(name);
    if (opened === undefined) return;
    source.opened.delete(name);
    if (source.seen.size > goneMax + source.opened.size) {
      const oldest = source.seen.keys().find((one) => !source.opened.has(one));
      if (oldest !== undefined) source.seen.delete(oldest);
    }
    if (isShard(opened)) {
      source.shards.delete(opened);
      this.#unname(opened);
      this.#options.onShard(undefined, opened);
    } else {
      source.endpoints.delete(opened);
      this.#options.onEndpoints(undefined, opened);
    }
  }

  #unname(shard: ServiceShard | undefined): void {
    if (shard === undefined) return;
    const named = this.#byName.get(shard.metadata.name);
    named?.delete(shard);
    if (named?.size === 0) this.#byName.delete(shard.metadata.name);
  }

  #refuse(namespace: string, name: string, why: string): void {
    const { refused } = this.#sourceOf(namespace);
    if (refused.get(name) === why) return;
    refused.set(name, why);
    if (refused.size === 1) this.#options.log.warn('sealed record refused', { namespace, name, why });
  }

  #sourceOf(namespace: string): Source {
    const known = this.#sources.get(namespace);
    if (known !== undefined) return known;
    const source: Source = {
      openedBy: this.#keysFor(namespace),
      locks: new Map(),
      opened: new Map(),
      seen: new Map(),
      refused: new Map(),
      shards: new OpenedPart<ServiceShard>(({ metadata }) => parseRecordName(metadata.name)?.namespace),
      endpoints: new OpenedPart<EndpointSlice>(publishedServiceKey),
    };
    this.#sources.set(namespace, source);
    return source;
  }
}

function isKeyRecord({ metadata, spec }: SealedRecord): boolean {
  return metadata.name === spec.audience;
}

function isShard(record: OpenedRecord): record is ServiceShard {
  return record.kind === serviceShardType.kind;
}

function originOf({ metadata, spec }: SealedRecord): Origin {
  const { audience, epoch, counter = 0 } = spec;
  return { name: metadata.name, resourceVersion: metadata.resourceVersion, audience, epoch, counter };
}

function isOlder({ counter, data }: Turn, seen: Turn): boolean {
  return counter < seen.counter || (counter === seen.counter && data !== seen.data);
}
