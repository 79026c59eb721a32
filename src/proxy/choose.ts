// The choice function of both modes: for each address and port of a service, the ready endpoints that new connections go
// to. Pure. Locality is the one rule of src/catalog/routing/locality.ts.

import { choose as chooseEndpoints, nearestOf } from '../catalog/routing/choose.ts';
import type { Place } from '../catalog/routing/locality.ts';
import type { SetLocality } from '../clusterset/rules/locality.ts';
import type { EndpointFacts, Family, PortFacts, Protocol, ServiceFacts, SliceFacts } from './facts.ts';

export interface Backend {
  readonly address: string;
  readonly port: number;
  readonly cluster: string;
  readonly zone?: string;
}

export interface PortChoice {
  readonly ip: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number;
  /** Each (address, port) once; empty if connections are to be refused. */
  readonly backends: readonly Backend[];
  /** 0 without session affinity. */
  readonly affinitySeconds: number;
}

/** Inputs of the choice besides the service itself. */
export interface View {
  readonly self: Place;
  readonly locality: SetLocality;
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

export function choose(service: ServiceFacts, slices: Iterable<SliceFacts>, view: View): Choice {
  const problems = new Set(service.problems);
  const all = [...slices];
  const ports: PortChoice[] = [];
  for (const { text: ip, family } of service.ips) {
    if (!view.serves(ip)) {
      problems.add(
        `${ip} is outside the ranges that this proxy serves: give --range, or correct addressRanges.clusterSet in the ClusterSet`,
      );
      continue;
    }
    const usable = all.filter((slice) => slice.family === family);
    for (const port of service.ports) {
      const backends = backendsOf(service, { port, slices: usable, view, problems });
      const { affinitySeconds } = service;
      ports.push({ ip, family, protocol: port.protocol, port: port.port, backends, affinitySeconds });
    }
  }
  return { ports, problems: [...problems].slice(0, problemsMax) };
}

interface PortRequest {
  readonly port: PortFacts;
  readonly slices: readonly SliceFacts[];
  readonly view: View;
  readonly problems: Set<string>;
}

function backendsOf(service: ServiceFacts, { port, slices, view, problems }: PortRequest): readonly Backend[] {
  const ready = new Map<string, Backend>();
  for (const slice of slices) {
    const target = slice.ports.find(({ name, protocol }) => name === port.name && protocol === port.protocol);
    // A cluster that does not expose the port has no such port in its slices.
    if (target === undefined) continue;
    for (const endpoint of slice.endpoints) {
      const refusal = view.refusal(endpoint.address, slice.cluster);
      if (refusal !== undefined) problems.add(refusal);
      else addBackend(ready, { slice, endpoint, port: target.port });
    }
  }
  const backends = onNode(service, [...ready.values()], view, problems);
  const { self: from, locality } = view;
  return nearestOf(chooseEndpoints(backends, { from, locality, trafficDistribution: service.trafficDistribution }));
}

function addBackend(
  ready: Map<string, Backend>,
  from: { readonly slice: SliceFacts; readonly endpoint: EndpointFacts; readonly port: number },
): void {
  const { address, zone } = from.endpoint;
  const key = `${address} ${from.port}`;
  const { cluster } = from.slice;
  const known = ready.get(key);
  // Two clusters that claim one address: the same one is named whatever came first.
  if (known !== undefined && known.cluster <= cluster) return;
  ready.set(key, { address, port: from.port, cluster, zone });
}

/** internalTrafficPolicy Local: endpoints of this node; if its addresses are not known, those of its cluster. */
function onNode(
  service: ServiceFacts,
  ready: readonly Backend[],
  { self, isOnNode }: View,
  problems: Set<string>,
): readonly Backend[] {
  if (!service.isNodeLocalOnly) return ready;
  const own = ready.filter(({ cluster }) => cluster === self.cluster);
  if (isOnNode !== undefined) return own.filter(({ address }) => isOnNode(address));
  problems.add(
    'internalTrafficPolicy Local: the pod range of this node is not known, so all endpoints of its cluster are used; give --node-range',
  );
  return own;
}
