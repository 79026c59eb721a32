// The ClusterProfile of a member: what its Cluster says, and whether its agent lives. A profile belongs to the cluster manager
// that it names; one that names another is not ours to write or delete. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { WantedCondition } from '../../../kube/objects/conditions.ts';
import type { Lease } from '../../../kube/objects/lease.ts';
import { apiVersionOf } from '../../../kube/objects/object.ts';
import { managedByLabel, managerName } from '../../../kube/objects/ours.ts';
import { type AccessProvider, type Cluster, clusterType } from '../../kinds/cluster.ts';
import {
  type ClusterProfile,
  type ClusterProfileStatus,
  clusterManagerLabel,
  clusterProfileType,
  type ProfileProperty,
} from '../../kinds/cluster-profile.ts';
import { homeAwayOf } from '../leases/home-away.ts';
import type { LeaseVerdict } from '../leases/lease-monitor.ts';
import { readProperties } from '../routing/cluster-properties.ts';

/** Each clusterset is a cluster manager of its own. */
function clusterManagerOf(clusterset: string): string {
  return `${managerName}-${clusterset}`;
}

export function isProfileOf(profile: ClusterProfile, clusterset: string): boolean {
  return profile.spec?.clusterManager?.name === clusterManagerOf(clusterset);
}

export interface KnownLife {
  readonly verdict: LeaseVerdict;
  /** Its heartbeat; undefined if it never had one. */
  readonly heartbeat: Lease | undefined;
}

/** Without status. Goes with the Cluster, also where nobody keeps profiles any more. */
export function plannedProfile(clusterset: string, { metadata, spec }: Cluster): ClusterProfile {
  const manager = clusterManagerOf(clusterset);
  return {
    apiVersion: apiVersionOf(clusterProfileType),
    kind: clusterProfileType.kind,
    metadata: {
      name: metadata.name,
      namespace: clusterset,
      labels: { [managedByLabel]: managerName, [clusterManagerLabel]: manager },
      ownerReferences: [
        { apiVersion: apiVersionOf(clusterType), kind: clusterType.kind, name: metadata.name, uid: metadata.uid ?? '' },
      ],
    },
    spec: { displayName: spec.displayName ?? metadata.name, clusterManager: { name: manager } },
  };
}

/** Without conditions. */
export function plannedProfileStatus(cluster: Cluster): Omit<ClusterProfileStatus, 'conditions'> {
  const { spec, status } = cluster;
  const { kubernetesVersion } = status ?? {};
  return {
    ...(kubernetesVersion ? { version: { kubernetes: kubernetesVersion } } : {}),
    properties: propertiesOf(cluster),
    accessProviders: (spec.accessProviders ?? []).map(withoutSecrets),
  };
}

/** The admin's word goes before a ClusterProperty of the same name. */
function propertiesOf(cluster: Cluster): ProfileProperty[] {
  const { region, zone, network } = cluster.spec;
  const places = { region, zone, network };
  const values = new Map(Object.entries(readProperties(cluster)));
  for (const [name, value] of Object.entries(places)) if (value) values.set(`portolan.dev/${name}`, value);
  return Array.from(values, ([name, value]) => ({ name, value }))
    .filter(({ name, value }) => name !== '' && value !== '')
    .sort((one, other) => compareText(one.name, other.name));
}

const clusterFields = ['server', 'certificate-authority-data', 'tls-server-name', 'proxy-url'] as const;

function withoutSecrets({ name, cluster }: AccessProvider): AccessProvider {
  const named = clusterFields.flatMap((field) => (cluster[field] === undefined ? [] : [[field, cluster[field]]]));
  return { name, cluster: Object.fromEntries(named) as AccessProvider['cluster'] };
}

/** What the broker shows of it: nobody asks the API server of another cluster. */
export function profileConditions({ verdict, heartbeat }: KnownLife): WantedCondition[] {
  const healthy = (status: WantedCondition['status'], reason: string, message: string) => [
    {
      type: 'Joined',
      status: 'True' as const,
      reason: 'Joined',
      message: 'its agent has renewed its lease at the broker',
    },
    { type: 'ControlPlaneHealthy', status, reason, message },
  ];
  if (heartbeat === undefined) {
    const message = 'its agent has never renewed a lease at the broker';
    return [
      { type: 'Joined', status: 'False', reason: 'NotJoined', message },
      { type: 'ControlPlaneHealthy', status: 'Unknown', reason: 'NotJoined', message },
    ];
  }
  const away = homeAwayOf(heartbeat);
  if (verdict === 'stale' && away === undefined)
    return healthy('Unknown', 'LeaseExpired', 'its agent does not renew its lease at the broker');
  if (away !== undefined)
    return healthy(
      'False',
      'NoAnswer',
      `by its last heartbeat the API server does not answer its agent since ${away.since}`,
    );
  return healthy('True', 'Answers', 'the API server answers the agent of this cluster');
}
