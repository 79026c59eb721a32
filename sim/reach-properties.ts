// Properties of traffic in a calm clusterset: no new connection goes to a cluster that drains, or to one that may not
// export the service; and a derived Service follows its import.

import { isSameJson } from '../src/base/json.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { derivedFor } from '../src/clusterset/rules/derived-service.ts';
import { mayExport } from '../src/clusterset/rules/may-export.ts';
import type { Merge } from '../src/clusterset/rules/merge/merged.ts';
import { parseServiceKey } from '../src/clusterset/rules/names.ts';
import { isOurSlice } from '../src/clusterset/rules/plan-import-slices.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  isReady,
  serviceNameLabel,
  sourceClusterLabel,
} from '../src/kube/objects/endpoint-slice.ts';
import { keyOf } from '../src/kube/objects/object.ts';
import { type Service, serviceType } from '../src/kube/objects/service.ts';
import type { SimClusterSet } from './clusterset.ts';
import type { MemberTruth, Truth } from './truth.ts';

export function hasExposedPort(merge: Merge): boolean {
  return merge.ports.some(({ isExposed }) => isExposed);
}

export async function reachViolations(set: SimClusterSet, truth: Truth, member: MemberTruth): Promise<string[]> {
  const { admin } = set.home(member.id);
  const slices = (await admin.list<EndpointSlice>(endpointSliceType)).items.filter(isOurSlice);
  const imports = (await admin.list<ServiceImport>(serviceImportType)).items;
  const services = (await admin.list<Service>(serviceType)).items;
  return [
    ...slices.flatMap((slice) => wayViolations(truth, member, slice)),
    ...derivedViolations(truth, member, { imports, services, slices }),
  ];
}

function wayViolations(truth: Truth, { id }: MemberTruth, slice: EndpointSlice): string[] {
  const labels = slice.metadata.labels ?? {};
  const key = `${slice.metadata.namespace}/${labels[importedServiceNameLabel]}`;
  const source = truth.members.find((one) => one.id === labels[sourceClusterLabel]);
  if (source === undefined) return [];
  if (!mayExport(source, parseServiceKey(key))) return [`${id}: ${source.id} may not export ${key}, and is behind it`];
  const isDraining = source.isDraining || truth.shard(source.id, key)?.spec.draining === true;
  return isDraining && (slice.endpoints ?? []).some(isReady)
    ? [`${id}: new connections for ${key} go to ${source.id}, which drains`]
    : [];
}

interface Found {
  readonly imports: readonly ServiceImport[];
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
}

/** Where Services are derived, each import has one with its address and slices; otherwise there are none. */
function derivedViolations(
  truth: Truth,
  { id, ipSource }: MemberTruth,
  { imports, services, slices }: Found,
): string[] {
  const derived = new Map(services.map((service) => [derivedFor(service), service]));
  derived.delete(undefined);
  const violations: string[] = [];
  for (const found of imports) {
    const key = keyOf(found);
    const merge = truth.merge(key, id);
    if (merge === undefined || ipSource !== 'derived' || merge.type !== 'ClusterSetIP') continue;
    const service = derived.get(key);
    derived.delete(key);
    // Without a port none is made; one that was made before keeps its address.
    if (service === undefined && !hasExposedPort(merge)) continue;
    if (!isSameJson(service?.spec?.clusterIPs, found.spec.ips))
      violations.push(`${id}: ${key} has ${found.spec.ips}, its derived Service ${service?.spec?.clusterIPs}`);
    const behind = slices.filter(({ metadata }) => metadata.labels?.[importedServiceNameLabel] === found.metadata.name);
    const isBehind = ({ metadata }: EndpointSlice) => metadata.labels?.[serviceNameLabel] === service?.metadata.name;
    if (!behind.every(isBehind)) violations.push(`${id}: a slice of ${key} is not behind its derived Service`);
  }
  for (const key of derived.keys()) violations.push(`${id}: the derived Service of ${key} is left over`);
  return violations;
}
