// The choice function of both modes: for each address and port of a service, the ready endpoints that new connections go
// to. Pure. Locality is the one rule of src/clusterset/rules/choice/locality.ts.

import { formatAddress } from '../base/net/ip.ts';
import { type NamedSlice, type OwnerFacts, virtualAddressesIn } from '../catalog/facts/facts.ts';
import type { PortFacts } from '../catalog/facts/ports.ts';
import { type Family, familyOf, type Target, targetsOf } from '../catalog/facts/targets.ts';
import type { Answering } from '../clusterset/rules/choice/answering.ts';
import { choose as chooseEndpoints } from '../clusterset/rules/choice/choose.ts';
import type { Place } from '../clusterset/rules/choice/locality.ts';
import type { Chosen } from '../clusterset/rules/choice/reachable.ts';
import type { SetLocality } from '../clusterset/rules/locality.ts';
import { namedListenerPort } from '../clusterset/rules/networks/listener-ports.ts';
import type { SetNetworks } from '../clusterset/rules/networks/networks.ts';
import type { UdpWay } from '../clusterset/rules/networks/udp-ways.ts';
import { needsUnready, readRouting } from '../clusterset/rules/routing/routing.ts';

import { headlessPorts } from './headless.ts';
import type { NearSideView } from './near-side.ts';
import type { Backend, PortChoice } from './port-choice.ts';

/** Inputs of the choice besides the service itself. */
export interface View {
  readonly self: Place;
  readonly locality: SetLocality;
  readonly networks: SetNetworks;
  /** Whether a clusterset address is in the ranges of this proxy. */
  readonly serves: (ip: string) => boolean;
  /** Whether an address is in the ranges of this cluster's own Services; absent if those are not carried here. */
  readonly servesOwn?: (ip: string) => boolean;
  /** Why an endpoint cannot be used here; undefined if it can. */
  readonly refusal: (address: string, cluster: string) => string | undefined;
  /** Addresses of this node, as its Node object has them. */
  readonly internalAddresses: readonly string[];
  /** Why connections through gateways cannot be carried here at all; undefined if they can. */
  readonly noGateways?: string;
  /** Whether an endpoint runs on this node; undefined if the node's addresses are unknown. */
  readonly isOnNode?: (address: string) => boolean;
}

export interface Choice {
  readonly ports: readonly PortChoice[];
  readonly problems: readonly string[];
}

const problemsMax = 5;

export interface ServedImport {
  readonly owner: OwnerFacts;
  readonly slices: readonly NamedSlice[];
  /** Why an address of the import is not served; undefined if it is. */
  readonly addressProblem: (address: string) => string | undefined;
  /** Whether an address that is none of the clusterset's is lent to the import by a Service that is carried here. */
  readonly isLent?: (address: string) => boolean;
  /** The way to other networks; absent while it has not been looked at. */
  readonly nearSide?: NearSideView;
  /** What this node has seen of endpoints by TCP; absent while nobody looks. */
  readonly answering?: Answering<Target>;
}

/** A service of two families has two addresses. */
const addressesMax = 2;

export function choose(served: ServedImport, view: View): Choice {
  const { owner, slices, addressProblem, nearSide } = served;
  const problems = new Set(owner.traffic?.problems);
  const ports: PortChoice[] = [];
  const affinitySeconds = owner.traffic?.affinitySeconds ?? 0;
  const isServed = (ip: string) => view.serves(ip) || (view.servesOwn?.(ip) === true && served.isLent?.(ip) === true);
  const problemOf = (ip: string) => addressProblem(ip) ?? (isServed(ip) ? undefined : outsideRanges(ip));
  if (owner.kind === 'Headless') {
    const wayTo = (cluster: string, family: Family) => wayToEndpoint(cluster, family, { view, nearSide });
    if (view.noGateways === undefined)
      ports.push(...headlessPorts({ slices, addressProblem: problemOf, wayTo, problems }));
    else if (virtualAddressesIn(slices).length > 0) problems.add(`endpoints in other networks: ${view.noGateways}`);
    return { ports, problems: [...problems].slice(0, problemsMax) };
  }
  for (const address of owner.ips.slice(0, addressesMax)) {
    const ip = formatAddress(address);
    const problem = problemOf(ip);
    if (problem !== undefined) {
      problems.add(problem);
      continue;
    }
    const family = familyOf(address);
    for (const port of firstOfEach(owner.ports)) {
      const chosen = backendsOf({
        ...{ owner, port, slices, family, view, nearSide, problems },
        // Only TCP is judged.
        answering: port.protocol === 'TCP' ? served.answering : undefined,
      });
      ports.push({ ip, family, protocol: port.protocol, port: port.port, ...chosen, affinitySeconds });
    }
  }
  return { ports, problems: [...problems].slice(0, problemsMax) };
}

function outsideRanges(ip: string): string {
  return `${ip} is outside the ranges that this proxy serves: give --range, or correct addressRanges.clusterSet in the ClusterSet`;
}

/** A service has a number once for each protocol. */
function firstOfEach(ports: readonly PortFacts[]): PortFacts[] {
  const byNumber = new Map<string, PortFacts>();
  for (const port of [...ports].reverse()) byNumber.set(`${port.protocol}/${port.port}`, port);
  return [...byNumber.values()].reverse();
}

interface PortRequest {
  readonly owner: OwnerFacts;
  readonly port: PortFacts;
  readonly slices: readonly NamedSlice[];
  readonly family: Family;
  readonly view: View;
  readonly nearSide: NearSideView | undefined;
  readonly answering: Answering<Target> | undefined;
  readonly problems: Set<string>;
}

function backendsOf(request: PortRequest): Pick<PortChoice, 'backends' | 'lots' | 'later' | 'left'> {
  const { owner, port, slices, family, view, problems, answering } = request;
  const isUsable = (address: string, cluster: string): boolean => {
    const refusal = view.refusal(address, cluster);
    if (refusal !== undefined) problems.add(refusal);
    return refusal === undefined;
  };
  const backends = onNode(owner, targetsOf({ port, slices, family, isUsable }), view, problems);
  const { self: from, locality, networks } = view;
  const { trafficDistribution } = owner;
  const routing = readRouting(owner.routing);
  const unready = needsUnready(routing) ? targetsOf({ port, slices, family, areReady: false }) : [];
  const gatewayProblem = (cluster: string) => problemOfGateways(cluster, request);
  const chooser = { from, locality, networks, gatewayProblem, trafficDistribution, routing, answering };
  const choice = chooseEndpoints(backends, chooser, unready);
  for (const { cluster, count, why } of choice.leftOut)
    problems.add(`${count} endpoints of cluster ${cluster} are not reached: ${why}`);
  const lots = choice.lots.map(({ share, endpoints }) => ({ share, endpoints: dialled(endpoints, request) }));
  const unused = {
    ...(choice.later.length === 0 ? {} : { later: choice.later }),
    ...(choice.left.length === 0 ? {} : { left: choice.left }),
  };
  return lots.length > 1
    ? { backends: lots.flatMap(({ endpoints }) => endpoints), lots, ...unused }
    : { backends: lots[0]?.endpoints ?? [], ...unused };
}

function problemOfGateways(cluster: string, request: PortRequest): string | undefined {
  const { port, owner, view } = request;
  if (view.noGateways !== undefined || port.protocol === 'TCP') return problemOfEnvoy(cluster, request);
  const way = port.protocol === 'UDP' ? udpWay(cluster, request) : undefined;
  if (way !== undefined) return problemOfEnvoy(cluster, request);
  const isWanted = port.protocol === 'UDP' && readRouting(owner.routing).udp === undefined;
  return `${port.protocol} is not carried between networks${isWanted ? ', unless a ServiceImportPolicy has udp: Any' : ''}`;
}

/** The node's Envoy has a port of its own for it. */
function udpWay(cluster: string, { port, owner }: Pick<PortRequest, 'port' | 'owner'>): UdpWay | undefined {
  return readRouting(owner.routing).udp?.find((way) => way.cluster === cluster && way.port === port.port);
}

type NearSideRequest = Pick<PortRequest, 'family' | 'view' | 'nearSide'>;

function problemOfEnvoy(cluster: string, { family, view, nearSide }: NearSideRequest): string | undefined {
  if (view.noGateways !== undefined) return view.noGateways;
  if (nearSide === undefined || !nearSide.problems.has(cluster))
    return 'the Envoy of this node has not been asked about it yet';
  if (nearSide.addresses[family] === undefined) return `this node has no ${family} address for its Envoy`;
  return nearSide.problems.get(cluster);
}

/** The endpoints themselves, and for those behind gateways the node's Envoy. */
function dialled(endpoints: readonly Chosen<Target>[], request: PortRequest): readonly Backend[] {
  if (endpoints.every(({ via }) => via === undefined)) return endpoints;
  return endpoints.map((endpoint) => (endpoint.via === undefined ? endpoint : throughEnvoy(endpoint, request)));
}

/**
 * To a port of the node's Envoy for that cluster; the address that the client connected to tells it the service, or the port
 * itself where the gateway is asked for it over UDP.
 */
function throughEnvoy(endpoint: Chosen<Target>, request: PortRequest): Backend {
  const { family, view, nearSide } = request;
  const address = nearSide!.addresses[family]!;
  if (request.port.protocol === 'UDP') {
    const { listenerPort } = udpWay(endpoint.cluster, request)!;
    return { ...endpoint, address, port: listenerPort, isAskedByName: true };
  }
  const listenerPort = view.networks.clusters.get(endpoint.cluster)!.listenerPort!;
  return { ...endpoint, address, port: endpoint.isAskedByName ? namedListenerPort(listenerPort) : listenerPort };
}

/** For one endpoint of a headless service. */
function wayToEndpoint(
  cluster: string,
  family: Family,
  { view, nearSide }: Pick<NearSideRequest, 'view' | 'nearSide'>,
): Pick<Backend, 'address' | 'port'> | string {
  const listenerPort = view.networks.clusters.get(cluster)?.listenerPort;
  const problem = problemOfEnvoy(cluster, { family, view, nearSide });
  if (problem !== undefined) return problem;
  if (listenerPort === undefined) return 'no gateway published';
  return { address: nearSide!.addresses[family]!, port: namedListenerPort(listenerPort) };
}

/** internalTrafficPolicy Local: endpoints of this node; if its addresses are not known, those of its cluster. */
function onNode(
  owner: OwnerFacts,
  ready: readonly Backend[],
  { self, isOnNode }: View,
  problems: Set<string>,
): readonly Backend[] {
  if (!owner.traffic?.isNodeLocalOnly) return ready;
  const own = ready.filter(({ cluster }) => cluster === self.cluster);
  if (isOnNode !== undefined) return own.filter(({ address }) => isOnNode(address));
  problems.add(
    'internalTrafficPolicy Local: the pod range of this node is not known, so all endpoints of its cluster are used; give --node-range',
  );
  return own;
}
