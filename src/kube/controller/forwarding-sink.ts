// Passes the objects of a reflector on without keeping them. The receiver says which keys it holds, so that a later list
// removes what it no longer brings.

import { type KubernetesObject, keyOf } from '../objects/object.ts';

export interface ForwardedTo {
  upsert(object: never): void;
  remove(key: string): void;
  keys(): IterableIterator<string>;
}

export class ForwardingSink {
  readonly #source: ForwardedTo;
  readonly #onListed: () => void;
  /** Absent outside a list, and during one that finds the receiver empty. */
  #seen: Set<string> | undefined;

  constructor(source: ForwardedTo, onListed: () => void) {
    this.#source = source;
    this.#onListed = onListed;
  }

  listBegins(): void {
    const isEmpty = this.#source.keys().next().done === true;
    this.#seen = isEmpty ? undefined : new Set();
  }

  upsert(object: KubernetesObject): void {
    this.#seen?.add(keyOf(object));
    this.#source.upsert(object as never);
  }

  remove(object: KubernetesObject): void {
    this.#source.remove(keyOf(object));
  }

  listEnds(): void {
    if (this.#seen) for (const key of [...this.#source.keys()]) if (!this.#seen.has(key)) this.#source.remove(key);
    this.#seen = undefined;
    this.#onListed();
  }
}
