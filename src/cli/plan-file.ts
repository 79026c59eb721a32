// The objects of a file given to `portolan plan`, completed by the home as if they were applied: a dry run fills in what
// the home would, and refuses what it would refuse. Nothing is changed.

import { parseAllDocuments } from 'yaml';
import type { Host } from '../base/host.ts';
import { isNotFound } from '../client/api-error.ts';
import type { Client } from '../client/client.ts';
import { formatTime } from '../model/conditions.ts';
import { type Namespace, namespaceType } from '../model/namespace.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../model/object.ts';
import { type Service, serviceType } from '../model/service.ts';
import { applyServiceDefaults } from '../model/service-defaults.ts';
import { type ServiceExport, serviceExportType } from '../model/service-export.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../model/service-export-policy.ts';
import { find } from './install.ts';

export interface PlannedObjects {
  /** By `namespace/name`. */
  readonly exports: ReadonlyMap<string, ServiceExport>;
  readonly services: ReadonlyMap<string, Service>;
  /** By name. */
  readonly policies: ReadonlyMap<string, ServiceExportPolicy>;
  /** Namespaces that the file itself brings, by name. */
  readonly namespaces: ReadonlyMap<string, Namespace>;
  /** What the file holds besides, which a plan does not look at. */
  readonly ignored: readonly string[];
}

export async function readPlanFile(host: Host, path: string, defaultNamespace: string): Promise<PlannedObjects> {
  const text = path === '-' ? await readInput() : await host.readText(path);
  if (text === undefined) throw new Error(`-f ${path}: no such file`);
  const exports = new Map<string, ServiceExport>();
  const services = new Map<string, Service>();
  const policies = new Map<string, ServiceExportPolicy>();
  const namespaces = new Map<string, Namespace>();
  const ignored: string[] = [];
  for (const object of parseObjects(text, path)) {
    const namespace = object.metadata.namespace ?? defaultNamespace;
    const placed = { ...object, metadata: { ...object.metadata, namespace } };
    const key = `${namespace}/${object.metadata.name}`;
    if (isOf(object, serviceExportType)) exports.set(key, { ...placed, apiVersion: 'multicluster.x-k8s.io/v1beta1' });
    else if (isOf(object, serviceType)) services.set(key, placed as Service);
    else if (isOf(object, namespaceType)) namespaces.set(object.metadata.name, object);
    else if (isOf(object, serviceExportPolicyType))
      policies.set(object.metadata.name, object as unknown as ServiceExportPolicy);
    else ignored.push(`${object.kind} ${key}`);
  }
  if (exports.size + services.size + policies.size === 0)
    throw new Error(`-f ${path}: there is no ServiceExport, Service or ServiceExportPolicy in it`);
  return { exports, services, policies, namespaces, ignored };
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function parseObjects(text: string, path: string): AnyObject[] {
  return parseAllDocuments(text).flatMap((document, index) => {
    const problem = 'errors' in document ? document.errors[0] : undefined;
    if (problem !== undefined) throw new Error(`-f ${path}: document ${index + 1} is not YAML`, { cause: problem });
    const value: unknown = 'toJS' in document ? document.toJS() : undefined;
    if (value === null || value === undefined) return [];
    const objects = (value as { kind?: string }).kind === 'List' ? (value as { items: unknown[] }).items : [value];
    return objects.map((object) => checked(object, `-f ${path}: document ${index + 1}`));
  });
}

function checked(value: unknown, where: string): AnyObject {
  const { apiVersion, kind, metadata } = value as Partial<KubernetesObject>;
  const isObject = typeof apiVersion === 'string' && typeof kind === 'string' && typeof metadata?.name === 'string';
  if (!isObject) throw new Error(`${where} is no object with apiVersion, kind and metadata.name`);
  return value as AnyObject;
}

function isOf(object: KubernetesObject, type: ResourceType): boolean {
  const group = object.apiVersion.includes('/') ? object.apiVersion.split('/')[0] : '';
  return object.kind === type.kind && group === type.group;
}

export interface CompleteRequest {
  readonly home: Client;
  readonly nowMs: number;
  /** Whether the namespace is still to come with the file. */
  readonly isNewNamespace: boolean;
}

/** The export as it would be after applying it. Its age counts from now if it is new. */
export async function completeExport(wanted: ServiceExport, request: CompleteRequest): Promise<ServiceExport> {
  const present = await find<ServiceExport>(request.home, serviceExportType, wanted.metadata);
  if (present !== undefined) return dryPatch(request.home, serviceExportType, wanted);
  if (!request.isNewNamespace) return request.home.create(serviceExportType, wanted, { isDryRun: true });
  return { ...wanted, metadata: { ...wanted.metadata, creationTimestamp: formatTime(request.nowMs) } };
}

export async function completeService(wanted: Service, request: CompleteRequest): Promise<Service> {
  const present = await find<Service>(request.home, serviceType, wanted.metadata);
  if (present !== undefined) return dryPatch(request.home, serviceType, wanted);
  if (!request.isNewNamespace) {
    try {
      return await request.home.create<Service>(serviceType, wanted, { isDryRun: true });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  const service = structuredClone(wanted);
  applyServiceDefaults(service);
  return service;
}

/** As the home would take it, or an error that says why not. */
export async function completePolicy(home: Client, wanted: ServiceExportPolicy): Promise<ServiceExportPolicy> {
  const present = await find(home, serviceExportPolicyType, wanted.metadata);
  if (present !== undefined) return dryPatch(home, serviceExportPolicyType, wanted);
  return home.create(serviceExportPolicyType, wanted, { isDryRun: true });
}

function dryPatch<T extends KubernetesObject>(home: Client, type: ResourceType, wanted: T): Promise<T> {
  const { namespace, name, labels, annotations } = wanted.metadata;
  const body = { ...wanted, metadata: { labels, annotations } };
  return home.patch<T>(type, { namespace, name }, { kind: 'merge', body }, { isDryRun: true });
}
