// PeerExport: services of one namespace that are shared with peers, and how they are named there. Pure.

import type { LabelSelector } from '../../kube/objects/label-selector.ts';
import { selectsLabels } from '../../kube/objects/label-selector.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { Service, ServicePort } from '../../kube/objects/service.ts';
import { isTcp } from './imported-service.ts';
import type { SharedEndpoint, SharedService } from './shared-service.ts';

export const peerExportType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'peerexports',
  kind: 'PeerExport',
  isNamespaced: true,
};

export interface PeerExport extends KubernetesObject {
  spec: PeerExportSpec;
  status?: PeerExportStatus;
}

export interface PeerExportSpec {
  services?: string[];
  serviceSelector?: LabelSelector;
  /** Name or number of the port that peers reach; the first over TCP if absent. */
  port?: string;
  peers: string[];
  fqdn?: string;
  serviceId?: string;
  san?: string;
  serviceAccount?: string;
  ingress?: SharedEndpoint[];
  /** Where the peers' mutual TLS ends: at the ingress, in the workload's name, or at the workload itself. */
  tls?: 'terminate' | 'passthrough';
  protocols?: string[];
  description?: string;
  tags?: string[];
  labels?: Record<string, string>;
  exportedLabels?: string[];
}

export interface PeerExportStatus {
  services?: number;
  peers?: { peer: string; state: 'Pending' | 'Acknowledged' | 'Refused'; message?: string }[];
  /** The peers and their states in one line, for lists. */
  shared?: string;
  observedGeneration?: number;
  conditions?: Condition[];
}

/** Defaults of the whole mesh for fields that an export leaves open. */
export interface MeshDefaults {
  readonly trustDomain: string;
  /** Services get `<service>.<namespace>.<domain>`. */
  readonly domain: string;
  readonly ingress: readonly SharedEndpoint[];
}

/** On a Service: passed on to peers. Tags are separated by commas. */
const descriptionAnnotation = 'portolan.dev/description';
const tagsAnnotation = 'portolan.dev/tags';

const defaultSan = 'spiffe://{trustDomain}/ns/{namespace}/sa/{serviceAccount}';

export function exportsService({ spec }: PeerExport, service: Service): boolean {
  if (spec.services?.includes(service.metadata.name)) return true;
  return spec.serviceSelector !== undefined && selectsLabels(spec.serviceSelector, service.metadata.labels ?? {});
}

/** The port that peers reach: a service has one SNI, and TLS uses TCP. */
export function sharedPort({ spec }: PeerExport, service: Service): ServicePort | undefined {
  const ports = (service.spec?.ports ?? []).filter(isTcp);
  if (spec.port === undefined) return ports[0];
  return ports.find(({ name }) => name === spec.port) ?? ports.find(({ port }) => String(port) === spec.port);
}

/** Empty if the service has the port that the export names. */
export function missingPort(peerExport: PeerExport, service: Service): string {
  const { port } = peerExport.spec;
  return port === undefined || sharedPort(peerExport, service) ? '' : `it has no port ${port} that goes over TCP`;
}

export function sharedServiceOf(peerExport: PeerExport, service: Service, mesh: MeshDefaults): SharedService {
  const { spec } = peerExport;
  const { name, namespace = '', annotations = {} } = service.metadata;
  const values: Record<string, string> = {
    service: name,
    namespace,
    trustDomain: mesh.trustDomain,
    serviceAccount: spec.serviceAccount ?? 'default',
  };
  const fqdn = fillIn(spec.fqdn ?? `{service}.{namespace}.${mesh.domain}`, values);
  return {
    name,
    description: annotations[descriptionAnnotation] ?? spec.description ?? '',
    tags: [...new Set([...(spec.tags ?? []), ...tagsIn(annotations[tagsAnnotation])])],
    labels: labelsOf(spec, service),
    fqdn,
    id: spec.serviceId === undefined ? fqdn : fillIn(spec.serviceId, values),
    san: fillIn(spec.san ?? defaultSan, values),
    protocols: spec.protocols ?? protocolsOf(peerExport, service),
    endpoints: spec.ingress ?? mesh.ingress,
  };
}

function fillIn(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}

function tagsIn(annotation: string | undefined): string[] {
  return (annotation ?? '')
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
}

function labelsOf(spec: PeerExportSpec, service: Service): Record<string, string> {
  const labels: Record<string, string> = { ...spec.labels };
  for (const key of spec.exportedLabels ?? []) {
    const value = service.metadata.labels?.[key];
    if (value !== undefined) labels[key] = value;
  }
  return labels;
}

// A port without appProtocol says at least how it is carried.
function protocolsOf(peerExport: PeerExport, service: Service): string[] {
  const named = peerExport.spec.port === undefined ? undefined : sharedPort(peerExport, service);
  const ports = named === undefined ? (service.spec?.ports ?? []) : [named];
  return [...new Set(ports.map((port) => port.appProtocol ?? (port.protocol ?? 'TCP').toLowerCase()))];
}
