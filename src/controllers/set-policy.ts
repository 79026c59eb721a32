// What the clusterset's ClusterSet object says, with everything it does not say filled in. Pure.

import { type IpRange, parseRange } from '../model/ip.ts';
import type { LeaseTimes } from '../model/lease-judge.ts';
import type { PortPolicy } from '../model/merge-ports.ts';
import type { IpFamily } from '../model/shard.ts';
import type { StalenessPolicy } from '../model/staleness.ts';
import type { EndpointMode } from './export/plan-slices.ts';
import type { ClusterSet } from './kinds.ts';

export interface SetPolicy {
  readonly ports: PortPolicy;
  readonly endpoints: EndpointMode;
  readonly clusterSetIps: 'allocate' | 'none';
  readonly staleness: StalenessPolicy;
  readonly lease: LeaseTimes & { readonly renewMs: number };
  /** Where clusterset IPs come from, one per family at most. */
  readonly ranges: ReadonlyMap<IpFamily, IpRange>;
  /** All ranges of ours: no endpoint may lie in one. */
  readonly virtualRanges: readonly IpRange[];
  /** How long a released address is kept for its owner. */
  readonly holdMs: number;
  readonly zone: string;
}

const rangesDefault = {
  clusterset: ['243.0.0.0/12', 'fd70:6f72:74f3::/64'],
  peers: ['241.0.0.0/12', 'fd70:6f72:74f1::/64'],
  external: ['242.0.0.0/8', 'fd70:6f72:74f2::/64'],
};

export function readSetPolicy(set: ClusterSet | undefined): SetPolicy {
  const spec = set?.spec ?? {};
  const leaseMs = durationMs(spec.lease?.expiry, 30_000);
  const renewMs = durationMs(spec.lease?.renewInterval, 10_000);
  const { clusterset, peers, external } = { ...rangesDefault, ...spec.addresses };
  return {
    ports: spec.ports ?? 'union',
    endpoints: spec.endpoints ?? 'Pods',
    clusterSetIps: spec.clusterSetIP ?? 'allocate',
    staleness: spec.onStale ?? 'Withdraw',
    lease: {
      renewMs,
      leaseMs,
      renewalGapMsMax: renewMs * 2,
      holdDownMs: durationMs(spec.lease?.holdDownMin, 30_000),
      holdDownMsMax: durationMs(spec.lease?.holdDownMax, 600_000),
      calmMs: leaseMs * 20,
    },
    ranges: new Map(parseRanges(clusterset).map((range) => [range.family, range])),
    virtualRanges: [clusterset, peers, external].flatMap((texts) => parseRanges(texts)),
    holdMs: durationMs(spec.addresses?.holdTime, 86_400_000),
    zone: spec.dns?.zone ?? 'clusterset.local',
  };
}

function parseRanges(texts: readonly string[] | undefined): IpRange[] {
  return (texts ?? []).map((text) => parseRange(text)).filter((range) => range !== undefined);
}

const unitsMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

function durationMs(text: string | undefined, otherwise: number): number {
  const parts = [...(text ?? '').matchAll(/(\d+)(ms|h|m|s)/g)];
  if (parts.length === 0) return otherwise;
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitsMs[unit!]!, 0);
}
