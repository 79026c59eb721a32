// A map that forgets what was not asked for longest once it is full, a hundredth at a time: to find its first entry, a Map walks
// over the places of all that were deleted in front of it, which with 65,536 entries takes 20 µs.

const keptShare = 0.99;

export class BoundedCache<V> {
  readonly #entries = new Map<string, V>();
  readonly #sizeMax: number;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#sizeMax) return;
    const sizeWanted = Math.ceil(this.#sizeMax * keptShare);
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      if (this.#entries.size <= sizeWanted) return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
