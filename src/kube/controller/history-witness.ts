// Remembers what was last seen of a kind. A home that was put back to an older copy, and has written enough since, takes our
// revision for one of its own: only what happened at that revision tells the two histories apart.

import { isSameJson } from '../../base/json.ts';
import type { KubernetesObject } from '../objects/object.ts';

export interface Sight {
  readonly object: KubernetesObject;
  /** Whether what we saw of it was its deletion. */
  readonly isGone: boolean;
}

export class HistoryWitness {
  #last: Sight | undefined;

  listBegins(): void {
    this.#last = undefined;
  }

  /** In whatever order: the newest is kept. */
  listed(object: KubernetesObject): void {
    if (revisionOf(object) > revisionOf(this.#last?.object)) this.#last = { object, isGone: false };
  }

  happened(sight: Sight): void {
    this.#last = sight;
  }

  last(): Sight | undefined {
    return this.#last;
  }
}

export function isSameObject(one: KubernetesObject, other: KubernetesObject): boolean {
  return isSameJson(withoutKind(one), withoutKind(other));
}

// Some homes leave these two out of what they list.
function withoutKind({ apiVersion: _version, kind: _kind, ...rest }: KubernetesObject): object {
  return rest;
}

/** 0 for nothing. */
export function revisionOf(object: KubernetesObject | undefined): number {
  return Number(object?.metadata.resourceVersion ?? 0);
}
