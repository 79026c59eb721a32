// Remembers what was last seen of a kind, so that a home that comes back can be asked whether it still knows it. A home
// that was put back to an older copy, and has written enough since, takes our revision for one of its own: only what
// happened at that revision tells the two histories apart.

import { isSameJson } from '../../base/json.ts';
import type { KubernetesObject } from '../objects/object.ts';
import { keyOf } from '../objects/object.ts';

export interface Sight {
  readonly object: KubernetesObject;
  /** Whether what we saw of it was its deletion. */
  readonly isGone: boolean;
}

const sightsMax = 4;

export class HistoryWitness {
  /** One for each key, the newest last. */
  readonly #sights = new Map<string, Sight>();
  /** Whether something was seen that is not among them. */
  #hasForgotten = false;

  listBegins(): void {
    this.#sights.clear();
    this.#hasForgotten = false;
  }

  /** In whatever order: the newest is kept. */
  listed(object: KubernetesObject): void {
    const [known] = this.#sights.values();
    if (known !== undefined) this.#hasForgotten = true;
    if (known !== undefined && !isNewer(object, known.object)) return;
    this.#sights.clear();
    this.#sights.set(keyOf(object), { object, isGone: false });
  }

  /** Several at once, of which only the newest is at hand. */
  listedMany(newest: KubernetesObject, count: number): void {
    this.listed(newest);
    if (count > 1) this.#hasForgotten = true;
  }

  happened(sight: Sight): void {
    const key = keyOf(sight.object);
    this.#sights.delete(key);
    this.#sights.set(key, sight);
    if (this.#sights.size <= sightsMax) return;
    this.#hasForgotten = true;
    this.#sights.delete(this.#sights.keys().next().value!);
  }

  last(): Sight | undefined {
    return [...this.#sights.values()].at(-1);
  }

  /** Observations that still hold if the history is the same, the newest first; undefined if there are none. */
  sights(): Sight[] | undefined {
    const wanted: Sight[] = [];
    for (const sight of [...this.#sights.values()].reverse()) {
      wanted.push(sight);
      // Where this one is as it was written, everything written before it is too.
      if (!sight.isGone) return wanted;
    }
    return this.#hasForgotten ? undefined : wanted;
  }
}

/** Whether the home's present answer is what we saw. */
export function isAsSeen(sight: Sight, found: KubernetesObject | undefined): boolean {
  if (sight.isGone || found === undefined) return sight.isGone && found === undefined;
  return isSameObject(found, sight.object);
}

export function isSameObject(one: KubernetesObject, other: KubernetesObject): boolean {
  return isSameJson(withoutKind(one), withoutKind(other));
}

// Some homes leave these two out of what they list.
function withoutKind({ apiVersion: _version, kind: _kind, ...rest }: KubernetesObject): object {
  return rest;
}

function isNewer(one: KubernetesObject, other: KubernetesObject): boolean {
  return Number(one.metadata.resourceVersion) > Number(other.metadata.resourceVersion);
}
