// How a published slice lies at the broker, and how it is read there: which service it belongs to is in its labels,
// which cluster it comes from is the namespace it lies in.

import { boundedName } from '../../kube/objects/bounded-name.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  sliceManagedByLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { sliceManager } from './agent-marks.ts';
import { formatServiceKey, type ServiceKey } from './names.ts';
import type { PublishedSlice } from './plan-export-slices.ts';

export const serviceNamespaceLabel = 'portolan.dev/service-namespace';

export function publishedRecord(slice: PublishedSlice, service: ServiceKey, namespace: string): EndpointSlice {
  return {
    apiVersion: apiVersionOf(endpointSliceType),
    kind: endpointSliceType.kind,
    metadata: {
      name: boundedName(slice.name),
      namespace,
      labels: {
        [importedServiceNameLabel]: service.name,
        [serviceNamespaceLabel]: service.namespace,
        [sliceManagedByLabel]: sliceManager,
      },
    },
    addressType: slice.addressType,
    endpoints: [...slice.endpoints],
    ports: [...slice.ports],
  };
}

/** Key of the service a slice at the broker belongs to; undefined for slices that are none of ours. */
export function publishedServiceKey(slice: EndpointSlice): string | undefined {
  const name = slice.metadata.labels?.[importedServiceNameLabel];
  const namespace = slice.metadata.labels?.[serviceNamespaceLabel];
  return name === undefined || namespace === undefined ? undefined : formatServiceKey({ name, namespace });
}
