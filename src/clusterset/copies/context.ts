// Shared by all controllers of an agent: both homes, this cluster's membership, and the copies they share.

import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IpFamily } from '../../base/net/ip.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import type { EventRecorder } from '../../kube/controller/events.ts';
import type { SilentFrom } from '../../kube/objects/reports/silent-clusters.ts';
import type { ClusterSetIpPolicy } from '../kinds/cluster-set.ts';
import type { MemberFollower } from '../members/follower.ts';
import type { OwnAddresses } from '../rules/address-translation.ts';
import type { AddressRules } from '../rules/endpoint-address.ts';
import type { LeaseVerdict } from '../rules/leases/lease-monitor.ts';
import type { SetNetworks } from '../rules/networks/networks.ts';
import type { SetPolicy } from '../rules/set-policy.ts';
import type { HomeCopies } from './home-copies.ts';
import type { LegacyRecords } from './legacy-records.ts';
import type { MemberServices } from './member-services.ts';

export interface Membership {
  /** Name of the clusterset, which is also its namespace at the broker. */
  readonly clusterset: string;
  readonly clusterId: string;
  /** This member's own namespace at the broker. */
  readonly namespace: string;
}

export interface AgentContext {
  readonly world: World;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly home: Client;
  readonly broker: Client;
  readonly membership: Membership;
  readonly copies: HomeCopies;
  readonly members: MemberFollower;
  /** The services of their records. */
  readonly memberServices: MemberServices;
  /** Records published by clusters that are not upgraded yet. */
  readonly legacy: Pick<LegacyRecords, 'recordsOf' | 'hasSynced'>;
  readonly events: EventRecorder;
  readonly policy: () => SetPolicy;
  /** Rules for this cluster's own addresses. */
  readonly ownAddresses: () => OwnAddresses;
  /** Where the addresses of imports come from in this cluster. */
  readonly clusterSetIps: () => ClusterSetIpPolicy;
  /** Whether a node proxy here carries connections to clusterset IPs; undefined while that is not known. */
  readonly hasProxy: () => boolean | undefined;
  /** Whether the cluster IPs of Services are routed here; undefined while that is not known. */
  readonly routesServices: () => boolean | undefined;
  /** IP families of this cluster's Pods; undefined while they are not known. */
  readonly families: () => readonly IpFamily[] | undefined;
  /** Addresses that no cluster may offer. The same object until the policy changes. */
  readonly addressRules: () => AddressRules;
  /** The same, with the ranges that the named cluster joined with. */
  readonly addressRulesOf: (clusterId: string) => AddressRules;
  /** Wall time of the broker's last answer; undefined while it answers. */
  readonly brokerAwaySinceMs: () => number | undefined;
  /** The other networks of the set. */
  readonly networks: () => SetNetworks;
  /** Nodes that have reported that they cannot reach a cluster of another network, by cluster. */
  readonly unreachedFrom: () => ReadonlyMap<string, readonly string[]>;
  /** Why no gateway of a cluster takes connections of this one; empty where one does. */
  readonly gatewayChecks: () => ReadonlyMap<string, string>;
  /** Clusters of a service that nodes have left because they do not answer there. */
  readonly silentFor: (service: string) => ReadonlyMap<string, SilentFrom>;
  readonly verdict: (clusterId: string) => LeaseVerdict;
}
