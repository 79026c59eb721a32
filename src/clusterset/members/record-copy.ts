// Copies of one kind of record of one member. A copy is an informer of the member's namespace, or the part of an informer
// of all namespaces that lies in it; readers see no difference.

import type { Informer } from '../../kube/controller/informer.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';

export type RecordCopy<T> = Pick<
  Informer<T>,
  'get' | 'isLost' | 'values' | 'size' | 'byIndex' | 'countByIndex' | 'hasSynced' | 'whenSynced' | 'on' | 'onReturn'
> &
  Pick<Informer<T>, 'start' | 'stop' | 'relist'>;

type Handler<T> = Parameters<Informer<T>['on']>[0];

/** A copy that is open only while somebody needs it. Closed, it holds nothing and counts as complete. */
export class OptionalCopy<T extends KubernetesObject> implements RecordCopy<T> {
  readonly #open: () => Informer<T>;
  readonly #handlers = new Set<Handler<T>>();
  readonly #returnHandlers = new Set<() => void>();
  #informer: Informer<T> | undefined;
  #isStarted = false;
  #isNeeded = false;

  constructor(open: () => Informer<T>) {
    this.#open = open;
  }

  get isOpen(): boolean {
    return this.#informer !== undefined;
  }

  /**
   * Opens or closes the copy. The contents of a closed copy are not reported as deleted: they were no longer needed.
   */
  need(isNeeded: boolean): void {
    this.#isNeeded = isNeeded;
    if (!isNeeded) {
      this.#informer?.stop();
      this.#informer = undefined;
    } else if (this.#isStarted && this.#informer === undefined) {
      const informer = this.#open();
      this.#informer = informer;
      for (const handler of this.#handlers) informer.on(handler);
      for (const handler of this.#returnHandlers) informer.onReturn(handler);
      informer.start();
    }
  }

  start(): void {
    this.#isStarted = true;
    this.need(this.#isNeeded);
  }

  stop(): void {
    this.#isStarted = false;
    this.#informer?.stop();
  }

  relist(): void {
    this.#informer?.relist();
  }

  get(key: string): T | undefined {
    return this.#informer?.get(key);
  }

  isLost(key: string): boolean {
    return this.#informer?.isLost(key) ?? false;
  }

  values(): Iterable<T> {
    return this.#informer?.values() ?? [];
  }

  get size(): number {
    return this.#informer?.size ?? 0;
  }

  byIndex(name: string, value: string): T[] {
    return this.#informer?.byIndex(name, value) ?? [];
  }

  countByIndex(name: string, value: string): number {
    return this.#informer?.countByIndex(name, value) ?? 0;
  }

  get hasSynced(): boolean {
    return this.#informer?.hasSynced ?? true;
  }

  async whenSynced(): Promise<void> {
    await this.#informer?.whenSynced();
  }

  on(handler: Handler<T>): () => void {
    this.#handlers.add(handler);
    this.#informer?.on(handler);
    return () => this.#handlers.delete(handler);
  }

  onReturn(handler: () => void): () => void {
    this.#returnHandlers.add(handler);
    this.#informer?.onReturn(handler);
    return () => this.#returnHandlers.delete(handler);
  }
}
