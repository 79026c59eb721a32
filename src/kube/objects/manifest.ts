// An object together with the kind it is of, as an installer carries it: the same list is written to a home by a command
// and printed as a manifest for kubectl. Pure.

import { apiVersionOf, type KubernetesObject, type ObjectMeta, type ResourceType } from './object.ts';
import { managedByLabel, managerName } from './ours.ts';

export interface Manifest<T extends KubernetesObject = KubernetesObject> {
  readonly type: ResourceType;
  readonly object: T;
}

/** With the label that says whose it is. */
export function manifest<B extends object>(
  type: ResourceType,
  metadata: ObjectMeta,
  body: B,
): Manifest<KubernetesObject & B> {
  const labels = { ...metadata.labels, [managedByLabel]: managerName };
  const object = { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { ...metadata, labels }, ...body };
  return { type, object };
}
