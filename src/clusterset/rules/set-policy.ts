// The settings of a ClusterSet object, with defaults. Pure.

import { type IpFamily, type IpRange, parseRange } from '../../base/net/ip.ts';
import {
  type AccessMode,
  addressRangesOf,
  type ClusterSet,
  type ClusterSetIpPolicy,
  type ClusterSetSpec,
  clusterSetDefaults,
  type LocalityPreference,
  type PortPolicy,
  type StalenessPolicy,
} from '../kinds/cluster-set.ts';
import type { ChoiceSpec } from '../kinds/service-import-policy.ts';
import { parseAccessMode } from './access/mode.ts';
import type { AddressPlan } from './address-plan.ts';
import { type DnsOptions, dnsOptionsOf } from './clusterset-dns.ts';
import { renewalGapMs } from './leases/heartbeat-rate.ts';
import type { LeaseTimes } from './leases/lease-monitor.ts';
import type { EndpointMode } from './plan-export-slices.ts';

export interface SetPolicy {
  readonly ports: PortPolicy;
  readonly endpoints: EndpointMode;
  readonly clusterSetIps: ClusterSetIpPolicy;
  readonly staleness: StalenessPolicy;
  readonly locality: LocalityPreference;
  readonly access: AccessMode;
  readonly sealing: { readonly isAllowed: boolean; readonly rotateSeconds: number };
  /** For imports that no policy of their cluster selects. */
  readonly choice: ChoiceSpec;
  readonly lease: LeaseTimes & { readonly renewMs: number };
  /** Where clusterset IPs come from, one per family at most. */
  readonly ranges: ReadonlyMap<IpFamily, IpRange>;
  /** The same and those of peers' services, as written. */
  readonly addressRanges: AddressPlan['ranges'];
  /** All ranges of ours: no endpoint may lie in one. */
  readonly virtualRanges: readonly IpRange[];
  /** How long a released address is kept for its owner. */
  readonly holdMs: number;
  readonly zone: string;
  readonly dns: DnsOptions;
  /** Where agents of the older form keep their imports; undefined is nowhere. */
  readonly legacyNamespace: string | undefined;
  /** Members that keep the ClusterProfiles, in the order in which they take over. */
  readonly inventoryWriters: readonly string[];
}

export function readSetPolicy(set: ClusterSet | undefined): SetPolicy {
  const spec = { ...clusterSetDefaults, ...set?.spec };
  const lease = { ...clusterSetDefaults.lease, ...set?.spec?.lease };
  const { clusterSet, peers, external } = addressRangesOf(set?.spec);
  const leaseMs = lease.durationSeconds * 1000;
  return {
    ports: spec.ports,
    endpoints: spec.endpoints,
    clusterSetIps: spec.clusterSetIP,
    staleness: spec.staleness,
    locality: spec.locality,
    // One of a later release is the strictest that is known here.
    access: parseAccessMode(spec.access) ?? 'Exported',
    sealing: readSealing(set?.spec?.sealing),
    choice: set?.spec?.choice ?? {},
    lease: {
      leaseMs,
      renewMs: lease.renewSeconds * 1000,
      renewalGapMsMax: renewalGapMs(lease.renewSeconds * 1000, leaseMs),
      holdDownMs: lease.holdDownSeconds * 1000,
      holdDownMsMax: lease.holdDownMaxSeconds * 1000,
      calmMs: leaseMs * 20,
    },
    ranges: new Map(parseRanges(clusterSet).map((range) => [range.family, range])),
    addressRanges: { clusterSet, peers, external },
    virtualRanges: [clusterSet, peers, external].flatMap((texts) => parseRanges(texts)),
    holdMs: spec.addressHoldSeconds * 1000,
    zone: dnsOptionsOf(set?.spec?.dns).zone,
    dns: dnsOptionsOf(set?.spec?.dns),
    legacyNamespace: set?.spec?.legacyNamespace,
    inventoryWriters: set?.spec?.inventory?.writers ?? [],
  };
}

function readSealing(spec: ClusterSetSpec['sealing']): SetPolicy['sealing'] {
  const { exports, rotateHours } = { ...clusterSetDefaults.sealing, ...spec };
  return { isAllowed: exports === 'Allowed', rotateSeconds: rotateHours * 3600 };
}

function parseRanges(texts: readonly string[]): IpRange[] {
  return texts.map((text) => parseRange(text)).filter((range) => range !== undefined);
}
