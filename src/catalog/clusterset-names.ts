// The names of one ServiceImport under clusterset.local, as the Multi-Cluster Services DNS specification 1.0.0 says, and
// what users of earlier systems rely on: answers without a clusterset IP, and, if wanted, names of single clusters. Pure.

import { order } from './answers.ts';
import type { EndpointFacts } from './facts.ts';
import {
  addAddresses,
  addServicePorts,
  addSrv,
  endpointName,
  noteUnready,
  type OwnerInput,
  OwnerNames,
  type SrvSource,
} from './owner-names.ts';

export interface ClustersetNamesOptions {
  /** Whether `<clusterid>.<svc>.<ns>.svc.<zone>` names the service in that cluster alone. The specification says no. */
  readonly hasClusterNames: boolean;
}

interface ReadyEndpoint extends EndpointFacts {
  readonly cluster: string;
  readonly ordinal: number;
}

export function namesOfImport(input: OwnerInput, options: ClustersetNamesOptions): OwnerNames {
  const names = new OwnerNames(input.name);
  if (!input.owner.isPresent) return names;
  const ready = readyEndpoints(names, input);
  if (input.owner.kind === 'Headless') addHeadless(names, input, ready);
  else addClustersetIp(names, input, ready);
  if (options.hasClusterNames) addClusterNames(names, input, ready);
  return names;
}

function readyEndpoints(names: OwnerNames, { slices, ordinalOf }: OwnerInput): ReadyEndpoint[] {
  const ready: ReadyEndpoint[] = [];
  for (const slice of slices) {
    const ordinal = ordinalOf(slice.cluster);
    for (const endpoint of slice.endpoints) {
      const { address, hostname, isReady } = endpoint;
      if (isReady) ready.push({ address, hostname, isReady, cluster: slice.cluster, ordinal });
      else noteUnready(names, slice, endpoint);
    }
  }
  return ready;
}

function addClustersetIp(names: OwnerNames, { owner, name }: OwnerInput, ready: readonly ReadyEndpoint[]): void {
  // The import exists even if nothing is behind it at the moment: other types and empty answers are NODATA.
  names.exist(name);
  if (owner.ips.length > 0) {
    addAddresses(
      names,
      name,
      owner.ips.map((address) => ({ address, cluster: 0 })),
      order.fixed,
    );
  } else {
    addAddresses(names, name, recordsOf(ready), order.localFirst);
  }
  addServicePorts(names, name, owner.ports);
}

function addHeadless(
  names: OwnerNames,
  { slices, name, ordinalOf }: OwnerInput,
  ready: readonly ReadyEndpoint[],
): void {
  addAddresses(names, name, recordsOf(ready), order.rotating);
  const byHost = new Map<string, ReadyEndpoint[]>();
  for (const endpoint of ready) {
    const host = hostOf(endpoint, endpoint.cluster, name);
    const sharing = byHost.get(host);
    if (sharing) sharing.push(endpoint);
    else byHost.set(host, [endpoint]);
  }
  for (const [host, endpoints] of byHost) addAddresses(names, host, recordsOf(endpoints), order.fixed);
  const sources: SrvSource[] = [];
  for (const slice of slices) {
    const cluster = ordinalOf(slice.cluster);
    for (const endpoint of slice.endpoints) {
      if (!endpoint.isReady) continue;
      const target = hostOf(endpoint, slice.cluster, name);
      for (const port of slice.ports) sources.push({ port, target, cluster });
    }
  }
  addSrv(names, name, sources);
}

/** A/AAAA of one cluster and SRV with that cluster's own ports, from its slices. */
function addClusterNames(names: OwnerNames, input: OwnerInput, ready: readonly ReadyEndpoint[]): void {
  const { slices, name, ordinalOf, owner } = input;
  for (const cluster of new Set(slices.map((slice) => slice.cluster))) {
    const own = ready.filter((endpoint) => endpoint.cluster === cluster);
    if (own.length === 0) continue;
    const at = `${cluster.toLowerCase()}.${name}`;
    addAddresses(names, at, recordsOf(own), order.rotating);
    const sources: SrvSource[] = [];
    for (const slice of slices) {
      if (slice.cluster !== cluster) continue;
      const targets = owner.kind === 'Headless' ? hostsOf(slice.endpoints, cluster, name) : [at];
      for (const target of targets) {
        for (const port of slice.ports) sources.push({ port, target, cluster: ordinalOf(cluster) });
      }
    }
    addSrv(names, at, sources);
  }
}

function hostsOf(endpoints: readonly EndpointFacts[], cluster: string, name: string): string[] {
  return endpoints.filter((endpoint) => endpoint.isReady).map((endpoint) => hostOf(endpoint, cluster, name));
}

function hostOf(endpoint: EndpointFacts, cluster: string, name: string): string {
  return `${endpointName(endpoint)}.${cluster.toLowerCase()}.${name}`;
}

function recordsOf(endpoints: readonly ReadyEndpoint[]): { address: Uint8Array; cluster: number }[] {
  return endpoints.map(({ address, ordinal }) => ({ address, cluster: ordinal }));
}
