// One informer over all namespaces of the broker, read by namespace. An event costs the same however many members there
// are.

import { createInformer, type Informer, type InformerOptions } from '../../kube/controller/informer.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';

type Handler<T> = Parameters<Informer<T>['on']>[0];

/** The records of one namespace. They follow their copy when it is opened, relisted and closed. */
export interface RecordPart<T> {
  get(name: string): T | undefined;
  /** Whether a restored broker does not have it: see `Informer.isLost`. */
  isLost(name: string): boolean;
  values(): readonly T[];
  readonly size: number;
  byIndex(index: string, value: string): readonly T[];
}

const byNamespace = 'the namespace of the record';
const byName = 'the name of the record';

export class SharedCopy<T extends KubernetesObject> {
  readonly #options: InformerOptions<T, T>;
  readonly #handlers = new Set<Handler<T>>();
  readonly #returnHandlers = new Set<() => void>();
  #informer: Informer<T> | undefined;

  constructor(options: InformerOptions<T, T>) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#informer !== undefined;
  }

  get hasSynced(): boolean {
    return this.#informer?.hasSynced ?? false;
  }

  /** Resolves at once while it is closed. */
  async whenSynced(signal?: AbortSignal): Promise<void> {
    await this.#informer?.whenSynced(signal);
  }

  /** Why it cannot be read; undefined while nothing is known to be wrong. */
  get problem(): string | undefined {
    const state = this.#informer?.status().state;
    return state?.kind === 'failing' ? state.error : undefined;
  }

  /** Lists and watches from now on; nothing if it does already. */
  open(): void {
    if (this.#informer !== undefined) return;
    const { indexes = {} } = this.#options;
    const informer = createInformer<T>({
      ...this.#options,
      indexes: {
        ...Object.fromEntries(
          Object.entries(indexes).map(([name, of]) => [
            name,
            (record: T, key: string) => Array.from(of(record, key), (value) => inNamespace(record, value)),
          ]),
        ),
        [byNamespace]: (record) => [record.metadata.namespace ?? ''],
        [byName]: (record) => [record.metadata.name],
      },
    });
    this.#informer = informer;
    for (const handler of this.#handlers) informer.on(handler);
    for (const handler of this.#returnHandlers) informer.onReturn(handler);
    informer.start();
  }

  /** Forgets everything; its parts hold nothing until it is opened again. */
  close(): void {
    this.#informer?.stop();
    this.#informer = undefined;
  }

  relist(): void {
    this.#informer?.relist();
  }

  /** Called for the records of all namespaces, each time that it is open. Before the first `open`. */
  on(handler: Handler<T>): void {
    this.#handlers.add(handler);
  }

  /** Called when the records can be read again after a failure. Before the first `open`. */
  onReturn(handler: () => void): void {
    this.#returnHandlers.add(handler);
  }

  /** The records of that name in all namespaces, those of no member included. */
  named(name: string): readonly T[] {
    return this.#informer?.byIndex(byName, name) ?? [];
  }

  part(namespace: string): RecordPart<T> {
    const informer = () => this.#informer;
    return {
      get: (name) => informer()?.get(`${namespace}/${name}`),
      isLost: (name) => informer()?.isLost(`${namespace}/${name}`) ?? false,
      values: () => informer()?.byIndex(byNamespace, namespace) ?? [],
      get size() {
        return informer()?.countByIndex(byNamespace, namespace) ?? 0;
      },
      byIndex: (index, value) => informer()?.byIndex(index, `${namespace}/${value}`) ?? [],
    };
  }
}

function inNamespace({ metadata }: KubernetesObject, value: string): string {
  return `${metadata.namespace ?? ''}/${value}`;
}
