// The shape of every object, and the names by which kinds are found.

export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: object[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** An unchecked object. */
export interface AnyObject extends KubernetesObject {
  [field: string]: unknown;
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

/** Names a kind on the wire: `group` is empty for the core group, `plural` is the path segment. */
export interface ResourceType {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** Top-level lists that a home may leave out or say null for where they are empty; clients give them as empty lists. */
  readonly lists?: readonly string[];
  /** Written every few seconds by its owner, and by nobody else. */
  readonly isRenewed?: true;
}

export function apiVersionOf(type: { readonly group: string; readonly version: string }): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/');
  if (slash < 0) return { group: '', version: apiVersion };
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** `namespace/name`, or the bare name of a cluster-scoped object. Joined into one text: many are kept as keys, and a
 *  template would leave each a pair of texts. */
export function keyOf(object: { readonly metadata: { readonly name: string; readonly namespace?: string } }): string {
  const { name, namespace } = object.metadata;
  return namespace === undefined ? name : [namespace, name].join('/');
}
