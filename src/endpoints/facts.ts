// The few fields of Services, Pods and Nodes from which endpoints are made: there may be many.

import { BoundedCache } from '../base/bounded-cache.ts';
import type { IpFamily } from '../base/net/ip.ts';
import { type EndpointSlice, sliceManagedByLabel } from '../kube/objects/endpoint-slice.ts';
import type { Node } from '../kube/objects/node.ts';
import type { Pod } from '../kube/objects/pod.ts';
import { isHeadless, type Service, type ServicePort } from '../kube/objects/service.ts';

export interface ServiceFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Never empty: Services without one are not handled here. */
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly ServicePort[];
  readonly families: readonly IpFamily[];
  readonly isHeadless: boolean;
  readonly publishesNotReady: boolean;
}

export interface PodFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ips: readonly string[];
  readonly namedPorts: readonly { readonly name: string; readonly protocol: string; readonly port: number }[];
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  readonly nodeName: string | undefined;
  readonly hostname: string | undefined;
  readonly subdomain: string | undefined;
}

export interface NodeFacts {
  readonly zone: string | undefined;
}

/** Ports and families are alike for most Services: each different value is held once. They are never changed in place. */
export class Shapes {
  readonly #known = new BoundedCache<unknown>(shapesMax);

  share<Value>(value: Value): Value {
    const text = JSON.stringify(value);
    const known = this.#known.get(text);
    if (known !== undefined) return known as Value;
    this.#known.set(text, value);
    return value;
  }
}

const shapesMax = 1000;
const zoneLabel = 'topology.kubernetes.io/zone';

/** Undefined for a Service that no endpoints are made for. */
export function serviceFacts(service: Service, shapes: Shapes): ServiceFacts | undefined {
  const { spec = {}, metadata } = service;
  const hasSelector = Object.keys(spec.selector ?? {}).length > 0;
  if (!hasSelector || spec.type === 'ExternalName' || metadata.deletionTimestamp !== undefined) return undefined;
  const { name, labels = {} } = metadata;
  return {
    namespace: metadata.namespace ?? '',
    name,
    uid: metadata.uid ?? '',
    labels: withTextsOf(labels, { name }),
    selector: withTextsOf(spec.selector!, { name, labels }),
    ports: shapes.share(spec.ports ?? []),
    families: shapes.share(familiesOf(service)),
    isHeadless: isHeadless(service),
    publishesNotReady: spec.publishNotReadyAddresses === true,
  };
}

function familiesOf({ spec }: Service): readonly IpFamily[] {
  if (spec?.ipFamilies !== undefined && spec.ipFamilies.length > 0) return spec.ipFamilies;
  return [spec?.clusterIP?.includes(':') ? 'IPv6' : 'IPv4'];
}

/** Undefined for a Pod that has ended for good, or has no address yet. */
export function podFacts(pod: Pod): PodFacts | undefined {
  const { spec = {}, status = {}, metadata } = pod;
  const ips = status.podIPs?.map(({ ip }) => ip) ?? (status.podIP ? [status.podIP] : []);
  if (ips.length === 0 || status.phase === 'Succeeded' || status.phase === 'Failed') return undefined;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    ips,
    namedPorts: namedPortsOf(pod),
    isReady: (status.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True'),
    isTerminating: metadata.deletionTimestamp !== undefined,
    nodeName: spec.nodeName,
    hostname: spec.hostname,
    subdomain: spec.subdomain,
  };
}

function namedPortsOf({ spec }: Pod): PodFacts['namedPorts'] {
  // An init container that is restarted for ever is a sidecar, and serves like any other.
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const named: { name: string; protocol: string; port: number }[] = [];
  for (const container of [...(spec?.containers ?? []), ...sidecars]) {
    for (const { name, protocol = 'TCP', containerPort } of container.ports ?? []) {
      if (name !== undefined) named.push({ name, protocol, port: containerPort });
    }
  }
  return named;
}

/** Without what the server sets anyway; texts that all our slices share, or that its Service has, are held once. */
export function sliceFacts(
  { metadata: whole, addressType, endpoints, ports }: EndpointSlice,
  { service, shapes }: { readonly service: ServiceFacts | undefined; readonly shapes: Shapes },
): EndpointSlice {
  const { creationTimestamp: _created, generation: _generation, ...metadata } = whole;
  const labels = { ...metadata.labels, [sliceManagedByLabel]: endpointsManager };
  for (const owner of metadata.ownerReferences ?? []) {
    if (owner.uid !== service?.uid || owner.name !== service.name) continue;
    owner.uid = service.uid;
    owner.name = service.name;
  }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: service === undefined ? labels : withTextsOf(labels, service) },
    addressType,
    // Only those without endpoints are alike.
    endpoints: endpoints?.length === 0 ? shapes.share(endpoints) : endpoints,
    ...(ports && { ports: shapes.share(ports) }),
  };
}

/** Changes nothing but where a text lies: each parsed text is one of its own, and labels often repeat the name. */
function withTextsOf(
  texts: Record<string, string>,
  { name, labels = {} }: { readonly name: string; readonly labels?: Readonly<Record<string, string>> },
): Record<string, string> {
  for (const key in texts) {
    if (texts[key] === name) texts[key] = name;
    else if (texts[key] === labels[key]) texts[key] = labels[key]!;
  }
  return texts;
}

export function nodeFacts(node: Node): NodeFacts {
  return { zone: node.metadata.labels?.[zoneLabel] };
}

export function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  for (const key in selector) if (labels[key] !== selector[key]) return false;
  return true;
}

export const endpointsManager = 'endpointslice-controller.portolan.dev';
