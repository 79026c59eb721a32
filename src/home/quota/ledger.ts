// How many objects of each kind and how many bytes each namespace holds, kept up to date change by change.

import { resourceQuotaType } from '../../kube/objects/resource-quota.ts';
import { parseKey } from '../model/stored.ts';
import type { StoreEvent } from '../store/store.ts';

export class Usage {
  readonly #counts = new Map<string, number>();
  bytes = 0;

  /** `resource` is `pods` or `deployments.apps`. */
  count(resource: string): number {
    return this.#counts.get(resource) ?? 0;
  }

  add(resource: string, added: { readonly count: number; readonly bytes: number }): void {
    this.bytes += added.bytes;
    if (added.count === 0) return;
    const count = this.count(resource) + added.count;
    if (count === 0) this.#counts.delete(resource);
    else this.#counts.set(resource, count);
  }

  get isEmpty(): boolean {
    return this.#counts.size === 0 && this.bytes === 0;
  }
}

export class Ledger {
  readonly #byNamespace = new Map<string, Usage>();

  /** Undefined for a namespace that holds nothing. */
  usage(namespace: string): Usage | undefined {
    return this.#byNamespace.get(namespace);
  }

  add(namespace: string, resource: string, added: { readonly count: number; readonly bytes: number }): void {
    let usage = this.#byNamespace.get(namespace);
    if (usage === undefined) this.#byNamespace.set(namespace, (usage = new Usage()));
    usage.add(resource, added);
    if (usage.isEmpty) this.#byNamespace.delete(namespace);
  }

  /** The namespace that changed, if the key lies in one. */
  apply({ key, entry, previous }: StoreEvent): string | undefined {
    const place = parseKey(key);
    if (place === undefined || place.namespace === '') return undefined;
    const count = (entry === undefined ? 0 : 1) - (previous === undefined ? 0 : 1);
    this.add(place.namespace, resourceOf(place), { count, bytes: sizeOf(place, entry) - sizeOf(place, previous) });
    return place.namespace;
  }

  clear(): void {
    this.#byNamespace.clear();
  }
}

export function resourceOf({ group, plural }: { readonly group: string; readonly plural: string }): string {
  return group === '' ? plural : `${plural}.${group}`;
}

// A quota says how much there is; if it counted itself, saying so would change what it says.
function sizeOf(place: { readonly group: string; readonly plural: string }, entry: StoreEvent['entry']): number {
  const isQuota = place.plural === resourceQuotaType.plural && place.group === '';
  return entry === undefined || isQuota ? 0 : entry.latin1.length;
}
