// The local copies of this cluster's own facts, shared by all controllers of an agent: one watch per kind, indexed by
// what changes are looked up by.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { claimsByOwner } from '../../addresses/allocator.ts';
import { canonicalAddress, ownerKey } from '../../addresses/claim.ts';
import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { shareTexts } from '../../kube/controller/shared-texts.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  serviceNameLabel,
  sourceClusterLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { type ServiceExport, serviceExportType } from '../kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import { policyLabel } from '../rules/agent-marks.ts';
import { carriedForLabel } from '../rules/choice/carried-slices.ts';
import { legacyOrigin } from '../rules/legacy-import.ts';
import { formatServiceKey } from '../rules/names.ts';
import { sourceOfImport } from '../rules/routing/import-as.ts';
import { routedByAnnotation, routingAnnotation } from '../rules/routing/routing.ts';
import { isStandIn } from '../rules/routing/transparent.ts';

export interface HomeCopies {
  readonly namespaces: Informer<Namespace>;
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly exports: Informer<ServiceExport>;
  readonly imports: Informer<ServiceImport>;
  readonly claims: Informer<AddressClaim>;
  start(): void;
  stop(): void;
}

/** Indexes of `slices`: by the Service they stand behind, and by the ServiceImport. */
export const slicesByService = 'service';
export const slicesByImport = 'import';

/** Index of `services`. */
export const servicesByNamespace = 'namespace';

/** Index of `imports`: the ServiceImportPolicy that they go by. */
export const importsByPolicy = 'routed-by';

/** Index of `imports`, and its only key: those whose UDP ports are carried between networks. */
export const importsWithUdp = 'udp';

/** Index of `imports`: the service of the clusterset that they are of. */
export const importsBySource = 'source';

/** Index of `exports`, and the label it reads: the policy that made them. */
export const exportsByPolicy = 'policy';

/** Index of `imports`: by the reason of their Ready condition. */
export const importsByReason = 'ready-reason';

/** Index of `imports`: by the addresses that they name, in their shortest form. */
export const importsByAddress = 'address';

/** Index of `imports`: copies that an agent of the older form left here, by the service they are of. */
export const legacyImports = 'legacy';

export function createHomeCopies(options: {
  readonly home: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
}): HomeCopies {
  const shared = { client: options.home, world: options.world, log: options.log };
  const copies = {
    namespaces: createInformer<Namespace>({ ...shared, type: namespaceType }),
    services: createInformer<Service>({
      ...shared,
      type: serviceType,
      indexes: { [servicesByNamespace]: (service) => keysOf(service.metadata.namespace) },
    }),
    slices: createInformer<EndpointSlice>({
      ...shared,
      type: endpointSliceType,
      keep: keepSlice,
      indexes: {
        [slicesByService]: (slice) => keysOf(localServiceKey(slice)),
        [slicesByImport]: (slice) => keysOf(importKey(slice)),
      },
    }),
    exports: createInformer<ServiceExport>({
      ...shared,
      type: serviceExportType,
      indexes: { [exportsByPolicy]: (object) => keysOf(object.metadata.labels?.[policyLabel]) },
    }),
    imports: createInformer<ServiceImport>({
      ...shared,
      type: serviceImportType,
      indexes: {
        [importsByReason]: (object) => keysOf(conditionOf(object.status?.conditions, 'Ready')?.reason),
        [legacyImports]: (object) => keysOf(legacyKey(object)),
        [importsByAddress]: addressesOf,
        [importsBySource]: (object) => [sourceOfImport(object)],
        [importsByPolicy]: (object) => keysOf(object.metadata.annotations?.[routedByAnnotation]),
        [importsWithUdp]: ({ metadata }) =>
          metadata.annotations?.[routingAnnotation]?.includes('"u":') ? [importsWithUdp] : [],
      },
    }),
    claims: createInformer<AddressClaim>({
      ...shared,
      type: addressClaimType,
      indexes: { [claimsByOwner]: (claim) => [ownerKey(claim.spec.owner)] },
    }),
  };
  return {
    ...copies,
    start: () => {
      for (const informer of Object.values(copies)) informer.start();
    },
    stop: () => {
      for (const informer of Object.values(copies)) informer.stop();
    },
  };
}

/** `namespace/name` of the Service whose own endpoints these are; imported slices have none. */
export function localServiceKey(slice: EndpointSlice): string | undefined {
  const { labels, namespace } = slice.metadata;
  const name = labels?.[serviceNameLabel];
  return name === undefined || labels?.[sourceClusterLabel] !== undefined ? undefined : `${namespace}/${name}`;
}

/** `namespace/name` of the service that an import of the older form is of. */
export function legacyKey(object: ServiceImport): string | undefined {
  const origin = legacyOrigin(object);
  return origin && formatServiceKey(origin.service);
}

/** Those that an import names; a foreign writer may have put anything there. */
export function addressesOf({ spec }: ServiceImport): string[] {
  const ips: readonly unknown[] = Array.isArray(spec?.ips) ? spec.ips : [];
  return [...new Set(ips.slice(0, 2).map((ip) => canonicalAddress(String(ip))))];
}

/** This cluster's import of a service of the clusterset, under whatever name. */
export function importOf({ imports }: Pick<HomeCopies, 'imports'>, serviceKey: string): ServiceImport | undefined {
  return imports.byIndex(importsBySource, serviceKey)[0];
}

/** A Service that only stands for a name of the clusterset is nobody's to export. */
export function ownService({ services }: Pick<HomeCopies, 'services'>, key: string): Service | undefined {
  const found = services.get(key);
  return isStandIn(found) ? undefined : found;
}

export function importKey(slice: EndpointSlice): string | undefined {
  const { labels, namespace } = slice.metadata;
  const name = labels?.[importedServiceNameLabel] ?? labels?.[carriedForLabel];
  return name === undefined ? undefined : `${namespace}/${name}`;
}

// Lists that an API server left out are empty, and which pod or node an endpoint is stays at home. Hints matter where we write them.
function keepSlice(slice: EndpointSlice): EndpointSlice {
  const hasOurHints = slice.metadata.labels?.[carriedForLabel] !== undefined;
  return shareTexts({
    ...slice,
    ports: slice.ports ?? [],
    endpoints: (slice.endpoints ?? []).map(({ nodeName: _node, targetRef: _target, hints, ...kept }) =>
      hasOurHints && hints !== undefined ? { ...kept, hints } : kept,
    ),
  });
}

function keysOf(key: string | undefined): string[] {
  return key === undefined ? [] : [key];
}
