// The names of one ServiceImport under clusterset.local, as the Multi-Cluster Services DNS specification 1.0.0 says, and
// what users of earlier systems rely on: answers without a clusterset IP, and, if wanted, names of single clusters. Names
// that lead to endpoints lead to those that the locality rule chooses for this cluster. Pure.

import { nameBytesMax, tryEncodeName } from '../../base/dns/name.ts';
import { formatAddress } from '../../base/net/ip.ts';
import { type Candidate, choose, chosenOf } from '../../clusterset/rules/choice/choose.ts';
import { type Place, preferenceOf } from '../../clusterset/rules/choice/locality.ts';
import { reachable, speaksNoTunnel } from '../../clusterset/rules/choice/reachable.ts';
import type { Lot } from '../../clusterset/rules/choice/shares.ts';
import type { SetLocality } from '../../clusterset/rules/locality.ts';
import type { SetNetworks } from '../../clusterset/rules/networks/networks.ts';
import { isNoRouting, needsUnready, readRouting } from '../../clusterset/rules/routing/routing.ts';
import { type EndpointFacts, hasVirtualAddress, type NamedSlice } from '../facts/facts.ts';
import type { PortFacts } from '../facts/ports.ts';
import { endpointsType, type Order, order, plainRecord } from './answers.ts';
import {
  type AddressRecord,
  addAddresses,
  addServicePorts,
  addSrv,
  endpointName,
  endpointNames,
  existPorts,
  noteUnready,
  type OwnerInput,
  OwnerNames,
  type SrvSource,
} from './owner-names.ts';

export interface ClustersetNamesOptions {
  /** Whether `<clusterid>.<svc>.<ns>.svc.<zone>` names the service in that cluster alone. The specification says no. */
  readonly hasClusterNames: boolean;
  readonly locality: SetLocality;
  readonly networks: SetNetworks;
  /** Where the clients are that ask for these names. */
  readonly from: Place;
  /** Why an address of the import is not its own; undefined if it is. */
  readonly addressProblem: (ip: Uint8Array) => string | undefined;
  /** Whether endpoints that are not ready are reported also where no name depends on them. */
  readonly isExplained?: boolean;
}

interface ReadyEndpoint extends EndpointFacts {
  readonly cluster: string;
  readonly ordinal: number;
  /** Ports of its slice. */
  readonly ports: readonly PortFacts[];
  readonly isBehindGateway: boolean;
  readonly hasVirtualAddress: boolean;
}

export function namesOfImport(input: OwnerInput, options: ClustersetNamesOptions): OwnerNames {
  const names = new OwnerNames(input.name);
  if (!input.owner.isPresent) return names;
  const isHeadless = input.owner.kind === 'Headless';
  const hasAddress = !isHeadless && input.owner.ips.length > 0;
  // Slices of a service with an address are the most by far, and its names do not depend on them.
  const needsEndpoints = !hasAddress || options.hasClusterNames || options.isExplained;
  const ready = needsEndpoints ? directOf(names, input.name, readyEndpoints(names, input), options) : [];
  // The import exists even if nothing is behind it at the moment: other types and empty answers are NODATA.
  if (!isHeadless) names.exist(input.name);
  if (!isHeadless) existPorts(names, input.name, input.owner.ports);
  if (hasAddress) addClustersetIp(names, input, options);
  else {
    const used = usedOf(names, input, { ready, ...options });
    addEndpoints(names, input.name, { ready, used, ports: input.owner.ports, isHeadless });
  }
  if (options.hasClusterNames) addClusterNames(names, input, ready);
  return names;
}

function readyEndpoints(names: OwnerNames, { slices, ordinalOf }: OwnerInput): ReadyEndpoint[] {
  const ready: ReadyEndpoint[] = [];
  for (const slice of slices) {
    const ordinal = ordinalOf(slice.cluster);
    for (const endpoint of slice.endpoints) {
      const { address, hostname, isReady, zone, behindGateway } = endpoint;
      const { cluster, ports } = slice;
      const way = { isBehindGateway: behindGateway !== undefined, hasVirtualAddress: hasVirtualAddress(endpoint) };
      if (isReady) ready.push({ address, hostname, isReady, zone, cluster, ordinal, ports, ...way });
      else noteUnready(names, slice, endpoint);
    }
  }
  return ready;
}

/** Names of endpoints lead to addresses: those of another network are none of them, whatever the slices say, but virtual ones. */
function directOf(
  names: OwnerNames,
  name: string,
  ready: readonly ReadyEndpoint[],
  { networks }: Pick<ClustersetNamesOptions, 'networks'>,
): readonly ReadyEndpoint[] {
  const { reached, leftOut } = reachable(ready, { networks, ...takesAddresses });
  for (const { cluster, count, why } of leftOut)
    names.leftOut.push({
      what: `${count} of ${ready.length} ready endpoints of ${name}`,
      why: `cluster ${cluster}: ${why}`,
    });
  return reached;
}

/** An import without an address of its own has no records: its endpoints are no substitute for what it was to have. */
function addClustersetIp(
  names: OwnerNames,
  { owner, name }: OwnerInput,
  { addressProblem }: Pick<ClustersetNamesOptions, 'addressProblem'>,
): void {
  const records: { address: Uint8Array; cluster: number }[] = [];
  for (const address of owner.ips) {
    const why = addressProblem(address);
    if (why === undefined) records.push({ address, cluster: 0 });
    else names.leftOut.push({ what: `${formatAddress(address)} of ${name}`, why });
  }
  if (records.length === 0) return;
  addAddresses(names, name, records, order.fixed);
  addServicePorts(names, name, owner.ports);
}

const takesAddresses = { gatewayProblem: speaksNoTunnel, usesVirtualAddresses: true };

interface Used {
  readonly endpoints: readonly ReadyEndpoint[];
  /** The share of each endpoint, if they are not all alike. */
  readonly shares?: ReadonlyMap<ReadyEndpoint, number>;
  /** Some are of the clients' own cluster. */
  readonly hasOwn: boolean;
  /** A policy says whom clients use. */
  readonly isRouted: boolean;
  readonly isNearest: boolean;
}

function usedOf(
  names: OwnerNames,
  { owner, name, slices }: OwnerInput,
  { ready, locality, networks, from }: ClustersetNamesOptions & { readonly ready: readonly ReadyEndpoint[] },
): Used {
  const { trafficDistribution } = owner;
  const routing = readRouting(owner.routing);
  const unready = needsUnready(routing) ? slices.flatMap(unreadyIn) : [];
  const chooser = { from, locality, networks, trafficDistribution, routing, ...takesAddresses };
  const choice = choose(ready, chooser, unready);
  const endpoints = chosenOf(choice);
  const { lots } = choice;
  const far = ready.length - endpoints.length;
  if (far > 0)
    names.leftOut.push({
      what: `${far} of ${ready.length} ready endpoints of ${name}`,
      why: isNoRouting(routing) ? fartherAway : routedElsewhere,
    });
  const isNearest = preferenceOf(locality.preference, trafficDistribution) === 'NearestFirst';
  return {
    endpoints,
    isNearest,
    hasOwn: endpoints.some(({ cluster }) => cluster === from.cluster),
    isRouted: routing.groups.length > 0,
    ...(lots.length > 1 ? { shares: sharesOf(lots) } : {}),
  };
}

function sharesOf(lots: readonly Lot<ReadyEndpoint>[]): ReadonlyMap<ReadyEndpoint, number> {
  const shares = new Map<ReadyEndpoint, number>();
  for (const { share, endpoints } of lots)
    for (const endpoint of endpoints) shares.set(endpoint, share / endpoints.length);
  return shares;
}

function unreadyIn({ cluster, endpoints }: NamedSlice): Candidate[] {
  return endpoints.filter(({ isReady }) => !isReady).map(({ zone }) => ({ cluster, zone }));
}

const routedElsewhere =
  "others have the connections, by this cluster's ServiceImportPolicy, the clusterset or the exporter";
const fartherAway = 'nearer ones are ready, and the service or its clusterset asks for the nearest';

/**
 * Whether the names of all endpoints can be read from their addresses, so that none of them is stored. Hostnames cannot, and
 * one of them may look like the address of another endpoint.
 */
function areMadeOfAddresses(ready: readonly ReadyEndpoint[], name: string): boolean {
  return ready.every(({ hostname, cluster, address }) => {
    const labelBytes = address.length === 4 ? dashedIpv4Bytes : dashedIpv6Bytes;
    const isShort = labelBytes + cluster.length + name.length + 4 <= nameBytesMax;
    return hostname === '' && cluster !== '' && isShort && tryEncodeName(cluster) !== undefined;
  });
}

const dashedIpv4Bytes = 15;
const dashedIpv6Bytes = 39;

/** Each ready endpoint has a name of its own; the service's name leads to those in use. */
function addEndpoints(
  names: OwnerNames,
  name: string,
  {
    ready,
    used,
    ports,
    isHeadless,
  }: {
    readonly ready: readonly ReadyEndpoint[];
    readonly used: Used;
    readonly ports: readonly PortFacts[];
    readonly isHeadless: boolean;
  },
): void {
  // Without a clusterset IP clients stay in their own cluster while it can serve them (seed 002).
  const isLocalFirst = !isHeadless && !used.isNearest && !used.isRouted && (used.shares === undefined || used.hasOwn);
  const shares = isLocalFirst ? undefined : used.shares;
  const how: Order = shares !== undefined ? order.weighted : isLocalFirst ? order.localFirst : order.rotating;
  // Records with shares have no room for the cluster that the name of an endpoint is made with.
  const isDerived = shares === undefined && ready.length > 0 && areMadeOfAddresses(ready, name);
  addAddresses(names, name, recordsOf(used.endpoints, shares), how, isDerived && showsAll(ready, used));
  if (!isDerived) addHosts(names, name, ready);
  else if (!showsAll(ready, used))
    names.add(name, {
      type: endpointsType,
      order: order.fixed,
      records: recordsOf(ready.slice(0, countMax)).map(asRecord),
    });
  if (!isHeadless && used.endpoints.length > 0 && serveAll(used.endpoints, ports)) {
    addServicePorts(names, name, ports);
    return;
  }
  const targetOf = (endpoint: ReadyEndpoint) => hostOf(endpointName(endpoint), endpoint, name);
  const sources = sourcesOf(used.endpoints, targetOf, { isDerived, shares });
  addSrv(names, name, { sources, how: isLocalFirst ? order.localFirst : order.fixed });
}

/** Whether the ports of the import (seed 002) lead somewhere at each endpoint. Pods often listen on other ones. */
function serveAll(endpoints: readonly ReadyEndpoint[], ports: readonly PortFacts[]): boolean {
  let known: readonly PortFacts[] | undefined;
  return endpoints.every((endpoint) => {
    // Endpoints of one slice share their ports.
    if (endpoint.ports === known) return true;
    known = endpoint.ports;
    return (
      endpoint.ports.length === ports.length &&
      ports.every(({ name, protocol, port }) =>
        endpoint.ports.some((own) => own.name === name && own.protocol === protocol && own.port === port),
      )
    );
  });
}

const asRecord = ({ address, cluster }: { address: Uint8Array; cluster: number }) => plainRecord(address, cluster);

/** Whether the address sets of a service hold each of its endpoints: none is too far away, one too many, or there twice. */
function showsAll(ready: readonly ReadyEndpoint[], used: Used): boolean {
  if (used.endpoints.length !== ready.length || ready.length > shownMax) return false;
  return ready.every(
    ({ address }, i) => !ready.some((other, j) => j < i && Buffer.compare(other.address, address) === 0),
  );
}

/** More cannot be counted in a set. */
const countMax = 65_535;
/** So many fit into any answer, and are compared with each other in no time. */
const shownMax = 16;

/** An entry for each endpoint. */
function addHosts(names: OwnerNames, name: string, ready: readonly ReadyEndpoint[]): void {
  const byHost = Map.groupBy(
    ready.flatMap((endpoint) =>
      endpointNames(endpoint).map((label) => ({ host: hostOf(label, endpoint, name), endpoint })),
    ),
    ({ host }) => host,
  );
  for (const [host, sharing] of byHost) {
    const endpoints = sharing.map(({ endpoint }) => endpoint);
    addAddresses(names, host, recordsOf(endpoints), order.fixed);
  }
}

/** A/AAAA of one cluster and SRV with that cluster's own ports, from its slices. */
function addClusterNames(names: OwnerNames, { name, owner }: OwnerInput, ready: readonly ReadyEndpoint[]): void {
  const isByEndpoint = owner.kind === 'Headless' || owner.ips.length === 0;
  for (const [cluster, own] of Map.groupBy(ready, (endpoint) => endpoint.cluster)) {
    const at = `${cluster.toLowerCase()}.${name}`;
    addAddresses(names, at, recordsOf(own), order.rotating);
    const targetOf = (endpoint: ReadyEndpoint) => (isByEndpoint ? hostOf(endpointName(endpoint), endpoint, name) : at);
    addSrv(names, at, { sources: sourcesOf(own, targetOf) });
  }
}

function sourcesOf(
  endpoints: readonly ReadyEndpoint[],
  targetOf: (endpoint: ReadyEndpoint) => string,
  { isDerived = false, shares }: { isDerived?: boolean; shares?: Used['shares'] } = {},
): SrvSource[] {
  const sources: SrvSource[] = [];
  for (const endpoint of endpoints) {
    const target = targetOf(endpoint);
    for (const port of endpoint.ports)
      sources.push({
        port,
        target,
        cluster: endpoint.ordinal,
        ...(isDerived ? { address: endpoint.address } : {}),
        ...(shares === undefined ? {} : { share: shares.get(endpoint)! }),
      });
  }
  return sources;
}

function hostOf(label: string, { cluster }: ReadyEndpoint, name: string): string {
  return `${label}.${cluster.toLowerCase()}.${name}`;
}

function recordsOf(endpoints: readonly ReadyEndpoint[], shares?: Used['shares']): AddressRecord[] {
  return endpoints.map((endpoint) => {
    const { address, ordinal: cluster } = endpoint;
    return shares === undefined ? { address, cluster } : { address, cluster, share: shares.get(endpoint)! };
  });
}
