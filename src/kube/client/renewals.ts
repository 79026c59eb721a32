// The Leases and Heartbeats that a client writes every few seconds. A renewal that names the revision of the one before, and is
// taken, shows that the home still had that one: as long as the chain holds, the home was not put back to an older copy.

import { isSameJson } from '../../base/json.ts';
import { type KubernetesObject, keyOf, type ResourceType } from '../objects/object.ts';

export interface Renewal {
  readonly type: ResourceType;
  /** As the home answered. */
  readonly object: KubernetesObject;
  /** The same for every renewal since one that did not follow from its predecessor. */
  readonly chain: object;
}

export class Renewals {
  readonly #byKey = new Map<string, Renewal>();
  #newest: Renewal | undefined;

  /** `sent` may be a patch. */
  written(type: ResourceType, sent: Partial<KubernetesObject>, object: KubernetesObject): void {
    const key = keyIn(type, object);
    const before = this.#byKey.get(key);
    const isNext = before !== undefined && sent.metadata?.resourceVersion === before.object.metadata.resourceVersion;
    this.#newest = { type, object, chain: isNext ? before.chain : {} };
    this.#byKey.set(key, this.#newest);
  }

  /** After a restore one that got no answer may have been given the revision of the last one that did. */
  read(type: ResourceType, object: KubernetesObject): void {
    const key = keyIn(type, object);
    const known = this.#byKey.get(key)?.object;
    if (known?.metadata.resourceVersion === object.metadata.resourceVersion && !isSameJson(known, object))
      this.#byKey.delete(key);
  }

  deleted(type: ResourceType, ref: KubernetesObject['metadata']): void {
    this.#byKey.delete(keyIn(type, { metadata: ref }));
  }

  newest(): Renewal | undefined {
    return this.#newest;
  }

  /** The newest of the same object; undefined if the chain has broken since. */
  successor({ type, object, chain }: Renewal): Renewal | undefined {
    const present = this.#byKey.get(keyIn(type, object));
    return present?.chain === chain ? present : undefined;
  }
}

function keyIn({ group, plural }: ResourceType, object: { readonly metadata: KubernetesObject['metadata'] }): string {
  return `${group}/${plural}/${keyOf(object)}`;
}
