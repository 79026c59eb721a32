// One informer over all namespaces of the broker, cut into a part for each member. An event costs the same however many
// members there are: it goes to the part of its namespace and to no other. Records of namespaces that are no member's lie
// in no part.

import { createInformer, type Informer, type InformerOptions } from '../../kube/controller/informer.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import type { RecordCopy } from './record-copy.ts';

type Handler<T> = Parameters<Informer<T>['on']>[0];

interface PartHandlers<T> {
  readonly events: Set<Handler<T>>;
  readonly returns: Set<() => void>;
}

const byNamespace = 'the namespace of the record';
const byName = 'the name of the record';

export class SharedCopy<T extends KubernetesObject> {
  readonly #options: InformerOptions<T, T>;
  readonly #parts = new Map<string, PartHandlers<T>>();
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
    informer.on((key, next, previous) => {
      const part = this.#parts.get((next ?? previous)!.metadata.namespace ?? '');
      for (const handler of part?.events ?? []) handler(key, next, previous);
    });
    informer.onReturn(() => {
      for (const { returns } of this.#parts.values()) for (const handler of returns) handler();
    });
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

  /** The records of that name in all namespaces, those of no member included. */
  named(name: string): readonly T[] {
    return this.#informer?.byIndex(byName, name) ?? [];
  }

  /** The records of one namespace. They follow this copy when it is opened, relisted and closed. */
  part(namespace: string): RecordCopy<T> {
    const own: PartHandlers<T> = { events: new Set(), returns: new Set() };
    const handlers = this.#parts.get(namespace) ?? { events: new Set(), returns: new Set() };
    this.#parts.set(namespace, handlers);
    const informer = () => this.#informer;
    const values = () => this.#informer?.byIndex(byNamespace, namespace) ?? [];
    return {
      get: (key) => informer()?.get(key),
      isLost: (key) => informer()?.isLost(key) ?? false,
      values,
      get size() {
        return informer()?.countByIndex(byNamespace, namespace) ?? 0;
      },
      byIndex: (name, value) => informer()?.byIndex(name, `${namespace}/${value}`) ?? [],
      countByIndex: (name, value) => informer()?.countByIndex(name, `${namespace}/${value}`) ?? 0,
      get hasSynced() {
        return informer()?.hasSynced ?? false;
      },
      whenSynced: (signal) => this.whenSynced(signal),
      on: (handler) => {
        for (const record of values()) handler(`${namespace}/${record.metadata.name}`, record, undefined);
        own.events.add(handler);
        handlers.events.add(handler);
        return () => void handlers.events.delete(handler);
      },
      onReturn: (handler) => {
        own.returns.add(handler);
        handlers.returns.add(handler);
        return () => void handlers.returns.delete(handler);
      },
      start: () => {},
      stop: () => {
        for (const handler of own.events) handlers.events.delete(handler);
        for (const handler of own.returns) handlers.returns.delete(handler);
      },
      // All parts are listed together.
      relist: () => {},
    };
  }
}

function inNamespace({ metadata }: KubernetesObject, value: string): string {
  return `${metadata.namespace ?? ''}/${value}`;
}
