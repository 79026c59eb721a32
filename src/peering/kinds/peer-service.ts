// PeerService: a service that a peer shares with us, as this cluster keeps it. Pure: from what came over the wire to the
// object and back, and the names under which it answers here.

import { createHash } from 'node:crypto';
import { digestOf } from '../../kube/objects/bounded-name.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { SharedEndpoint, SharedInstance, SharedService } from './shared-service.ts';

export const peerServiceType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'peerservices',
  kind: 'PeerService',
  isNamespaced: true,
};

export interface PeerService extends KubernetesObject {
  spec: PeerServiceSpec;
  status?: PeerServiceStatus;
}

export interface PeerServiceSpec {
  peer: string;
  id: string;
  sni?: string;
  name?: string;
  fqdn?: string;
  description?: string;
  tags?: string[];
  labels?: Record<string, string>;
  sans?: string[];
  protocols?: string[];
  endpoints?: SharedEndpoint[];
  instances?: SharedInstance[];
}

/** Absent is Active: the owner confirms it. */
export type PeerServiceState = 'Active' | 'Stale' | 'Suspect' | 'Refused';

export interface PeerServiceStatus {
  state?: PeerServiceState;
  message?: string;
  since?: string;
  ips?: string[];
  hostnames?: string[];
  conditions?: Condition[];
}

export const peerLabel = 'portolan.dev/peer';
/** SHA-256 of the content as its owner sent it, and of the spec as we wrote it, in base64. */
export const contentHashAnnotation = 'portolan.dev/content-hash';
export const specHashAnnotation = 'portolan.dev/spec-hash';
/** When this cluster first received it, in milliseconds: of two that claim one name the older keeps it. */
export const firstSeenAnnotation = 'portolan.dev/first-seen';
/** The domain of the names that only this cluster gives, and where in it services are. */
export const peersDomain = 'peers.local';
const peersZone = `svc.${peersDomain}`;

/** One object for each (peer, id), and never the same name for two of them. */
export function peerServiceName(peer: string, id: string): string {
  const isPlain = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(id) && !id.includes('..') && peer.length + id.length < 240;
  return isPlain ? `${peer}.${id}` : `${peer}.x-${digestOf(id)}${digestOf(`${id}/2`)}`;
}

export function specOf(peer: string, service: SharedService): PeerServiceSpec {
  return {
    peer,
    id: service.id,
    sni: service.sni,
    name: service.name,
    fqdn: service.fqdn,
    description: service.description,
    tags: [...new Set(service.tags)],
    labels: { ...service.labels },
    sans: [...new Set([service.san, ...(service.moreSans ?? [])])],
    protocols: [...new Set(service.protocols)],
    endpoints: [...service.endpoints],
    ...(service.instances === undefined ? {} : { instances: [...service.instances] }),
  };
}

/** Undefined for a service that was refused from the beginning: nothing good is known of it. */
export function sharedServiceIn({ spec }: PeerService): SharedService | undefined {
  if (spec.fqdn === undefined || spec.sans?.[0] === undefined) return undefined;
  return {
    id: spec.id,
    sni: spec.sni,
    name: spec.name ?? '',
    fqdn: spec.fqdn,
    description: spec.description ?? '',
    tags: spec.tags ?? [],
    labels: spec.labels ?? {},
    san: spec.sans[0],
    ...(spec.sans.length > 1 ? { moreSans: spec.sans.slice(1) } : {}),
    protocols: spec.protocols ?? [],
    endpoints: spec.endpoints ?? [],
    instances: spec.instances,
  };
}

/** The same for equal specs, whatever the order of their fields. */
export function specHash(spec: PeerServiceSpec): string {
  return createHash('sha256').update(canonical(spec)).digest('base64');
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`;
}

/** `<name>.<peer>.svc.peers.local`: always the peer's own, so no other can take it. */
export function aliasOf(
  peer: string,
  service: { readonly name?: string; readonly fqdn?: string; readonly id: string },
) {
  return `${labelOf(service)}.${peer}.${peersZone}`;
}

function labelOf({ name = '', fqdn = '', id }: { name?: string; fqdn?: string; id: string }): string {
  const isLabel = (text: string) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text);
  const first = fqdn.split('.')[0]?.toLowerCase() ?? '';
  if (isLabel(name.toLowerCase())) return name.toLowerCase();
  return isLabel(first) ? first : `x-${digestOf(id)}`;
}

/** Its names unless another service claims them: its FQDN and its alias, or those in its status. */
export function hostnamesOf({ spec, status }: PeerService): string[] {
  if (spec.fqdn === undefined || status?.state === 'Refused') return [];
  if (status?.hostnames !== undefined) return status.hostnames;
  const fqdn = spec.fqdn.toLowerCase().replace(/\.$/, '');
  return [fqdn, aliasOf(spec.peer, spec)];
}

/** All that it takes to use it: names and addresses for clients; for a proxy where to connect, the SNI to ask for there, and
 *  the name that the workload's own certificate must have. */
export interface PeerServiceReach {
  readonly peer: string;
  readonly id: string;
  readonly hostnames: readonly string[];
  readonly ips: readonly string[];
  readonly protocols: readonly string[];
  readonly ingress: readonly SharedEndpoint[];
  readonly sni: string;
  readonly sans: readonly string[];
  /** The ways to it, where its owner tells several apart; the first one is what `sni` and `ingress` say. */
  readonly instances?: readonly InstanceReach[];
  readonly state: PeerServiceState;
  readonly since?: string;
  readonly message?: string;
  /** Why connections to it lead nowhere, as its Peer says. */
  readonly notCarried?: { readonly reason: string; readonly message: string };
}

export function reachOf(service: PeerService): PeerServiceReach {
  const { spec, status } = service;
  return {
    peer: spec.peer,
    id: spec.id,
    hostnames: hostnamesOf(service),
    ips: status?.ips ?? [],
    protocols: spec.protocols ?? [],
    ingress: endpointsOf(spec, spec.instances?.[0]),
    sni: spec.sni ?? spec.id,
    sans: spec.sans ?? [],
    ...(spec.instances === undefined
      ? {}
      : { instances: spec.instances.map((instance) => instanceReachOf(spec, instance)) }),
    state: status?.state ?? 'Active',
    ...(status?.since === undefined ? {} : { since: status.since }),
    ...(status?.message === undefined ? {} : { message: status.message }),
  };
}

interface InstanceReach {
  readonly id: string;
  readonly protocol: string;
  readonly sni: string;
  /** Host and port that the workload itself expects, if its owner says so. */
  readonly hostname?: string;
  readonly port?: number;
  readonly ingress: readonly SharedEndpoint[];
}

function instanceReachOf(spec: PeerServiceSpec, instance: SharedInstance): InstanceReach {
  const { SNI: sni, HOSTNAME: hostname, PORT: port } = instance.metadata;
  return {
    ...{ id: instance.id, protocol: instance.protocol, sni: sni || instance.id },
    ...(hostname ? { hostname } : {}),
    ...(port ? { port: Number(port) } : {}),
    ingress: endpointsOf(spec, instance),
  };
}

/** A selector that matches no endpoint stands for all of them. */
function endpointsOf({ endpoints }: PeerServiceSpec, instance: SharedInstance | undefined): SharedEndpoint[] {
  const all = endpoints ?? [];
  const selected = all.filter(({ labels }) => labels?.some((label) => instance?.endpointSelector.includes(label)));
  return (selected.length === 0 ? all : selected).map(({ address, port }) => ({ address, port }));
}
