// What one cluster says of one service it exports, as merging reads it. How it lies at the broker is the business of
// service-shard.ts; what an older agent left there is read into the same shape.

import type { IpFamily } from '../../../base/ip.ts';
import type { Protocol, SessionAffinity } from '../../../kube/objects/service.ts';
import type { ImportType } from '../../kinds/service-import.ts';
import type { Ranked } from './precedence.ts';

export interface ShardPort {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly appProtocol?: string;
}

export interface Shard extends Ranked {
  readonly type: ImportType;
  readonly ports: readonly ShardPort[];
  readonly sessionAffinity: SessionAffinity;
  /** Only with ClientIP. */
  readonly affinityTimeoutSeconds?: number;
  readonly internalTrafficPolicy?: string;
  readonly trafficDistribution?: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** As Kubernetes defaults it. */
const affinityTimeoutSecondsDefault = 10_800;

export function affinityTimeoutSeconds(shard: Shard): number | undefined {
  if (shard.sessionAffinity === 'None') return undefined;
  return shard.affinityTimeoutSeconds ?? affinityTimeoutSecondsDefault;
}
