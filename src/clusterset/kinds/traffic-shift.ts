// TrafficShift: moves the connections of one import from one cluster to another in steps, and back when more of them fail than
// before. In the home of the importing cluster, in the namespace of the import. Pure.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { ConnectionCounts } from '../../kube/objects/reports/connections.ts';

export const trafficShiftType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'trafficshifts',
  kind: 'TrafficShift',
  isNamespaced: true,
};

export interface TrafficShift extends KubernetesObject {
  spec?: TrafficShiftSpec;
  status?: TrafficShiftStatus;
}

export interface TrafficShiftSpec {
  /** Name of the import, in the same namespace. */
  service: string;
  /** Ids of clusters. */
  from: string;
  to: string;
  /** Percent of what `from` would serve, rising. */
  steps: number[];
  /** How long each step is held: `90s`, `5m`, `1h`. */
  every: string;
  /** By how many points of a hundred the part of failed connections may rise. */
  maxWorse?: number;
  /** A step with fewer connections to `to` is not judged: it is held. */
  minConnections?: number;
  /** Holds its step. */
  paused?: boolean;
  /** Goes back and ends. */
  abort?: boolean;
}

/** `Refused` has moved nothing and is looked at again; the last three have ended. */
export type ShiftPhase = 'Refused' | 'Measuring' | 'Shifting' | 'Completed' | 'RolledBack' | 'Aborted';

export interface TrafficShiftStatus {
  phase?: ShiftPhase;
  /** Number of the step, from 1; 0 while it measures what fails before. */
  step?: number;
  percent?: number;
  /** How long this step was observed. */
  heldSeconds?: number;
  /** To all clusters, before the first step. */
  before?: ConnectionCounts;
  /** In this step: to the new cluster, and to all. */
  seenTo?: ConnectionCounts;
  seenAll?: ConnectionCounts;
  message?: string;
  observedGeneration?: number;
  conditions?: Condition[];
}
