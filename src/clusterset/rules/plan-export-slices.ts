// Plans what a cluster publishes of its endpoints: each source slice becomes one slice at the broker, never re-packed,
// with addresses as others reach them, readiness, zone and hostname and nothing else. Pure.

import { type Endpoint, type EndpointPort, type EndpointSlice, isReady } from '../../kube/objects/endpoint-slice.ts';
import { isHeadless, type Service } from '../../kube/objects/service.ts';
import { type OwnAddressRules, translate } from './address-translation.ts';
import { refusal } from './endpoint-address.ts';
import { hostnamesTooLong } from './names.ts';

export type EndpointMode = 'Pods' | 'ClusterIP';

export interface PublishedSlice {
  /** Unique among all slices that a cluster publishes. */
  readonly name: string;
  readonly addressType: 'IPv4' | 'IPv6';
  readonly endpoints: readonly Endpoint[];
  readonly ports: readonly EndpointPort[];
}

export interface SlicePlan {
  readonly slices: readonly PublishedSlice[];
  /** Endpoints that are ready and may be published; of a service published by its own address, ready pods. */
  readonly readyCount: number;
  /** The parts left out, and why, for people. */
  readonly notes: readonly string[];
  /** Addresses that were refused, and why. */
  readonly refused: readonly string[];
}

export interface SlicePlanRequest {
  readonly service: Service;
  readonly sources: readonly EndpointSlice[];
  readonly mode: EndpointMode;
  readonly rules: OwnAddressRules;
  /** Under which the endpoints of a headless service get their DNS names. */
  readonly dns: { readonly cluster: string; readonly zone: string };
}

/** Plans each source slice once: the same slice gives the very same plan for as long as the rules stay. */
export type SlicePlanner = (source: EndpointSlice, rules: OwnAddressRules) => PodSlicePlan;

export function createSlicePlanner(): SlicePlanner {
  const plans = new WeakMap<EndpointSlice, { rules: OwnAddressRules; plan: PodSlicePlan }>();
  return (source, rules) => {
    const known = plans.get(source);
    if (known?.rules === rules) return known.plan;
    const plan = planPodSlice(source, rules);
    plans.set(source, { rules, plan });
    return plan;
  };
}

export function planSlices(request: SlicePlanRequest, planSource: SlicePlanner = planPodSlice): SlicePlan {
  const { service, sources, mode, rules } = request;
  const planned = sources.map((source) => planSource(source, rules));
  const notes = unique(planned.flatMap((plan) => plan.notes));
  // A headless service has no address of its own: its pods are published in either mode (seed 002).
  if (mode === 'ClusterIP' && !isHeadless(service)) return { ...planClusterIp(service, sources, rules), notes };
  const readyCount = planned.reduce((sum, { slice }) => sum + (slice?.endpoints.filter(isReady).length ?? 0), 0);
  const slices = planned.map(({ slice }) => slice).filter((slice) => slice !== undefined);
  const refused = unique(planned.flatMap((plan) => plan.refused));
  return { slices, readyCount, notes: [...notes, ...longNames(request, slices)], refused };
}

function longNames({ service, dns }: SlicePlanRequest, slices: readonly PublishedSlice[]): string[] {
  if (!isHeadless(service)) return [];
  const hostnames = slices.flatMap(({ endpoints }) => endpoints.map(({ hostname }) => hostname ?? ''));
  const { name, namespace = '' } = service.metadata;
  const tooLong = hostnamesTooLong(
    hostnames.filter((hostname) => hostname !== ''),
    { ...dns, name, namespace },
  );
  if (tooLong.length === 0) return [];
  return [
    `${tooLong.length} endpoints have no DNS name of their own: ${tooLong[0]} would be longer than 253 characters`,
  ];
}

const notesMax = 5;
const unique = (texts: readonly string[]) => [...new Set(texts)].slice(0, notesMax);
const untranslated = 'the range that its own is translated to has no such address';

interface PodSlicePlan {
  readonly slice: PublishedSlice | undefined;
  readonly notes: readonly string[];
  readonly refused: readonly string[];
}

function planPodSlice(source: EndpointSlice, rules: OwnAddressRules): PodSlicePlan {
  const { name, namespace } = source.metadata;
  if (source.addressType === 'FQDN') {
    return { slice: undefined, notes: [`slice ${name} left out: it holds host names, not addresses`], refused: [] };
  }
  const refused: string[] = [];
  const endpoints = source.endpoints.map((endpoint) => planEndpoint(endpoint, rules, refused));
  const slice = {
    name: `${name}.${namespace}.pods`,
    addressType: source.addressType,
    endpoints: endpoints.filter((endpoint) => endpoint !== undefined),
    ports: (source.ports ?? []).map(planPort),
  };
  return { slice, notes: [], refused };
}

function planEndpoint(endpoint: Endpoint, rules: OwnAddressRules, refused: string[]): Endpoint | undefined {
  const addresses = (endpoint.addresses ?? []).flatMap((address) => {
    const published = translate(address, rules.translations);
    const why = published === undefined ? untranslated : refusal(published, rules);
    if (why !== undefined) refused.push(`endpoint ${address} refused: ${why}`);
    return why === undefined ? [published!] : [];
  });
  if (addresses.length === 0) return undefined;
  const { ready, serving, terminating } = endpoint.conditions ?? {};
  return {
    addresses,
    conditions: {
      ready: ready ?? true,
      serving: serving ?? ready ?? true,
      terminating: terminating ?? false,
    },
    hostname: endpoint.hostname,
    zone: endpoint.zone,
  };
}

function planPort(port: EndpointPort): EndpointPort {
  return {
    name: port.name ?? '',
    protocol: port.protocol ?? 'TCP',
    port: port.port,
    appProtocol: port.appProtocol,
  };
}

// Whether a pod could be reached from outside does not matter: connections go to the service's own address.
function planClusterIp(
  service: Service,
  sources: readonly EndpointSlice[],
  rules: OwnAddressRules,
): Omit<SlicePlan, 'notes'> {
  const { name, namespace } = service.metadata;
  const own = service.spec?.clusterIPs ?? (service.spec?.clusterIP ? [service.spec.clusterIP] : []);
  const ports = (service.spec?.ports ?? []).map(({ name: portName, protocol, port, appProtocol }) =>
    planPort({ name: portName, protocol, port, appProtocol }),
  );
  const readyPods = sources
    .filter(({ addressType }) => addressType !== 'FQDN')
    .reduce((sum, { endpoints }) => sum + endpoints.filter(isReady).length, 0);
  const refused: string[] = [];
  const addresses = own.flatMap((address) => {
    const published = translate(address, rules.translations);
    const why = published === undefined ? untranslated : refusal(published, rules);
    if (why !== undefined) refused.push(`cluster IP refused: ${why}`);
    return why === undefined ? [published!] : [];
  });
  const slices = addresses.map((address) => {
    const addressType = address.includes(':') ? ('IPv6' as const) : ('IPv4' as const);
    const endpoint = { addresses: [address], conditions: { ready: true, serving: true, terminating: false } };
    // No ready pod: no endpoint (seed 002, EndpointSlice behaviour).
    const endpoints = readyPods > 0 ? [endpoint] : [];
    return { name: `${name}.${namespace}.${addressType.toLowerCase()}`, addressType, endpoints, ports };
  });
  return { slices, readyCount: slices.length === 0 ? 0 : readyPods, refused };
}
