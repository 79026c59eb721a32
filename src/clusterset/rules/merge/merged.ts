// The result of a merge: the service as all clusters see it, and the conflicts between their exports. Types only.

import type { IpFamily } from '../../../base/net/ip.ts';
import type { SessionAffinity } from '../../../kube/objects/service.ts';
import type { ImportType } from '../../kinds/service-import.ts';
import type { MergedPort } from './ports.ts';
import type { Shard } from './shard.ts';

/** In the order in which a condition's reason joins them. */
export const conflictReasons = [
  'PortConflict',
  'TypeConflict',
  'SessionAffinityConflict',
  'SessionAffinityConfigConflict',
  'LabelsConflict',
  'AnnotationsConflict',
  'InternalTrafficPolicyConflict',
  'TrafficDistributionConflict',
  'IPFamilyConflict',
] as const;

export type ConflictReason = (typeof conflictReasons)[number];

export interface Conflict {
  readonly reason: ConflictReason;
  readonly field: string;
  readonly winner: string;
  readonly value: string;
  readonly why: string;
  /** Oldest first. */
  readonly disagreeing: readonly { readonly cluster: string; readonly value: string }[];
  readonly exporterCount: number;
  readonly ifWinnerLeft: string;
}

export interface Merge {
  /** The oldest exporter: it decides about fields that cannot be combined. */
  readonly decider: Shard;
  readonly type: ImportType;
  /** Also those that the intersection leaves out. */
  readonly ports: readonly MergedPort[];
  readonly sessionAffinity: SessionAffinity;
  readonly affinityTimeoutSeconds: number | undefined;
  readonly internalTrafficPolicy: string | undefined;
  readonly trafficDistribution: string | undefined;
  readonly ipFamilies: readonly IpFamily[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Ids of the clusters that are part of the import, in the order of text. */
  readonly clusters: readonly string[];
  /** Ids of the clusters left out because their type is not the merged one. */
  readonly excluded: readonly string[];
  /** For each cluster that is part of it: its own port names -> merged names, of the ports it serves. */
  readonly portNames: ReadonlyMap<string, ReadonlyMap<string, string>>;
}
