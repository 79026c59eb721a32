// A thread's view of the catalog: shared memory, read where it lies. Hears of new generations and nothing else.

import type { CatalogMemory, CatalogNews } from '../catalog/name-table.ts';
import { stateWord } from '../catalog/name-table.ts';
import { PackedReader } from '../catalog/packed-map.ts';
import { PlacesReader } from '../catalog/places.ts';

export class CatalogReader {
  readonly names: PackedReader;
  readonly places: PlacesReader;
  readonly #state: Int32Array;

  constructor(memory: CatalogMemory) {
    this.names = new PackedReader(memory.names);
    this.places = new PlacesReader(memory.places);
    this.#state = new Int32Array(memory.state);
  }

  take(news: CatalogNews): void {
    if (news.kind === 'names') this.names.adopt(news.memory);
    else this.places.adopt(news.memory);
  }

  isReady(zone: number): boolean {
    return ((Atomics.load(this.#state, stateWord.readyZones) >> zone) & 1) === 1;
  }

  isStale(zone: number): boolean {
    return ((Atomics.load(this.#state, stateWord.staleZones) >> zone) & 1) === 1;
  }

  get isLogging(): boolean {
    return Atomics.load(this.#state, stateWord.queryLog) === 1;
  }

  get serial(): number {
    return Atomics.load(this.#state, stateWord.serial) >>> 0;
  }
}
