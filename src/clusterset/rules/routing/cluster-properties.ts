// ClusterProperties that a member reports at the broker, and how others read them. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import { type ClusterProperty, clusterIdProperty, clusterSetProperty } from '../../kinds/cluster-property.ts';

/** The definition of Cluster has the same bounds. */
const propertiesMax = 32;
const charactersMax = 253;

/** The first by name; long values stay at home. Its id and its set are known otherwise, and are nobody's to claim. */
export function reportedProperties(properties: Iterable<ClusterProperty>): Record<string, string> {
  const values = Array.from(properties, ({ metadata: { name }, spec }) => [name, spec?.value] as const)
    .filter((entry): entry is readonly [string, string] => isReportable(...entry))
    .sort(([one], [other]) => compareText(one, other));
  return Object.fromEntries(values.slice(0, propertiesMax));
}

function isReportable(name: string, value: unknown): boolean {
  const isIdentity = name === clusterIdProperty || name === clusterSetProperty;
  return !isIdentity && typeof value === 'string' && value.length <= charactersMax && name.length <= charactersMax;
}

export function readProperties(cluster: Cluster | undefined): Record<string, string> {
  const reported = Object.entries(cluster?.status?.properties ?? {});
  return Object.fromEntries(reported.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
