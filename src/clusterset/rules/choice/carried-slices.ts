// The slices that a cluster's own data plane (kube-proxy, or eBPF) follows for an import: behind a Service of this cluster, with only
// the endpoints that the choice picks, and with hints where nodes of different zones use different ones. It has no weights. Pure.

import { digestOf } from '../../../kube/objects/bounded-name.ts';
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  importedServiceNameLabel,
  isReady,
  serviceNameLabel,
  serviceProxyNameLabel,
  sourceClusterLabel,
} from '../../../kube/objects/endpoint-slice.ts';
import { noRouting } from '../routing/routing.ts';
import { type Candidate, type Chooser, choose, chosenOf } from './choose.ts';
import type { Place } from './locality.ts';
import { speaksNoTunnel } from './reachable.ts';

/** On them: the import, in the same namespace, whose endpoints they carry. */
export const carriedForLabel = 'portolan.dev/carried-for';

export interface CarriedRequest extends Pick<Chooser, 'locality' | 'networks' | 'trafficDistribution' | 'routing'> {
  /** Slices of the import, as they lie in this cluster. */
  readonly imported: readonly EndpointSlice[];
  /** The Service that they are to stand behind, in the namespace of the import. */
  readonly behind: string;
  readonly self: Place;
  /** Endpoints of this cluster are left out: the Service has them already. */
  readonly hasOwnAlready?: boolean;
}

interface Option extends Candidate {
  readonly slice: EndpointSlice;
  readonly endpoint: Endpoint;
}

/** Zones by endpoint. */
type Picks = Map<Endpoint, string[]>;

export function planCarriedSlices(request: CarriedRequest): EndpointSlice[] {
  const { imported, hasOwnAlready = false, self } = request;
  const direct = imported.filter(({ addressType }) => addressType !== 'FQDN');
  const zones = zonesIn(direct, self);
  const picks = new Map<string, Picks>();
  for (const [kind, slices] of byPort(direct)) picks.set(kind, pick(slices, zones, request));
  return direct
    .filter((slice) => !hasOwnAlready || clusterOf(slice) !== self.cluster)
    .flatMap((slice) => carried(slice, { picks, zones, behind: request.behind }));
}

function clusterOf({ metadata }: EndpointSlice): string {
  return metadata.labels?.[sourceClusterLabel] ?? '';
}

/** Where nodes of this cluster are, as far as its endpoints show it. */
function zonesIn(slices: readonly EndpointSlice[], self: Place): string[] {
  const own = slices.filter((slice) => clusterOf(slice) === self.cluster);
  const zones = new Set(own.flatMap(({ endpoints }) => (endpoints ?? []).map(({ zone }) => zone ?? '')));
  return [...zones.add(self.zone ?? '')].filter((zone) => zone !== '').sort();
}

/** A cluster serves only the ports that its slices have: each port has a choice of its own. */
function byPort(slices: readonly EndpointSlice[]): Map<string, EndpointSlice[]> {
  const found = new Map<string, EndpointSlice[]>();
  for (const slice of slices)
    for (const port of portsOf(slice)) {
      const kind = kindOf(slice, port);
      found.set(kind, [...(found.get(kind) ?? []), slice]);
    }
  return found;
}

const noPort: EndpointPort = {};

function portsOf({ ports }: EndpointSlice): readonly EndpointPort[] {
  return ports === undefined || ports.length === 0 ? [noPort] : ports;
}

function kindOf({ addressType }: EndpointSlice, { name = '', protocol = 'TCP' }: EndpointPort): string {
  return `${addressType} ${protocol} ${name}`;
}

function pick(slices: readonly EndpointSlice[], zones: readonly string[], request: CarriedRequest): Picks {
  const { locality, networks, trafficDistribution, routing = noRouting, self } = request;
  const all: Option[] = slices.flatMap((slice) =>
    (slice.endpoints ?? []).map((endpoint) => ({
      cluster: clusterOf(slice),
      zone: endpoint.zone ?? '',
      slice,
      endpoint,
    })),
  );
  const ready = all.filter(({ endpoint }) => isReady(endpoint));
  const unready = all.filter(({ endpoint }) => !isReady(endpoint));
  const picks: Picks = new Map();
  for (const zone of zones.length === 0 ? [''] : zones) {
    const from = { ...self, zone };
    const chooser = { from, locality, networks, trafficDistribution, routing, gatewayProblem: speaksNoTunnel };
    for (const { endpoint } of chosenOf(choose(ready, chooser, unready)))
      picks.set(endpoint, [...(picks.get(endpoint) ?? []), zone]);
  }
  return picks;
}

interface Carrying {
  readonly picks: ReadonlyMap<string, Picks>;
  readonly zones: readonly string[];
  readonly behind: string;
}

/** One slice for all ports that have the same endpoints: nearly always one. */
function carried(slice: EndpointSlice, { picks, zones, behind }: Carrying): EndpointSlice[] {
  const bySelection = new Map<string, { readonly ports: EndpointPort[]; readonly endpoints: Endpoint[] }>();
  for (const port of portsOf(slice)) {
    const chosen = picks.get(kindOf(slice, port))!;
    const endpoints = (slice.endpoints ?? [])
      .filter((endpoint) => chosen.has(endpoint))
      .map((endpoint) => hinted(endpoint, { own: chosen.get(endpoint)!, chosen, zones }));
    if (endpoints.length === 0) continue;
    const selection = JSON.stringify(endpoints);
    const known = bySelection.get(selection) ?? { ports: [], endpoints };
    if (port !== noPort) known.ports.push(port);
    bySelection.set(selection, known);
  }
  return [...bySelection.values()].map(({ ports, endpoints }, index) => {
    const {
      [importedServiceNameLabel]: of = '',
      [serviceProxyNameLabel]: _proxy,
      ...labels
    } = slice.metadata.labels ?? {};
    const name = `${behind}-${digestOf(`${slice.metadata.name}/${index}`)}`;
    const marks = { [serviceNameLabel]: behind, [carriedForLabel]: of };
    return { ...slice, metadata: { ...slice.metadata, name, labels: { ...labels, ...marks } }, ports, endpoints };
  });
}

/** As many as the API takes. */
const hintsMax = 8;

interface Hinting {
  readonly own: readonly string[];
  readonly chosen: Picks;
  readonly zones: readonly string[];
}

/** Hints count only if all endpoints have them; there are none where all zones use the same ones. */
function hinted(endpoint: Endpoint, { own, chosen, zones }: Hinting): Endpoint {
  const differs = [...chosen.values()].some((each) => each.length < zones.length);
  const fits = [...chosen.values()].every((each) => each.length <= hintsMax);
  return differs && fits ? { ...endpoint, hints: { forZones: own.map((name) => ({ name })) } } : endpoint;
}
