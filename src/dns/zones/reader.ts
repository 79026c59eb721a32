// A thread's view of the catalog: shared memory, read where it lies. Hears of new generations and nothing else.

import type { CatalogMemory, CatalogNews } from '../../catalog/names/name-table.ts';
import { stateWord } from '../../catalog/names/name-table.ts';
import { emptyMemory, PackedReader } from '../../catalog/packed/packed-map.ts';
import { PlacesReader } from '../../catalog/packed/places.ts';

export class CatalogReader {
  readonly names: PackedReader;
  readonly places: PlacesReader;
  readonly #state: Int32Array;
  #old: CatalogReader | undefined;

  constructor(memory: CatalogMemory) {
    this.#old = memory.old && new CatalogReader(memory.old);
    this.names = new PackedReader(memory.names);
    this.places = new PlacesReader(memory.places);
    this.#state = new Int32Array(memory.state);
  }

  take(news: CatalogNews): void {
    if (news.kind === 'names') this.names.adopt(news.memory);
    else if (news.kind === 'places') this.places.adopt(news.memory);
    else this.#dropOld();
  }

  /**
   * The copy of an earlier process, for zones that are not ready: all of its zones are stale. A name that it does not
   * have may exist by now.
   */
  get old(): CatalogReader | undefined {
    return this.#old;
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

  /** Remaining references to it find it empty, and its memory is free. */
  #dropOld(): void {
    this.#old?.names.adopt(emptyMemory());
    this.#old?.places.adopt(emptyMemory());
    this.#old = undefined;
  }
}
