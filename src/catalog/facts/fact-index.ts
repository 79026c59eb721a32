// Services, ServiceImports and EndpointSlices of one home, packed and held once for everything that is derived from them:
// names, kernel rules, xDS resources. Objects come in one at a time. Readers are told of the service that is about to
// change and read its facts afterwards. No I/O.

import { ByteReader, ByteWriter } from '../../base/dns/bytes.ts';
import { RememberedTexts } from '../../base/text/remembered-texts.ts';
import type { Clock } from '../../base/world.ts';
import {
  type EndpointSlice,
  importedServiceNameLabel,
  serviceNameLabel,
  sourceClusterLabel,
} from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import { PackedMap } from '../packed/packed-map.ts';
import {
  absentOwner,
  factsOfImport,
  factsOfService,
  type ImportLike,
  type NamedSlice,
  type OwnerFacts,
  packOwner,
  packSlice,
  type SliceOwner,
  type SlicePacking,
  trafficOfImport,
  trafficOfService,
  unpackOwner,
  unpackSlice,
  unpackSliceHead,
} from './facts.ts';
import { SliceShapes } from './slice-shapes.ts';

/** A Service or a ServiceImport: the first letter of an owner's key, `s/ns/name` or `i/ns/name`. */
export type Side = 's' | 'i';

/** Called before each change, with the import that is about to be stored if that is the change. */
export type TouchListener = (ownerKey: string, incoming?: ImportLike) => void;

/** Few: entries kept here for long would be taken for long-lived ones, and be collected late. */
const unsettledMax = 16;

export interface FactIndexOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Whether owners are kept with what kernel rules and xDS resources need of them; names do without. */
  readonly holdsTraffic?: boolean;
}

export class FactIndex {
  readonly #clock: FactIndexOptions['clock'];
  readonly #holdsTraffic: boolean;
  readonly #owners = new PackedMap();
  readonly #slices = new PackedMap();
  readonly #writer = new ByteWriter(4096);
  readonly #packing: SlicePacking;
  readonly #texts = new RememberedTexts();
  readonly #listeners = new Set<TouchListener>();
  /** Slices that were stored and that their owners do not list yet: a list brings those of one owner in a row. */
  readonly #unsettled = new Map<string, string[]>();
  #importCount = 0;

  constructor(options: FactIndexOptions) {
    this.#clock = options.clock;
    this.#holdsTraffic = options.holdsTraffic ?? false;
    this.#packing = { writer: this.#writer, shapes: new SliceShapes(), keepsOwnZones: this.#holdsTraffic };
  }

  onTouch(listener: TouchListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** How many imports and slices there are. */
  get size(): { readonly imports: number; readonly slices: number } {
    return { imports: this.#importCount, slices: this.#slices.size };
  }

  get memoryBytes(): number {
    return this.#owners.memoryBytes + this.#slices.memoryBytes;
  }

  upsertService(service: Service): void {
    const key = keyOfOwner('s', service.metadata.namespace ?? '', service.metadata.name);
    this.#touch(key);
    const traffic = this.#holdsTraffic ? trafficOfService(service) : {};
    this.#storeOwner(key, { ...factsOfService(service, this.#nowMs()), ...traffic, slices: this.#owner(key).slices });
  }

  removeService(key: string): void {
    this.#removeOwner(`s/${key}`);
  }

  upsertServiceImport(object: ImportLike): void {
    // A merged view, where this home is the broker too: no service has a dot in its name.
    if (object.metadata.name.includes('.')) return;
    const key = keyOfOwner('i', object.metadata.namespace ?? '', object.metadata.name);
    this.#touch(key, object);
    const before = this.#owner(key);
    if (!before.isPresent) this.#importCount++;
    const traffic = this.#holdsTraffic ? { traffic: trafficOfImport(object) } : {};
    this.#storeOwner(key, { ...factsOfImport(object, this.#nowMs()), ...traffic, slices: before.slices });
  }

  removeServiceImport(key: string): void {
    this.#removeOwner(`i/${key}`);
  }

  upsertEndpointSlice(slice: EndpointSlice): void {
    const owner = ownerOfSlice(slice);
    const { namespace = '', name } = slice.metadata;
    const key = `${namespace}/${name}`;
    const at = this.#slices.locateText(key);
    const isKnown = at >= 0 && isSameOwner(unpackSliceHead(this.#sliceAt(at), this.#packing.shapes, name), owner);
    // A slice that moved to another service is gone from the first.
    if (at >= 0 && !isKnown) this.removeEndpointSlice(key);
    if (!owner) return;
    const ownerKey = keyOfOwner(owner.isImported ? 'i' : 's', namespace, owner.service);
    this.#touch(ownerKey);
    if (!isKnown) this.#addSlice(ownerKey, name);
    this.#slices.setText(key, packSlice(this.#packing, slice, owner, this.#nowMs()));
  }

  removeEndpointSlice(sliceKey: string): void {
    const at = this.#slices.locateText(sliceKey);
    if (at < 0) return;
    this.#settle();
    const [namespace, name] = splitKey(sliceKey);
    const before = unpackSliceHead(this.#sliceAt(at), this.#packing.shapes, name);
    const ownerKey = keyOfOwner(before.isImported ? 'i' : 's', namespace, before.service);
    this.#touch(ownerKey);
    const facts = this.#owner(ownerKey);
    this.#slices.deleteText(sliceKey);
    this.#storeOwner(ownerKey, { ...facts, slices: facts.slices.filter((slice) => slice !== name) });
  }

  /** `namespace/name` of every object of a kind whose facts are here. */
  *keys(kind: 'services' | 'imports' | 'slices'): IterableIterator<string> {
    if (kind === 'slices') {
      yield* this.#slices.textKeys();
      return;
    }
    for (const key of this.ownerKeys(kind === 'services' ? 's' : 'i')) {
      if (this.#owner(key).isPresent) yield key.slice(2);
    }
  }

  /** Keys of all owners of a side; facts may change while they are read. */
  *ownerKeys(side: Side): IterableIterator<string> {
    for (const key of this.#owners.textKeys()) if (key[0] === side) yield key;
  }

  /** Whether anything of it was seen, if only a slice. */
  has(ownerKey: string): boolean {
    return this.#owners.locateText(ownerKey) >= 0;
  }

  ownerOf(ownerKey: string): OwnerFacts {
    this.#settle();
    return this.#owner(ownerKey);
  }

  /** The slices of an owner, by cluster and name: the result does not depend on the order in which slices were seen. */
  slicesOf(ownerKey: string, owner: OwnerFacts = this.ownerOf(ownerKey)): NamedSlice[] {
    const [namespace] = splitKey(ownerKey.slice(2));
    const slices: NamedSlice[] = [];
    for (const name of owner.slices) {
      const at = this.#slices.locateText(`${namespace}/${name}`);
      if (at >= 0) slices.push(unpackSlice(this.#sliceAt(at), this.#packing.shapes, name));
    }
    if (slices.some((slice, i) => i > 0 && bySource(slices[i - 1]!, slice) > 0)) slices.sort(bySource);
    return slices;
  }

  /** Whether any endpoint of an owner has a hostname: found without reading its slices. */
  hasHostnames(ownerKey: string, owner: OwnerFacts = this.ownerOf(ownerKey)): boolean {
    const [namespace] = splitKey(ownerKey.slice(2));
    return owner.slices.some((name) => {
      const at = this.#slices.locateText(`${namespace}/${name}`);
      return at >= 0 && unpackSliceHead(this.#sliceAt(at), this.#packing.shapes, name).hasHostnames;
    });
  }

  /** Gives back the memory that reading long lists left. */
  compact(): void {
    this.#settle();
    this.#owners.compact();
    this.#slices.compact();
  }

  #touch(ownerKey: string, incoming?: ImportLike): void {
    for (const listener of this.#listeners) listener(ownerKey, incoming);
  }

  /** Tells owners of their slices. */
  #settle(): void {
    if (this.#unsettled.size === 0) return;
    for (const [ownerKey, names] of this.#unsettled) {
      const facts = this.#owner(ownerKey);
      this.#storeOwner(ownerKey, { ...facts, slices: [...facts.slices, ...names] });
    }
    this.#unsettled.clear();
  }

  #addSlice(ownerKey: string, name: string): void {
    const waiting = this.#unsettled.get(ownerKey);
    if (waiting) waiting.push(name);
    else this.#unsettled.set(ownerKey, [name]);
    if (this.#unsettled.size >= unsettledMax) this.#settle();
  }

  #sliceAt(at: number): ByteReader {
    return new ByteReader(this.#slices.buffer, at, this.#texts);
  }

  #owner(ownerKey: string): OwnerFacts {
    const at = this.#owners.locateText(ownerKey);
    if (at < 0) return absentOwner;
    return unpackOwner(new ByteReader(this.#owners.buffer, at, this.#texts), serviceIn(ownerKey), this.#holdsTraffic);
  }

  #storeOwner(ownerKey: string, facts: OwnerFacts): void {
    if (!facts.isPresent && facts.slices.length === 0) this.#owners.deleteText(ownerKey);
    else this.#owners.setText(ownerKey, packOwner(this.#writer, facts, serviceIn(ownerKey)));
  }

  #removeOwner(ownerKey: string): void {
    this.#settle();
    this.#touch(ownerKey);
    const before = this.#owner(ownerKey);
    if (before.isPresent && ownerKey[0] === 'i') this.#importCount--;
    this.#storeOwner(ownerKey, { ...absentOwner, slices: before.slices });
  }

  #nowMs(): number {
    return this.#clock.monotonicMs();
  }
}

export function splitKey(key: string): [namespace: string, name: string] {
  const slash = key.indexOf('/');
  return [key.slice(0, slash), key.slice(slash + 1)];
}

function keyOfOwner(side: Side, namespace: string, name: string): string {
  return `${side}/${namespace}/${name}`;
}

function serviceIn(ownerKey: string): string {
  return ownerKey.slice(ownerKey.lastIndexOf('/') + 1);
}

/** A slice's service, or undefined for a slice that stands behind no name. */
function ownerOfSlice(slice: EndpointSlice): SliceOwner | undefined {
  const labels = slice.metadata.labels ?? {};
  const imported = labels[importedServiceNameLabel];
  if (imported) return { service: imported, isImported: true, cluster: labels[sourceClusterLabel] ?? '' };
  const service = labels[serviceNameLabel];
  return service ? { service, isImported: false, cluster: '' } : undefined;
}

function bySource(a: NamedSlice, b: NamedSlice): number {
  if (a.cluster !== b.cluster) return a.cluster < b.cluster ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

function isSameOwner(a: Pick<SliceOwner, 'service' | 'isImported'>, b: SliceOwner | undefined): boolean {
  return a.service === b?.service && a.isImported === b.isImported;
}
