// The choice function of both modes: for each address and port of a service, the ready endpoints that new connections go
// to. Pure. Locality is the one rule of src/catalog/routing/locality.ts.

import { formatAddress } from '../base/net/ip.ts';
import type { NamedSlice, OwnerFacts } from '../catalog/facts/facts.ts';
import type { PortFacts } from '../catalog/facts/ports.ts';
import { choose as chooseEndpoints, chosenOf } from '../catalog/routing/choose.ts';
import type { Place } from '../catalog/routing/locality.ts';
import { speaksNoTunnel } from '../catalog/routing/reachable.ts';
import type { Lot } from '../catalog/routing/shares.ts';
import { type Family, familyOf, type Target, targetsOf } from '../catalog/routing/targets.ts';
import type { SetLocality } from '../clusterset/rules/locality.ts';
import type { SetNetworks } from '../clusterset/rules/networks/networks.ts';
import { needsUnready, readRouting } from '../clusterset/rules/routing/routing.ts';

type Protocol = PortFacts['protocol'];
export type Backend = Target;

export interface PortChoice {
  readonly ip: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number;
  /** Each (address, port) once; empty if connections are to be refused. */
  readonly backends: readonly Backend[];
  /** The same with their shares, if these are not all alike. */
  readonly lots?: readonly Lot<Backend>[];
  /** 0 without session affinity. */
  readonly affinitySeconds: number;
}

/** Inputs of the choice besides the service itself. */
export interface View {
  readonly self: Place;
  readonly locality: SetLocality;
  readonly networks: SetNetworks;
  /** Whether a clusterset address is in the ranges of this proxy. */
  readonly serves: (ip: string) => boolean;
  /** Why an endpoint cannot be used here; undefined if it can. */
  readonly refusal: (address: string, cluster: string) => string | undefined;
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
}

/** A service of two families has two addresses. */
const addressesMax = 2;

export function choose({ owner, slices, addressProblem }: ServedImport, view: View): Choice {
  const problems = new Set(owner.traffic?.problems);
  const ports: PortChoice[] = [];
  const affinitySeconds = owner.traffic?.affinitySeconds ?? 0;
  for (const address of owner.kind === 'Headless' ? [] : owner.ips.slice(0, addressesMax)) {
    const ip = formatAddress(address);
    const problem = addressProblem(ip) ?? (view.serves(ip) ? undefined : outsideRanges(ip));
    if (problem !== undefined) {
      problems.add(problem);
      continue;
    }
    const family = familyOf(address);
    for (const port of firstOfEach(owner.ports)) {
      const chosen = backendsOf({ owner, port, slices, family, view, problems });
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
  readonly problems: Set<string>;
}

function backendsOf(request: PortRequest): Pick<PortChoice, 'backends' | 'lots'> {
  const { owner, port, slices, family, view, problems } = request;
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
  const gatewayProblem = speaksNoTunnel;
  const chooser = { from, locality, networks, gatewayProblem, trafficDistribution, routing };
  const choice = chooseEndpoints(backends, chooser, unready);
  for (const { cluster, count, why } of choice.leftOut)
    problems.add(`${count} endpoints of cluster ${cluster} are not reached: ${why}`);
  return { backends: chosenOf(choice), ...(choice.lots.length > 1 ? { lots: choice.lots } : {}) };
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
