// Where the members of the clusterset are and how far traffic may go, as a member's home has it: in the ConfigMap that the
// agent keeps for resolvers and node proxies, which see no broker. Pure.

import type { ConfigMap } from '../../kube/objects/config-map.ts';
import type { Cluster } from '../kinds/cluster.ts';
import { clusterSetDefaults, type LocalityPreference } from '../kinds/cluster-set.ts';

export interface ClusterLocation {
  readonly zone?: string;
  readonly region?: string;
}

export interface SetLocality {
  readonly preference: LocalityPreference;
  /** By cluster id. A cluster that is not here is anywhere. */
  readonly clusters: ReadonlyMap<string, ClusterLocation>;
}

export const unknownLocality: SetLocality = { preference: clusterSetDefaults.locality, clusters: new Map() };

/** A ConfigMap holds a megabyte: more members than any set has. */
const clustersMax = 5000;

export function localityOf(preference: LocalityPreference, members: readonly Cluster[]): SetLocality {
  const clusters = new Map<string, ClusterLocation>();
  for (const { metadata, spec } of [...members].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)))
    if (clusters.size < clustersMax && (spec.zone || spec.region)) clusters.set(metadata.name, locationOf(spec));
  return { preference, clusters };
}

export function localityData({ preference, clusters }: SetLocality): Record<string, string> {
  return { locality: preference, places: JSON.stringify(Object.fromEntries(clusters)) };
}

/** Missing and invalid values count as unset. */
export function readLocality({ data }: Pick<ConfigMap, 'data'>): SetLocality {
  const preference = data?.['locality'] === 'NearestFirst' ? 'NearestFirst' : clusterSetDefaults.locality;
  const clusters = new Map<string, ClusterLocation>();
  for (const [id, value] of Object.entries(parsePlaces(data?.['places']))) {
    if (typeof value === 'object' && value !== null) clusters.set(id, locationOf(value));
  }
  return { preference, clusters };
}

function locationOf({ zone, region }: { readonly zone?: unknown; readonly region?: unknown }): ClusterLocation {
  return {
    ...(typeof zone === 'string' && zone !== '' ? { zone } : {}),
    ...(typeof region === 'string' && region !== '' ? { region } : {}),
  };
}

function parsePlaces(text: string | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
