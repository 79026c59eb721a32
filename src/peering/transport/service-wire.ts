// A shared service as the two drafts write it. The later draft has several SANs, and instances that each have a protocol,
// an SNI and endpoints of their own; all of them are kept.

import { create, toBinary } from '@bufbuild/protobuf';
import { FederatedServiceSchema as Service1Schema } from '../../gen/federation/types/v1alpha1/federated_service_pb.js';
import {
  type FederatedService_Endpoint as Endpoint,
  type FederatedService_Instance as Instance,
  FederatedServiceSchema as Service2Schema,
} from '../../gen/federation/types/v1alpha2/federated_service_pb.js';
import { normalizeSan, type SharedEndpoint, type SharedInstance, type SharedService } from '../kinds/shared-service.ts';
import { decodeBounded } from './bounded-decode.ts';

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
  const { name, description, tags, labels, fqdn, id, san, protocols, endpoints } = decodeBounded(Service1Schema, bytes);
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
  const { name, description, tags, fqdn, san } = service;
  const message = create(Service2Schema, {
    name,
    description,
    tags: [...tags],
    labels: sortedLabels(service.labels),
    fqdn,
    sans: [san, ...(service.moreSans ?? [])],
    endpoints: service.endpoints.map(({ address, port, labels = [], description = '' }) => ({
      ...{ address, port, description },
      labels: [...labels],
    })),
    instances: instancesOf(service),
  });
  return toBinary(Service2Schema, message);
}

export function decodeService2(bytes: Uint8Array, resourceId: string): SharedService {
  const message = decodeBounded(Service2Schema, bytes);
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
    ...(message.sans.length > 1 ? { moreSans: message.sans.slice(1).map(normalizeSan) } : {}),
    protocols: [...new Set(message.instances.map(({ protocol }) => protocol).filter((protocol) => protocol !== ''))],
    endpoints: message.endpoints.map(endpointOf),
    ...(areTelling(message.instances, { id, sni }) ? { instances: message.instances.map(instanceOf) } : {}),
  };
}

function instancesOf({ id, sni = id, protocols, instances }: SharedService) {
  if (instances === undefined) return protocols.map((protocol) => ({ id, protocol, metadata: { SNI: sni } }));
  return instances.map(({ endpointSelector, metadata, description = '', ...rest }) => ({
    ...{ ...rest, description },
    endpointSelector: [...endpointSelector],
    metadata: sortedLabels(metadata),
  }));
}

/** Whether instances say more than one for each protocol would. */
function areTelling(
  instances: readonly Instance[],
  { id, sni }: { readonly id: string; readonly sni: string },
): boolean {
  return instances.some(({ id: own, metadata, endpointSelector, description, protocol }, index) => {
    const isPlain = own === id && Object.keys(metadata).join() === 'SNI' && metadata['SNI'] === sni;
    const isFirst = instances.findIndex((other) => other.protocol === protocol) === index;
    return !isPlain || !isFirst || endpointSelector.length > 0 || description !== '';
  });
}

function instanceOf({ id, protocol, metadata, endpointSelector, description }: Instance): SharedInstance {
  return { id, protocol, metadata, endpointSelector, ...(description === '' ? {} : { description }) };
}

function endpointOf({ address, port, labels, description }: Endpoint): SharedEndpoint {
  return {
    ...{ address, port },
    ...(labels.length === 0 ? {} : { labels }),
    ...(description === '' ? {} : { description }),
  };
}

// Map entries are written in the order of the object; sorted, equal content has equal bytes.
function sortedLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1)));
}
