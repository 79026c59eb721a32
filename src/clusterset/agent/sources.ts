// Where the keys of an agent's controllers come from: an object's own key, or the key of the service it belongs to.

import type { ControllerSource } from '../../kube/controller/loop.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { formatServiceKey, parseRecordName } from '../rules/names.ts';

// biome-ignore lint/suspicious/noExplicitAny: each source has its own kept type, which only its keysOf sees
export type Source = ControllerSource<any>;

export function own<T>(informer: ControllerSource<T>['informer']): Source {
  return { informer };
}

/** The keys an object belonged to and belongs to. */
export function keyed<T>(informer: ControllerSource<T>['informer'], keyOf: (object: T) => string | undefined): Source {
  const keysOf = (_key: string, next: T | undefined, previous: T | undefined) => {
    const keys = [next && keyOf(next), previous && keyOf(previous)];
    return new Set(keys.filter((key) => key !== undefined));
  };
  return { informer, keysOf };
}

/** Names no keys; its controllers begin when the promise resolves. */
export function gateOf(ready: Promise<void>): Source {
  return { informer: { on: () => () => {}, whenSynced: () => ready } };
}

/** Keys of the services that records of the broker are named after. */
export function recordKeys(records: { values(): Iterable<KubernetesObject> }): string[] {
  return Array.from(records.values(), recordKey).filter((key) => key !== undefined);
}

/** Key of the service that a record of the broker is named after. */
export function recordKey(record: KubernetesObject): string | undefined {
  const service = parseRecordName(record.metadata.name);
  return service && formatServiceKey(service);
}
