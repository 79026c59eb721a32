// Clusters, zones and regions as small numbers in shared memory, so that "how far is this cluster from the one that asks?"
// costs a query two array reads. Ordinals are given once and never reused while the catalog lives.

import { tryEncodeName } from '../../base/dns/name.ts';
import { PackedMap, type PackedMemory, PackedReader, type PackedSnapshot } from './packed-map.ts';

export interface ClusterPlace {
  readonly id: string;
  readonly zone?: string;
  readonly region?: string;
}

/** Own cluster, same zone, same region, anywhere. */
export const tier = { own: 0, zone: 1, region: 2, rest: 3 } as const;

export interface PlacesMemory {
  readonly index: PackedMemory;
  /** For each cluster ordinal its zone's and its region's. Ordinal 0 is unused: its words hold the version. */
  readonly table: SharedArrayBuffer;
}

const ordinalMax = 65_535;

/** Place of a client; 0 for unknown parts. */
export interface Standpoint {
  cluster: number;
  zone: number;
  region: number;
}

export class PlacesReader {
  readonly #index: PackedReader;
  readonly #table: Uint16Array;

  constructor(memory: PlacesMemory) {
    this.#index = new PackedReader(memory.index);
    this.#table = new Uint16Array(memory.table);
  }

  adopt(memory: PackedMemory): void {
    this.#index.adopt(memory);
  }

  /** Moves on whenever a cluster, zone or region became known or moved. */
  get version(): number {
    return this.#table[0]!;
  }

  /** The ordinal of a cluster, zone (`region/zone`) or region; 0 if it is unknown. */
  find(kind: 'c' | 'z' | 'r', name: string): number {
    const value = this.#index.get(keyOf(kind, name));
    return value ? (value[0]! << 8) | value[1]! : 0;
  }

  /** A cluster's id as labels of a name, without the root; undefined if it can be no part of one. */
  labelsOf(cluster: number): Uint8Array | undefined {
    return this.#index.get(keyOf('n', String(cluster)));
  }

  standAt(cluster: number): Standpoint {
    if (cluster === 0) return { cluster: 0, zone: 0, region: 0 };
    return { cluster, zone: this.#table[2 * cluster]!, region: this.#table[2 * cluster + 1]! };
  }

  tierOf(asker: Standpoint, cluster: number): number {
    if (cluster !== 0 && cluster === asker.cluster) return tier.own;
    if (cluster === 0) return tier.rest;
    if (asker.zone !== 0 && this.#table[2 * cluster] === asker.zone) return tier.zone;
    if (asker.region !== 0 && this.#table[2 * cluster + 1] === asker.region) return tier.region;
    return tier.rest;
  }
}

export class Places {
  readonly #index: PackedMap;
  readonly #tableMemory = new SharedArrayBuffer(4 * (ordinalMax + 1));
  readonly #table = new Uint16Array(this.#tableMemory);
  readonly #names: string[] = [''];
  /** Ordinals of clusters, for this thread: looked up once for every slice. */
  readonly #ordinals = new Map<string, number>([['', 0]]);
  readonly #nextOrdinal = { c: 1, z: 1, r: 1 };

  constructor(onGeneration: (memory: PackedMemory) => void) {
    this.#index = new PackedMap({ onGeneration });
  }

  get memory(): PlacesMemory {
    return { index: this.#index.memory, table: this.#tableMemory };
  }

  snapshot(): { readonly index: PackedSnapshot; readonly table: Uint16Array } {
    return { index: this.#index.snapshot(), table: this.#table.slice(0, 2 * this.#nextOrdinal.c) };
  }

  ordinalOf(cluster: string): number {
    const known = this.#ordinals.get(cluster);
    if (known !== undefined) return known;
    const ordinal = this.#ordinal('c', cluster);
    this.#ordinals.set(cluster, ordinal);
    return ordinal;
  }

  nameOf(ordinal: number): string {
    return this.#names[ordinal] ?? '';
  }

  place(cluster: ClusterPlace): number {
    const ordinal = this.ordinalOf(cluster.id);
    const { zone, region } = cluster;
    // Zone names are only unique within their region.
    this.#table[2 * ordinal] = zone ? this.#ordinal('z', `${region ?? ''}/${zone}`) : 0;
    this.#table[2 * ordinal + 1] = region ? this.#ordinal('r', region) : 0;
    this.#table[0]! += 1;
    return ordinal;
  }

  #ordinal(kind: 'c' | 'z' | 'r', name: string): number {
    const key = keyOf(kind, name);
    const known = this.#index.get(key);
    if (known) return (known[0]! << 8) | known[1]!;
    const ordinal = this.#nextOrdinal[kind]++;
    if (ordinal > ordinalMax) throw new Error(`catalog: more than ${ordinalMax} clusters, zones or regions`);
    this.#index.set(key, Uint8Array.of(ordinal >> 8, ordinal & 255));
    if (kind === 'c') this.#nameCluster(ordinal, name);
    this.#table[0]! += 1;
    return ordinal;
  }

  #nameCluster(ordinal: number, name: string): void {
    this.#names[ordinal] = name;
    const bytes = name === '' ? undefined : tryEncodeName(name);
    if (bytes) this.#index.set(keyOf('n', String(ordinal)), bytes.subarray(0, -1));
  }
}

function keyOf(kind: string, name: string): Uint8Array {
  return Buffer.from(`${kind}${name}`);
}
