// A shared service as the two drafts write it. The later draft has several SANs and splits a service into instances, one
// for each protocol; of those we keep the first SAN, all protocols, and how to reach the first instance.

import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FederatedServiceSchema as Service1Schema } from '../../gen/federation/types/v1alpha1/federated_service_pb.js';
import {
  type FederatedService as Service2,
  FederatedServiceSchema as Service2Schema,
} from '../../gen/federation/types/v1alpha2/federated_service_pb.js';
import { normalizeSan, type SharedService } from '../kinds/shared-service.ts';

export function encodeService1(service: SharedService): Uint8Array {
  const { name, description, tags, fqdn, id, san, protocols } = service;
  const message = create(Service1Schema, {
    name,
    description,
    tags: [...tags],
    labels: sortedLabels(service.labels),
    fqdn,
    id,
    san,
    protocols: [...protocols],
    endpoints: service.endpoints.map(({ address, port }) => ({ address, port })),
  });
  return toBinary(Service1Schema, message);
}

export function decodeService1(bytes: Uint8Array): SharedService {
  const { name, description, tags, labels, fqdn, id, san, protocols, endpoints } = fromBinary(Service1Schema, bytes);
  return {
    name,
    description,
    tags,
    labels,
    fqdn,
    id,
    san: normalizeSan(san),
    protocols,
    endpoints: endpoints.map(({ address, port }) => ({ address, port })),
  };
}

export function encodeService2(service: SharedService): Uint8Array {
  const { name, description, tags, fqdn, id, san, protocols } = service;
  const message = create(Service2Schema, {
    name,
    description,
    tags: [...tags],
    labels: sortedLabels(service.labels),
    fqdn,
    sans: [san],
    endpoints: service.endpoints.map(({ address, port }) => ({ address, port })),
    instances: protocols.map((protocol) => ({ id, protocol, metadata: { SNI: service.sni ?? id } })),
  });
  return toBinary(Service2Schema, message);
}

export function decodeService2(bytes: Uint8Array, resourceId: string): SharedService {
  const message = fromBinary(Service2Schema, bytes);
  const first = message.instances[0];
  const sni = first?.metadata['SNI'] || first?.id || resourceId;
  const id = resourceId || sni;
  return {
    ...(sni === id ? {} : { sni }),
    name: message.name,
    description: message.description,
    tags: message.tags,
    labels: message.labels,
    fqdn: message.fqdn,
    id,
    san: normalizeSan(message.sans[0] ?? ''),
    protocols: [...new Set(message.instances.map(({ protocol }) => protocol).filter((protocol) => protocol !== ''))],
    endpoints: endpointsOf(message),
  };
}

// A selector that matches no endpoint stands for all of them.
function endpointsOf({ endpoints, instances }: Service2): { address: string; port: number }[] {
  const selector = new Set(instances[0]?.endpointSelector ?? []);
  const selected = endpoints.filter(({ labels }) => labels.some((label) => selector.has(label)));
  return (selected.length === 0 ? endpoints : selected).map(({ address, port }) => ({ address, port }));
}

// Map entries are written in the order of the object; sorted, equal content has equal bytes.
function sortedLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1)));
}
