// The address ranges of a cluster as its home knows them, for who joins without naming them: services as the API server
// hands out their addresses, pods as its nodes were given them. Reads only; what is not known is not guessed.

import { parseRange } from '../../base/net/ip.ts';
import { listAll } from '../../clusterset/explain/set-state.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError, isNotFound } from '../../kube/objects/api-error.ts';
import { type Node, nodeType } from '../../kube/objects/node.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { serviceType } from '../../kube/objects/service.ts';

const serviceCidrType: ResourceType = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'servicecidrs',
  kind: 'ServiceCIDR',
  isNamespaced: false,
};

interface ServiceCidr extends KubernetesObject {
  spec?: { cidrs?: string[] };
}

/** Empty if the home does not say. */
export async function findServiceRanges(home: Client): Promise<string[]> {
  const served = await known(async () => listAll<ServiceCidr>(home, serviceCidrType));
  const cidrs = served.flatMap(({ spec }) => spec?.cidrs ?? []);
  if (cidrs.length > 0) return distinct(cidrs);
  return distinct([...(await askFor(home, '192.0.2.1')), ...(await askFor(home, '2001:db8::1'))]);
}

/** Pod ranges of the nodes that exist now. */
export async function findPodRanges(home: Client): Promise<string[]> {
  const nodes = await known(async () => listAll<Node>(home, nodeType));
  return distinct(nodes.flatMap(({ spec }) => spec?.podCIDRs ?? (spec?.podCIDR === undefined ? [] : [spec.podCIDR])));
}

/** As many as a Cluster may have beside the ranges of its Pods. */
const nodesMax = 200;

/** Addresses of the nodes that exist now, which packets have where a cluster masquerades; none of very many. */
export async function findNodeAddresses(home: Client): Promise<string[]> {
  const nodes = await known(async () => listAll<Node>(home, nodeType));
  const internal = nodes.flatMap(({ status }) =>
    (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
  );
  if (internal.length > nodesMax) return [];
  return distinct(internal.map((address) => `${address}/${address.includes(':') ? 128 : 32}`));
}

/** An API server that is asked for an address it does not have says which it has. Nothing is made: it is a dry run. */
async function askFor(home: Client, clusterIP: string): Promise<string[]> {
  const metadata = { name: 'portolan-which-range', namespace: 'default' };
  const spec = { clusterIP, ports: [{ port: 1 }] };
  const service = { apiVersion: 'v1', kind: 'Service', metadata, spec };
  try {
    await home.create(serviceType, service, { isDryRun: true });
    return [];
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const said = /range of valid IPs is ([0-9a-fA-F:./, ]+)/.exec(error.message)?.[1] ?? '';
    return said.split(/[, ]+/);
  }
}

/** A list that may not be read or is not served counts as empty. */
async function known<T>(read: () => Promise<T[]>): Promise<T[]> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ApiError && (isNotFound(error) || error.code === 403)) return [];
    throw error;
  }
}

function distinct(cidrs: readonly string[]): string[] {
  const valid = cidrs.map((cidr) => cidr.replace(/[.,]$/, '')).filter((cidr) => parseRange(cidr) !== undefined);
  return [...new Set(valid)].filter((cidr) => cidr.includes('/'));
}
