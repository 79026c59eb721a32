// The opened records of one member: found as those of a RecordPart are, and laid over its plain ones.

import type { KubernetesObject } from '../../kube/objects/object.ts';
import type { RecordPart } from './shared-copy.ts';

export class OpenedPart<T extends KubernetesObject> {
  readonly #indexOf: (record: T) => string | undefined;
  readonly #byName = new Map<string, T>();
  readonly #byIndex = new Map<string, Set<T>>();

  constructor(indexOf: (record: T) => string | undefined) {
    this.#indexOf = indexOf;
  }

  get(name: string): T | undefined {
    return this.#byName.get(name);
  }

  get size(): number {
    return this.#byName.size;
  }

  values(): T[] {
    return [...this.#byName.values()];
  }

  byIndex(value: string): T[] {
    return [...(this.#byIndex.get(value) ?? [])];
  }

  set(record: T): void {
    const before = this.#byName.get(record.metadata.name);
    if (before !== undefined) this.delete(before);
    this.#byName.set(record.metadata.name, record);
    const value = this.#indexOf(record);
    if (value === undefined) return;
    const found = this.#byIndex.get(value) ?? new Set();
    this.#byIndex.set(value, found.add(record));
  }

  /** Nothing if another one has its name by now. */
  delete(record: T): void {
    if (this.#byName.get(record.metadata.name) !== record) return;
    this.#byName.delete(record.metadata.name);
    const value = this.#indexOf(record) ?? '';
    const found = this.#byIndex.get(value);
    found?.delete(record);
    if (found?.size === 0) this.#byIndex.delete(value);
  }
}

/** An opened record goes before a plain one of its name. */
export function layered<T extends KubernetesObject>(
  plain: RecordPart<T>,
  openedPart: () => OpenedPart<T> | undefined,
): RecordPart<T> {
  const over = (records: readonly T[], opened: OpenedPart<T>, found: readonly T[]) => [
    ...records.filter(({ metadata }) => opened.get(metadata.name) === undefined),
    ...found,
  ];
  return {
    get: (name) => openedPart()?.get(name) ?? plain.get(name),
    isLost: (name) => openedPart()?.get(name) === undefined && plain.isLost(name),
    values: () => {
      const opened = openedPart();
      return opened?.size ? over(plain.values(), opened, opened.values()) : plain.values();
    },
    get size() {
      const opened = openedPart();
      return opened?.size ? this.values().length : plain.size;
    },
    byIndex: (index, value) => {
      const opened = openedPart();
      const records = plain.byIndex(index, value);
      return opened?.size ? over(records, opened, opened.byIndex(value)) : records;
    },
  };
}
