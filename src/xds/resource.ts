// One xDS resource before it is encoded. Generators make these as plain values; encoding, versions and sending are left
// to others.

import type { JsonObject } from '../base/json.ts';
import type { WorkloadSelector } from '../external/kinds/mesh-external-service.ts';

export const xdsTypes = ['cluster', 'endpoints', 'listener', 'route', 'virtual-host', 'secret'] as const;

export type XdsType = (typeof xdsTypes)[number];

/** Variant of the protocol: `sotw` sends the state of the world, `delta` sends changes. */
export type Variant = 'sotw' | 'delta';

/** The object that made a resource necessary. A proxy's refusal becomes a condition on it. */
export interface Cause {
  /** The API server that holds the object. */
  readonly at: 'home' | 'broker';
  readonly kind: string;
  /** Empty for a kind without namespaces. */
  readonly namespace: string;
  readonly name: string;
}

export interface XdsResource {
  readonly type: XdsType;
  /** Unique among the resources of its type. */
  readonly name: string;
  /** In Envoy's proto3 JSON: field names as in the .proto files, enums by name, durations as `1.5s`, bytes in base64. */
  readonly body: JsonObject;
  readonly causes: readonly Cause[];
  /** Left out of wildcard subscriptions: an Envoy takes at most one `api_listener`. */
  readonly isByNameOnly?: true;
  /** For proxies of nodes that run one of these workloads alone. */
  readonly usedBy?: readonly WorkloadSelector[];
}

/** The one order of resources: by type, then by name in code units. */
export function compareResources(one: XdsResource, other: XdsResource): number {
  const byType = xdsTypes.indexOf(one.type) - xdsTypes.indexOf(other.type);
  if (byType !== 0 || one.name === other.name) return byType;
  return one.name < other.name ? -1 : 1;
}
