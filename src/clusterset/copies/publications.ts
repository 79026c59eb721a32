// How far publishing each export of this cluster has come. The export controller writes it, the controller of conditions
// reads it.

import { isSameJson } from '../../base/json.ts';
import type { Publication } from '../rules/export-conditions.ts';

export class Publications {
  readonly #byKey = new Map<string, Publication>();
  readonly #handlers = new Set<(key: string) => void>();

  /** Undefined if the export has not been looked at, or is gone. */
  get(key: string): Publication | undefined {
    return this.#byKey.get(key);
  }

  set(key: string, publication: Publication | undefined): void {
    if (isSameJson(this.#byKey.get(key), publication)) return;
    if (publication === undefined) this.#byKey.delete(key);
    else this.#byKey.set(key, publication);
    for (const handler of this.#handlers) handler(key);
  }

  /** Called with the key when its publication is another one than before. */
  onChange(handler: (key: string) => void): void {
    this.#handlers.add(handler);
  }
}
