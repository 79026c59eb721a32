// The objects of a file given to `portolan plan`, completed by the home as if they were applied: a dry run fills in what
// the home would, and refuses what it would refuse. Nothing is changed.

import { parseAllDocuments } from 'yaml';
import type { Host } from '../../base/host.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../../clusterset/kinds/service-export-policy.ts';
import { type ServiceImportPolicy, serviceImportPolicyType } from '../../clusterset/kinds/service-import-policy.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { applyServiceDefaults } from '../../kube/objects/service-defaults.ts';
import { usageError } from '../exit-codes.ts';

export interface PlannedObjects {
  /** By `namespace/name`. */
  readonly exports: ReadonlyMap<string, ServiceExport>;
  readonly services: ReadonlyMap<string, Service>;
  /** By name. */
  readonly policies: ReadonlyMap<string, ServiceExportPolicy>;
  /** By name. */
  readonly importPolicies: ReadonlyMap<string, ServiceImportPolicy>;
  /** Namespaces that the file itself brings, by name. */
  readonly namespaces: ReadonlyMap<string, Namespace>;
  /** Other objects in the file, which a plan ignores. */
  readonly ignored: readonly string[];
}

export interface PlanRequest {
  readonly home: Client;
  readonly broker: Client;
  readonly membership: MembershipRecord;
  readonly objects: PlannedObjects;
}

export async function readPlanFile(host: Host, path: string, defaultNamespace: string): Promise<PlannedObjects> {
  const text = path === '-' ? await readInput() : await readFile(host, path);
  if (text === undefined) throw usageError(`-f ${path}: no such file`);
  const exports = new Map<string, ServiceExport>();
  const services = new Map<string, Service>();
  const policies = new Map<string, ServiceExportPolicy>();
  const importPolicies = new Map<string, ServiceImportPolicy>();
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
    else if (isOf(object, serviceImportPolicyType))
      importPolicies.set(object.metadata.name, object as unknown as ServiceImportPolicy);
    else ignored.push(`${object.kind} ${key}`);
  }
  if (exports.size + services.size + policies.size + importPolicies.size === 0)
    throw usageError(
      `-f ${path}: there is no ServiceExport, Service, ServiceExportPolicy or ServiceImportPolicy in it`,
    );
  return { exports, services, policies, importPolicies, namespaces, ignored };
}

async function readFile(host: Host, path: string): Promise<string | undefined> {
  try {
    return await host.readText(path);
  } catch (cause) {
    const isFolder = (cause as { code?: string }).code === 'EISDIR';
    const what = isFolder ? 'is a folder; give one file, or - and all of them on standard input' : 'cannot be read';
    throw usageError(`-f ${path}: ${what}`, isFolder ? undefined : { cause });
  }
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function parseObjects(text: string, path: string): AnyObject[] {
  return parseAllDocuments(text).flatMap((document, index) => {
    const problem = 'errors' in document ? document.errors[0] : undefined;
    if (problem !== undefined) throw usageError(`-f ${path}: document ${index + 1} is not YAML`, { cause: problem });
    const value: unknown = 'toJS' in document ? document.toJS() : undefined;
    if (value === null || value === undefined) return [];
    const where = `-f ${path}: document ${index + 1}`;
    return itemsOf(value, where).map((object) => checked(object, where));
  });
}

/** kubectl writes a List of nothing with items that are null, or without any. */
function itemsOf(value: unknown, where: string): unknown[] {
  const { kind, items } = value as { kind?: unknown; items?: unknown };
  if (kind !== 'List') return [value];
  if (items !== undefined && items !== null && !Array.isArray(items)) throw usageError(`${where}: items is not a list`);
  return items ?? [];
}

function checked(value: unknown, where: string): AnyObject {
  const { apiVersion, kind, metadata } = (value ?? {}) as Partial<KubernetesObject>;
  const isObject = typeof apiVersion === 'string' && typeof kind === 'string' && typeof metadata?.name === 'string';
  if (!isObject) throw usageError(`${where} is not an object with apiVersion, kind and metadata.name`);
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
  /** Whether the home has it already; looked up when absent. */
  readonly isThere?: boolean;
}

/** The export as it would be after applying it. Its age counts from now if it is new. */
export async function completeExport(wanted: ServiceExport, request: CompleteRequest): Promise<ServiceExport> {
  if (await isThere(serviceExportType, wanted, request)) return dryPatch(request.home, serviceExportType, wanted);
  if (!request.isNewNamespace) return request.home.create(serviceExportType, wanted, { isDryRun: true });
  return { ...wanted, metadata: { ...wanted.metadata, creationTimestamp: formatTime(request.nowMs) } };
}

async function isThere(type: ResourceType, wanted: KubernetesObject, request: CompleteRequest): Promise<boolean> {
  return request.isThere ?? (await getOrUndefined(request.home, type, wanted.metadata)) !== undefined;
}

export async function completeService(wanted: Service, request: CompleteRequest): Promise<Service> {
  if (await isThere(serviceType, wanted, request)) return dryPatch(request.home, serviceType, wanted);
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
export async function completePolicy<T extends KubernetesObject>(
  home: Client,
  type: ResourceType,
  wanted: T,
): Promise<T> {
  const present = await getOrUndefined(home, type, wanted.metadata);
  if (present !== undefined) return dryPatch(home, type, wanted);
  return home.create(type, wanted, { isDryRun: true });
}

function dryPatch<T extends KubernetesObject>(home: Client, type: ResourceType, wanted: T): Promise<T> {
  const { namespace, name, labels, annotations } = wanted.metadata;
  const body = { ...wanted, metadata: { labels, annotations } };
  return home.patch<T>(type, { namespace, name }, { kind: 'merge', body }, { isDryRun: true });
}
