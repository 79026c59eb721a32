// Renders the state of a clusterset in lines that a person can read and a test can compare.

import { endpointShardType } from '../src/clusterset/kinds/endpoint-shard.ts';
import { type ServiceExport, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import type { Client } from '../src/kube/client/client.ts';
import { isNotFound } from '../src/kube/objects/api-error.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  sourceClusterLabel,
} from '../src/kube/objects/endpoint-slice.ts';
import { eventType, type KubernetesEvent } from '../src/kube/objects/event.ts';
import type { KubernetesObject, ResourceType } from '../src/kube/objects/object.ts';

export async function find<T extends KubernetesObject>(
  client: Client,
  type: ResourceType,
  key: string,
): Promise<T | undefined> {
  const [namespace, name] = key.split('/') as [string, string];
  try {
    return await client.get<T>(type, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** `ClusterSetIP http:80/TCP from east,west`, or `none`. */
export async function importLine(client: Client, key: string): Promise<string> {
  const found = await find<ServiceImport>(client, serviceImportType, key);
  if (found === undefined) return 'none';
  const ports = (found.spec.ports ?? []).map(({ name, port, protocol }) => `${name ?? ''}:${port}/${protocol}`);
  const clusters = (found.status?.clusters ?? []).map(({ cluster }) => cluster);
  return `${found.spec.type} ${ports.join(' ')} from ${clusters.join(',')}`;
}

/** One line per source cluster and slice: `east: 10.1.0.1 10.1.0.2! on http>8080`; `!` marks those not ready. */
export async function sliceLines(client: Client, key: string): Promise<string[]> {
  const [namespace, name] = key.split('/') as [string, string];
  const labelSelector = `${importedServiceNameLabel}=${name}`;
  const { items } = await client.list<EndpointSlice>(endpointSliceType, { namespace, labelSelector });
  return items.map(sliceLine).sort();
}

function sliceLine(slice: EndpointSlice): string {
  const endpoints = (slice.endpoints ?? []).map(
    ({ addresses, conditions }) => `${(addresses ?? []).join(',')}${conditions?.ready === false ? '!' : ''}`,
  );
  const ports = (slice.ports ?? []).map(({ name, port }) => `${name}>${port}`);
  return `${slice.metadata.labels?.[sourceClusterLabel]}: ${[...endpoints].join(' ')} on ${ports.join(' ')}`;
}

/** `Valid=True/Valid Ready=True/Exported Conflict=False/NoConflicts`. */
export async function exportLine(client: Client, key: string): Promise<string> {
  const found = await find<ServiceExport>(client, serviceExportType, key);
  if (found === undefined) return 'none';
  return (found.status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status}/${reason}`).join(' ');
}

export async function conditionMessage(client: Client, key: string, type: string): Promise<string> {
  const found = await find<ServiceExport>(client, serviceExportType, key);
  return found?.status?.conditions?.find((condition) => condition.type === type)?.message ?? '';
}

/** `Warning Conflict` for each event about the export, in the order of their making. */
export async function eventLines(client: Client, key: string): Promise<string[]> {
  const [namespace, name] = key.split('/') as [string, string];
  const { items } = await client.list<KubernetesEvent>(eventType, { namespace });
  return items
    .filter(({ involvedObject }) => involvedObject.kind === 'ServiceExport' && involvedObject.name === name)
    .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
    .map(({ type, reason }) => `${type} ${reason}`);
}

export async function importedIps(client: Client, key: string): Promise<readonly string[]> {
  return (await find<ServiceImport>(client, serviceImportType, key))?.spec.ips ?? [];
}

/** `checkout.shop@17` for each record at the broker, leases aside. */
export async function brokerContents(broker: Client): Promise<string[]> {
  const lists = [serviceShardType, endpointShardType, endpointSliceType, serviceImportType].map((type) =>
    broker.list(type),
  );
  return (await Promise.all(lists)).flatMap(({ items }) =>
    items.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`),
  );
}
