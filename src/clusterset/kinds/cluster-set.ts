// ClusterSet: the policies of a clusterset, at the broker in the namespace of the set. The definition fills in what is
// left out; the constants here are the same, for those who have no ClusterSet yet.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { addressHoldMs } from '../../kube/objects/ours.ts';
import type { ChoiceSpec } from './service-import-policy.ts';

export const clusterSetType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'clustersets',
  kind: 'ClusterSet',
  isNamespaced: true,
};

export interface ClusterSet extends KubernetesObject {
  spec?: ClusterSetSpec;
  status?: { conditions?: Condition[] };
}

export interface ClusterSetSpec {
  ports?: PortPolicy;
  endpoints?: 'Pods' | 'ClusterIP';
  clusterSetIP?: ClusterSetIpPolicy;
  staleness?: StalenessPolicy;
  /** How far traffic goes when several clusters have ready endpoints; a service's trafficDistribution goes before it. */
  locality?: LocalityPreference;
  /** Which clusters serve imports that no ServiceImportPolicy of their cluster selects. */
  choice?: ChoiceSpec;
  /** Whether calls between clusters are limited to what is exported to them; a member's home may be stricter. */
  access?: AccessMode;
  /** Whether members may export services that only those they are for can read at the broker. */
  sealing?: ClusterSetSealing | null;
  lease?: ClusterSetLease;
  addressRanges?: AddressRanges;
  /** How long a released address is kept for the one who had it. */
  addressHoldSeconds?: number;
  dns?: ClusterSetDns;
  /** Limits on a member's objects at the broker. */
  memberQuota?: MemberQuota;
  /** Where agents of the older form keep one import per cluster; not read unless named. */
  legacyNamespace?: string;
  /** Members that keep a ClusterProfile for each member, the first that lives; nobody if empty. */
  inventory?: { writers?: string[] | null };
  /** For agents of the release before, which ask for it. Another value is stored and has no effect. */
  layout?: string;
}

/** allocate: from the set's range. derived: that of a Service of the importing cluster. none: DNS answers with endpoints. */
export type ClusterSetIpPolicy = 'allocate' | 'derived' | 'none';

/** Spread: all ready endpoints alike. NearestFirst: the nearest that are ready. */
export type LocalityPreference = 'Spread' | 'NearestFirst';

interface ClusterSetSealing {
  exports?: SealingPolicy;
  /** After this time a key is replaced. */
  rotateHours?: number;
}

type SealingPolicy = 'Refused' | 'Allowed';

interface ClusterSetLease {
  renewSeconds?: number;
  /** A lease that has not changed for this long has run out. */
  durationSeconds?: number;
  /** How long a lease that flaps must hold before it is trusted again; doubles with each flap. */
  holdDownSeconds?: number;
  holdDownMaxSeconds?: number;
}

/** At most one range for each family. */
interface AddressRanges {
  clusterSet?: string[];
  peers?: string[];
  external?: string[];
}

export interface MemberQuota {
  /** Exported services. */
  services?: number;
  endpointSlices?: number;
  /** Total bytes in its namespace, as a quantity; enforced by an embedded broker. */
  bytes?: string;
}

export interface ClusterSetDns {
  zone?: string;
  ttlSeconds?: number;
  /** Whether `<cluster>.<service>.<namespace>.svc.<zone>` is answered. */
  clusterNames?: 'Hidden' | 'Served';
}

export const clusterSetDefaults = {
  ports: 'union',
  endpoints: 'Pods',
  clusterSetIP: 'allocate',
  staleness: 'Withdraw',
  locality: 'Spread',
  access: 'Open',
  sealing: { exports: 'Refused', rotateHours: 24 },
  lease: { renewSeconds: 5, durationSeconds: 30, holdDownSeconds: 60, holdDownMaxSeconds: 600 },
  addressRanges: {
    clusterSet: ['243.0.0.0/12', 'fd70:6f72:74f3::/64'],
    peers: ['241.0.0.0/12', 'fd70:6f72:74f1::/64'],
    external: ['242.0.0.0/8', 'fd70:6f72:74f2::/64'],
  },
  addressHoldSeconds: addressHoldMs / 1000,
  dns: { zone: 'clusterset.local', ttlSeconds: 5, clusterNames: 'Hidden' },
  memberQuota: { services: 20_000, endpointSlices: 50_000, bytes: '256Mi' },
} as const satisfies ReadonlyDeep<ClusterSetSpec>;

/** The ranges of virtual addresses that a ClusterSet gives, and the defaults of those that it does not. */
export function addressRangesOf(spec: ClusterSetSpec | undefined) {
  return { ...clusterSetDefaults.addressRanges, ...spec?.addressRanges };
}

type ReadonlyDeep<T> = { readonly [K in keyof T]: ReadonlyDeep<T[K]> };

/**
 * Open: an export limits imports alone. Audit: calls that no export allows are counted. Exported: they are refused. From the
 * least strict to the strictest.
 */
export const accessModes = ['Open', 'Audit', 'Exported'] as const;

export type AccessMode = (typeof accessModes)[number];

export type PortPolicy = 'union' | 'intersection';

/** Withdraw: as if it did not export. NotReady: its endpoints stay and are marked. Keep: nothing changes. */
export type StalenessPolicy = 'Withdraw' | 'NotReady' | 'Keep';
