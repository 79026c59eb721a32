// The other networks of a clusterset as a member's home has them: which clusters lie there, their gateways, and the port of
// a node's Envoy for each. Part of the ConfigMap that the agent keeps for data planes, which see no broker. Pure.

import { isObject } from '../../../base/json.ts';
import { parseIp } from '../../../base/net/ip.ts';
import type { ConfigMap } from '../../../kube/objects/config-map.ts';

/** The network of clusters whose Cluster object names none. */
export const defaultNetwork = 'default';

export interface GatewayAddress {
  /** An IP address. */
  readonly address: string;
  readonly port: number;
}

export interface ClusterReach {
  readonly network: string;
  /** Those that may be used: inside the ranges that the set's admin accepted. Empty if the cluster is not reached. */
  readonly gateways: readonly GatewayAddress[];
  /** PEM, one certificate each. They vouch for this cluster's own trust domain alone. */
  readonly trustRoots: readonly string[];
  /** Where a node's Envoy accepts connections to this cluster; absent without gateways. */
  readonly listenerPort?: number;
  /** Why it, or one of its gateways, cannot be used; absent if all is well. */
  readonly problem?: string;
}

export interface SetNetworks {
  /** This cluster's own network. */
  readonly own: string;
  /** Clusters of other networks by id. All others are reached directly. */
  readonly clusters: ReadonlyMap<string, ClusterReach>;
}

export const oneNetwork: SetNetworks = { own: defaultNetwork, clusters: new Map() };

/** Nothing where all clusters share one network. */
export function networksData({ own, clusters }: SetNetworks): Record<string, string> {
  if (clusters.size === 0) return {};
  const reach: Record<string, object> = {};
  const roots: Record<string, readonly string[]> = {};
  for (const [id, { trustRoots, ...rest }] of clusters) {
    reach[id] = rest;
    if (trustRoots.length > 0) roots[id] = trustRoots;
  }
  return { network: own, networks: JSON.stringify(reach), trustRoots: JSON.stringify(roots) };
}

/** Invalid gateways are left out. A cluster whose entry makes no sense is in another network and has no gateway. */
export function readNetworks({ data }: Pick<ConfigMap, 'data'>): SetNetworks {
  const reach = objectIn(data?.['networks']);
  const roots = objectIn(data?.['trustRoots']);
  const clusters = new Map<string, ClusterReach>();
  for (const [id, value] of Object.entries(reach)) clusters.set(id, reachOf(isObject(value) ? value : {}, roots[id]));
  return { own: data?.['network'] || defaultNetwork, clusters };
}

/** The ports that nodes use now. */
export function listenerPortsIn(written: ConfigMap | undefined): ReadonlyMap<string, number> {
  const ports = new Map<string, number>();
  for (const [id, { listenerPort }] of readNetworks(written ?? {}).clusters)
    if (listenerPort !== undefined) ports.set(id, listenerPort);
  return ports;
}

function reachOf({ network, gateways, listenerPort, problem }: Record<string, unknown>, roots: unknown): ClusterReach {
  return {
    network: typeof network === 'string' ? network : '',
    gateways: Array.isArray(gateways) ? gateways.filter(isGateway) : [],
    trustRoots: Array.isArray(roots) ? roots.filter((root) => typeof root === 'string') : [],
    ...(isPort(listenerPort) ? { listenerPort } : {}),
    ...(typeof problem === 'string' && problem !== '' ? { problem } : {}),
  };
}

export function isGateway(value: unknown): value is GatewayAddress {
  if (!isObject(value)) return false;
  const { address, port } = value;
  return typeof address === 'string' && parseIp(address) !== undefined && isPort(port);
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536;
}

function objectIn(text: string | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
