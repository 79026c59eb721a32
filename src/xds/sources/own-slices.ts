// The slices of this cluster's own Services, watched once for all that leads to their endpoints: ingress and gateway.

import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type EndpointSlice, endpointSliceType, serviceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import type { SourceOptions } from './source.ts';

export function watchOwnSlices({ client, world, log }: SourceOptions): Informer<EndpointSlice> {
  return createInformer<EndpointSlice>({
    ...{ client, world, log, type: endpointSliceType, labelSelector: serviceNameLabel },
    indexes: { service: (slice) => [serviceKeyOf(slice)] },
  });
}

/** Those of one Service, by `namespace/name`. */
export function slicesOf(slices: Informer<EndpointSlice>, service: string): EndpointSlice[] {
  return slices.byIndex('service', service);
}

/** Called with `namespace/name` of each Service whose slices change. */
export function onServiceSlices(slices: Informer<EndpointSlice>, listener: (service: string) => void): () => void {
  return slices.on((_key, next, previous) => {
    for (const slice of [previous, next]) if (slice !== undefined) listener(serviceKeyOf(slice));
  });
}

function serviceKeyOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace ?? ''}/${metadata.labels?.[serviceNameLabel] ?? ''}`;
}
