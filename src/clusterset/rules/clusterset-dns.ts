// The DNS options of the clusterset, and where its members are, as a member's home has them: a ConfigMap in the system namespace that the agent copies
// from the ClusterSet, for resolvers and proxies that see no broker. Pure.

import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type ClusterSetDns, clusterSetDefaults } from '../kinds/cluster-set.ts';
import { accessData, openAccess, type SetAccess } from './access/set-access.ts';
import { type AddressPlan, addressPlanData } from './address-plan.ts';
import { localityData, type SetLocality, unknownLocality } from './locality.ts';
import { networksData, oneNetwork, type SetNetworks } from './networks/networks.ts';

export const clusterSetDnsName = 'portolan-clusterset-dns';

/** Nothing left out. */
export type DnsOptions = Required<ClusterSetDns>;

export function dnsOptionsOf(dns: ClusterSetDns | undefined): DnsOptions {
  return { ...clusterSetDefaults.dns, ...dns };
}

export interface DnsOptionsPlace {
  readonly locality?: SetLocality;
  readonly networks?: SetNetworks;
  readonly access?: SetAccess;
  /** ServiceAccessPolicies, as data planes read them. */
  readonly callers?: string | undefined;
  readonly addressPlan?: AddressPlan;
  readonly namespace?: string;
}

export function dnsOptionsManifest(options: DnsOptions, place: DnsOptionsPlace = {}) {
  const { locality = unknownLocality, networks = oneNetwork, access = openAccess, addressPlan } = place;
  const { namespace = systemNamespace } = place;
  const { zone, ttlSeconds, clusterNames } = options;
  const data = {
    zone,
    ttlSeconds: String(ttlSeconds),
    clusterNames,
    ...localityData(locality),
    ...networksData(networks),
    ...accessData(access),
    ...(place.callers && { callers: place.callers }),
    ...(addressPlan && addressPlanData(addressPlan)),
  };
  return manifest(configMapType, { name: clusterSetDnsName, namespace }, { data }) as Manifest<ConfigMap>;
}

/** Missing and invalid values count as unset. */
export function readDnsOptions({ data = {} }: Pick<ConfigMap, 'data'>): DnsOptions {
  const { zone, ttlSeconds, clusterNames } = data;
  return dnsOptionsOf({
    ...(zone ? { zone } : {}),
    ...(/^\d{1,5}$/.test(ttlSeconds ?? '') ? { ttlSeconds: Number(ttlSeconds) } : {}),
    ...(clusterNames === 'Served' ? { clusterNames } : {}),
  });
}
