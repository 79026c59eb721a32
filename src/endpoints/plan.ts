// Plans the slices of a Service from its endpoints. Pure.
//
// Endpoints stay in the slice they are in. New ones go where something changes anyway, else where they just fit, else
// into a new slice: one Pod that comes, goes or changes writes one slice. A family without endpoints keeps one empty
// slice, which shows that there are none, rather than that they are unknown.

import { isSameJson } from '../base/json.ts';
import type { IpFamily } from '../base/net/ip.ts';
import { digestOf } from '../kube/objects/bounded-name.ts';
import {
  type Endpoint,
  type EndpointSlice,
  serviceNameLabel,
  sliceManagedByLabel,
} from '../kube/objects/endpoint-slice.ts';
import { endpointsManager, type ServiceFacts } from './facts.ts';
import { type EndpointGroup, groupKey } from './pod-endpoint.ts';

const endpointsPerSliceMax = 100;
const headlessLabel = 'service.kubernetes.io/headless';

export interface SlicePlan {
  readonly creates: EndpointSlice[];
  readonly updates: EndpointSlice[];
  readonly deletes: EndpointSlice[];
}

export interface SlicePlanRequest {
  readonly service: ServiceFacts;
  readonly groups: ReadonlyMap<string, EndpointGroup>;
  /** Ours alone, of this Service. */
  readonly present: readonly EndpointSlice[];
}

/** A slice on its way to what it should be. */
interface Draft {
  readonly present: EndpointSlice | undefined;
  readonly group: Pick<EndpointGroup, 'family' | 'ports'>;
  endpoints: Endpoint[];
  isChanged: boolean;
}

export function planSlices(request: SlicePlanRequest): SlicePlan {
  const drafts: Draft[] = [];
  const surplus: EndpointSlice[] = [];
  const presentByGroup = Map.groupBy(request.present, (slice) => groupKey(slice.addressType, slice.ports ?? []));
  for (const [key, group] of request.groups) {
    drafts.push(...draftGroup(group, presentByGroup.get(key) ?? []));
    presentByGroup.delete(key);
  }
  for (const slices of presentByGroup.values()) surplus.push(...slices);
  const filled = drafts.filter((draft) => draft.endpoints.length > 0);
  const emptied = drafts.filter((draft) => draft.endpoints.length === 0).flatMap(({ present }) => present ?? []);
  const placeholders = placeholderDrafts(request, filled, [...emptied, ...surplus]);
  const kept = new Set(placeholders.map(({ present }) => present));
  return settle(
    request,
    [...filled, ...placeholders],
    [...emptied, ...surplus].filter((slice) => !kept.has(slice)),
  );
}

function draftGroup(group: EndpointGroup, present: readonly EndpointSlice[]): Draft[] {
  const wanted = new Map(group.endpoints.map((endpoint) => [identity(endpoint), endpoint]));
  const drafts = [...present].sort(byName).map((slice) => draftOf(slice, group, wanted));
  place(drafts, [...wanted.values()], group);
  return drafts;
}

/** Takes out of `wanted` what this slice already holds. */
function draftOf(slice: EndpointSlice, group: EndpointGroup, wanted: Map<string, Endpoint>): Draft {
  const endpoints: Endpoint[] = [];
  for (const endpoint of slice.endpoints ?? []) {
    const next = wanted.get(identity(endpoint));
    if (next === undefined || endpoints.length === endpointsPerSliceMax) continue;
    wanted.delete(identity(endpoint));
    endpoints.push(next);
  }
  return { present: slice, group, endpoints, isChanged: !isSameJson(endpoints, slice.endpoints ?? []) };
}

function place(drafts: Draft[], added: Endpoint[], group: EndpointGroup): void {
  const room = (draft: Draft) => endpointsPerSliceMax - draft.endpoints.length;
  for (const draft of drafts) if (draft.isChanged) draft.endpoints.push(...added.splice(0, room(draft)));
  while (added.length > 0) {
    const fitting = drafts.filter((draft) => room(draft) >= added.length);
    const tightest = fitting.reduce<Draft | undefined>(
      (a, b) => (a === undefined || room(b) < room(a) ? b : a),
      undefined,
    );
    const draft = tightest ?? { present: undefined, group, endpoints: [], isChanged: true };
    if (tightest === undefined) drafts.push(draft);
    draft.endpoints.push(...added.splice(0, room(draft)));
    draft.isChanged = true;
  }
}

function placeholderDrafts(
  { service }: SlicePlanRequest,
  filled: readonly Draft[],
  free: readonly EndpointSlice[],
): Draft[] {
  const missing = service.families.filter((family) => !filled.some(({ group }) => group.family === family));
  return missing.map((family) =>
    placeholder(
      family,
      [...free].sort(byName).find((slice) => slice.addressType === family),
    ),
  );
}

function placeholder(family: IpFamily, present: EndpointSlice | undefined): Draft {
  const isChanged = present === undefined || (present.endpoints ?? []).length > 0;
  return { present, group: { family, ports: present?.ports ?? [] }, endpoints: [], isChanged };
}

function settle({ service, present }: SlicePlanRequest, drafts: readonly Draft[], deletes: EndpointSlice[]): SlicePlan {
  const plan: SlicePlan = { creates: [], updates: [], deletes };
  const names = new Set(present.map((slice) => slice.metadata.name));
  for (const draft of drafts) {
    const slice = sliceOf(service, draft);
    if (draft.present === undefined) plan.creates.push(named(slice, service, names));
    else if (draft.isChanged || hasOtherMetadata(draft.present, slice)) plan.updates.push(slice);
  }
  return plan;
}

/** Names are planned, not random: a second try after a lost answer finds the slice of the first. */
function named(slice: EndpointSlice, service: ServiceFacts, names: Set<string>): EndpointSlice {
  const stem = `${service.name}-${digestOf(groupKey(slice.addressType, slice.ports ?? [])).slice(0, 8)}`;
  let number = 0;
  while (names.has(`${stem}-${number}`)) number += 1;
  const name = `${stem}-${number}`;
  names.add(name);
  return { ...slice, metadata: { ...slice.metadata, name } };
}

function sliceOf(service: ServiceFacts, { present, group, endpoints }: Draft): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...(present?.metadata ?? { name: '', namespace: service.namespace }),
      labels: labelsOf(service),
      ownerReferences: [
        {
          apiVersion: 'v1',
          kind: 'Service',
          name: service.name,
          uid: service.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    addressType: group.family,
    endpoints,
    ports: [...group.ports],
  };
}

function labelsOf(service: ServiceFacts): Record<string, string> {
  return {
    ...service.labels,
    ...(service.isHeadless ? { [headlessLabel]: '' } : {}),
    [serviceNameLabel]: service.name,
    [sliceManagedByLabel]: endpointsManager,
  };
}

function hasOtherMetadata(present: EndpointSlice, wanted: EndpointSlice): boolean {
  const own = ({ metadata }: EndpointSlice) => [metadata.labels ?? {}, metadata.ownerReferences ?? []];
  return !isSameJson(own(present), own(wanted));
}

function identity(endpoint: Endpoint): string {
  return `${endpoint.targetRef?.uid ?? ''} ${endpoint.addresses?.[0] ?? ''}`;
}

function byName(a: EndpointSlice, b: EndpointSlice): number {
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
