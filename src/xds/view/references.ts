// Which other resources a resource names: a listener its routes and clusters, a cluster its endpoints and secrets. A
// resource that a proxy still refers to must not be removed from it.

import { isObject } from '../../base/json.ts';
import type { XdsResource, XdsType } from '../resource.ts';

export type Reference = `${XdsType}:${string}`;

export function referencesOf({
  type,
  name,
  body,
}: Pick<XdsResource, 'type' | 'name' | 'body'>): ReadonlySet<Reference> {
  const found = new Set<Reference>();
  if (type === 'cluster' && body['type'] === 'EDS') found.add(`endpoints:${endpointsNameOf(name, body)}`);
  collect(body, found);
  return found;
}

function endpointsNameOf(name: string, body: Readonly<Record<string, unknown>>): string {
  const eds = body['eds_cluster_config'];
  const given = isObject(eds) ? eds['service_name'] : undefined;
  return typeof given === 'string' && given !== '' ? given : name;
}

function collect(value: unknown, found: Set<Reference>): void {
  if (Array.isArray(value)) {
    for (const item of value) collect(item, found);
    return;
  }
  if (!isObject(value)) return;
  if (typeof value['cluster'] === 'string') found.add(`cluster:${value['cluster']}`);
  if (typeof value['route_config_name'] === 'string') found.add(`route:${value['route_config_name']}`);
  if (value['sds_config'] !== undefined && typeof value['name'] === 'string') found.add(`secret:${value['name']}`);
  const weighted = value['weighted_clusters'];
  if (isObject(weighted) && Array.isArray(weighted['clusters'])) {
    for (const choice of weighted['clusters']) {
      if (isObject(choice) && typeof choice['name'] === 'string') found.add(`cluster:${choice['name']}`);
    }
  }
  for (const key of Object.keys(value)) collect(value[key], found);
}
