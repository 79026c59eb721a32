// The objects of one kind in one home, as far as the bearer may see them: all, or those of the namespaces that were named.
// Says whether the copy is current, old, refused or not there at all.

import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { IndexFunctions } from '../../kube/controller/informer-store.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export interface KindOptions<T> {
  readonly type: ResourceType;
  /** The only one that is looked at. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly keep?: (object: T) => T | undefined;
  readonly indexes?: IndexFunctions<T>;
}

export interface CopyOptions<T> extends KindOptions<T> {
  readonly client: Client;
  readonly world: World;
  /** Looked at one by one if the bearer may not list all of them. */
  readonly namespaces: readonly string[];
  readonly onChange: (key: string, next: T | undefined, previous: T | undefined) => void;
  readonly onState: () => void;
}

export type CopyState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'live' }
  | { readonly kind: 'failing' | 'denied'; readonly why: string }
  | { readonly kind: 'signed out'; readonly why: string }
  | { readonly kind: 'unserved' };

export class KindCopy<T extends KubernetesObject> {
  readonly type: ResourceType;
  readonly #options: CopyOptions<T>;
  readonly #wide: Informer<T>;
  #narrow: ReadonlyMap<string, Informer<T>> = new Map();

  constructor(options: CopyOptions<T>) {
    this.type = options.type;
    this.#options = options;
    this.#wide = this.#watch(options.namespace);
  }

  get(key: string): T | undefined {
    for (const informer of this.#active()) {
      const found = informer.get(key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  values(): T[] {
    return this.#active().flatMap((informer) => [...informer.values()]);
  }

  byIndex(name: string, value: string): T[] {
    return this.#active().flatMap((informer) => informer.byIndex(name, value));
  }

  get size(): number {
    return this.#active().reduce((sum, { size }) => sum + size, 0);
  }

  state(): CopyState {
    const wide = stateOf(this.#wide);
    if (wide.kind !== 'denied' || this.#narrow.size === 0) return wide;
    const all = [...this.#narrow.values()].map(stateOf);
    if (all.every(({ kind }) => kind === 'denied')) return wide;
    const order: readonly CopyState['kind'][] = ['signed out', 'failing', 'loading', 'live'];
    return order.flatMap((kind) => all.find((one) => one.kind === kind) ?? [])[0] ?? wide;
  }

  /** Undefined is all of them. */
  namespaces(): readonly string[] | undefined {
    if (stateOf(this.#wide).kind !== 'denied') return undefined;
    return [...this.#narrow].filter(([, one]) => stateOf(one).kind !== 'denied').map(([namespace]) => namespace);
  }

  stop(): void {
    for (const informer of [this.#wide, ...this.#narrow.values()]) informer.stop();
  }

  /** In place of all objects, those of each namespace. Trying to list all goes on: a right may be granted. */
  #narrowDown(): void {
    const { type, namespaces, namespace } = this.#options;
    if (this.#narrow.size > 0 || !type.isNamespaced || namespace !== undefined) return;
    this.#narrow = new Map(namespaces.map((one) => [one, this.#watch(one)]));
  }

  #active(): Informer<T>[] {
    return stateOf(this.#wide).kind === 'denied' ? [...this.#narrow.values()] : [this.#wide];
  }

  #watch(namespace: string | undefined): Informer<T> {
    const { client, world, type, fieldSelector, keep, indexes, onChange, onState } = this.#options;
    const informer = createInformer<T, T>({ client, world, type, namespace, fieldSelector, keep, indexes });
    informer.on(onChange);
    informer.onStatus(() => {
      if (informer === this.#wide && stateOf(informer).kind === 'denied') this.#narrowDown();
      onState();
    });
    informer.start();
    return informer;
  }
}

function stateOf(informer: Informer<unknown>): CopyState {
  const { state, hasSynced } = informer.status();
  if (state.kind === 'unserved') return { kind: 'unserved' };
  if (state.kind === 'failing') {
    if (state.code === 404) return { kind: 'unserved' };
    if (state.code === 401) return { kind: 'signed out', why: state.error };
    return { kind: state.code === 403 ? 'denied' : 'failing', why: state.error };
  }
  return hasSynced ? { kind: 'live' } : { kind: 'loading' };
}
