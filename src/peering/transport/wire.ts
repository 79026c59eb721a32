// Messages to bytes and back, for both drafts of the protocol. `Draft` is all that the rest of peering knows of them.

import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { Any } from '@bufbuild/protobuf/wkt';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import * as discovery1 from '../../gen/federation/resourcediscovery/v1alpha1/discovery_pb.js';
import * as discovery2 from '../../gen/federation/resourcediscovery/v1alpha2/discovery_pb.js';
import { FederatedServiceSchema } from '../../gen/federation/types/v1alpha1/federated_service_pb.js';
import { type Status, StatusSchema } from '../../gen/google/rpc/status_pb.js';
import { SnapshotEndSchema } from '../../gen/portolan/peering/v1/snapshot_end_pb.js';
import type { SharedService } from '../kinds/shared-service.ts';
import type { ConsumerMessage, Offer, OwnerMessage, ReceivedMessage, SnapshotEnd } from '../session/messages.ts';
import { decodeBounded } from './bounded-decode.ts';
import { decodeService1, decodeService2, encodeService1, encodeService2 } from './service-wire.ts';

type DraftName = 'v1alpha1' | 'v1alpha2';

export interface Draft {
  readonly name: DraftName;
  /** The gRPC method's path. */
  readonly path: string;
  readonly resourceUrl: string;
  encodeOffer(service: SharedService): Offer;
  /** Both sides may publish and subscribe on one stream. */
  readonly isBidirectional: boolean;
  /** `context` is what the consumer said with its subscription, if the draft has it. */
  encodeOwnerMessage(message: OwnerMessage, context?: string): Uint8Array;
  /** Throws on bytes that are not a message at all; a resource that cannot be read comes as `unreadable`. */
  decodeOwnerMessage(bytes: Uint8Array): ReceivedMessage | undefined;
  /** Nonce and id of an owner's message that is cut off; each empty if it is missing. */
  namesIn(beginning: Uint8Array): { readonly nonce: string; readonly id: string };
  encodeConsumerMessage(message: ConsumerMessage, context?: string): Uint8Array;
  decodeConsumerMessage(bytes: Uint8Array): ConsumerMessage | undefined;
}

export const snapshotEndUrl = 'type.googleapis.com/portolan.peering.v1.SnapshotEnd';
const url1 = 'type.googleapis.com/federation.types.v1alpha1.FederatedService';
const url2 = 'type.googleapis.com/federation.types.v1alpha2.FederatedService';

const Operation1 = discovery1.StreamResponse_Operation;
const Operation2 = discovery2.StreamResponse_Operation;

export const v1alpha1: Draft = {
  name: 'v1alpha1',
  isBidirectional: false,
  path: '/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream',
  resourceUrl: url1,
  encodeOffer: (service) => offerOf(service, encodeService1(service)),

  encodeOwnerMessage(message) {
    const operations = {
      create: Operation1.CREATE,
      update: Operation1.UPDATE,
      delete: Operation1.DELETE,
      snapshotEnd: Operation1.UNKNOWN,
    };
    return toBinary(
      discovery1.StreamResponseSchema,
      create(discovery1.StreamResponseSchema, {
        nonce: message.nonce,
        resourceUrl: url1,
        resource: resourceOf(message, url1),
        operation: operations[message.kind],
      }),
    );
  },

  decodeOwnerMessage(bytes) {
    const { nonce, resourceUrl, resource, operation } = decodeBounded(discovery1.StreamResponseSchema, bytes);
    if (resource?.typeUrl === snapshotEndUrl) return { kind: 'snapshotEnd', nonce, end: decodeEnd(resource) };
    const known = operation === Operation1.CREATE || operation === Operation1.UPDATE || operation === Operation1.DELETE;
    if (!known) return unreadable(nonce, idOf1(resource), `operation: ${operation} is none of CREATE, UPDATE, DELETE`);
    const wrong = whatIsWrongWithUrls(resourceUrl, resource, url1);
    if (wrong !== undefined) return unreadable(nonce, idOf1(resource), wrong);
    const isDelete = operation === Operation1.DELETE;
    return readResource({ nonce, resource: resource as Any, isDelete, idIn: idOf1, decode: decodeService1 });
  },

  namesIn(beginning) {
    const fields = leadingFields(beginning);
    return {
      nonce: textOf(fields.get(1)),
      id: idOf1({ value: leadingFields(fields.get(3)?.bytes).get(2)?.bytes ?? noBytes }),
    };
  },

  encodeConsumerMessage: (message) =>
    toBinary(discovery1.StreamRequestSchema, create(discovery1.StreamRequestSchema, requestOf(message))),
  decodeConsumerMessage: (bytes) => consumerMessageOf(decodeBounded(discovery1.StreamRequestSchema, bytes)),
};

export const v1alpha2: Draft = {
  name: 'v1alpha2',
  isBidirectional: true,
  path: '/federation.resourcediscovery.v1alpha2.DiscoveryService/EstablishStream',
  resourceUrl: url2,
  encodeOffer: (service) => offerOf(service, encodeService2(service)),

  encodeOwnerMessage(message, context = '') {
    const operations = {
      create: Operation2.UPSERT,
      update: Operation2.UPSERT,
      delete: Operation2.DELETE,
      snapshotEnd: Operation2.UNKNOWN,
    };
    const response = create(discovery2.StreamResponseSchema, {
      nonce: message.nonce,
      resourceUrl: url2,
      resourceId: message.kind === 'snapshotEnd' ? '' : message.offer.service.id,
      resource: resourceOf(message, url2),
      operation: operations[message.kind],
      context,
    });
    return toBinary(discovery2.BidirectionalStreamSchema, create(discovery2.BidirectionalStreamSchema, { response }));
  },

  decodeOwnerMessage(bytes) {
    const { response } = decodeBounded(discovery2.BidirectionalStreamSchema, bytes);
    if (response === undefined) return undefined;
    const { nonce, resourceUrl, resourceId, resource, operation } = response;
    if (resource?.typeUrl === snapshotEndUrl) return { kind: 'snapshotEnd', nonce, end: decodeEnd(resource) };
    if (operation === Operation2.DELETE && resourceId !== '') return { kind: 'delete', nonce, id: resourceId };
    if (operation !== Operation2.UPSERT && operation !== Operation2.DELETE)
      return unreadable(nonce, resourceId, `operation: ${operation} is neither UPSERT nor DELETE`);
    const wrong = whatIsWrongWithUrls(resourceUrl, resource, url2);
    if (wrong !== undefined) return unreadable(nonce, resourceId, wrong);
    return readResource({
      nonce,
      resource: resource as Any,
      isDelete: operation === Operation2.DELETE,
      idIn: () => resourceId,
      decode: (value) => decodeService2(value, resourceId),
    });
  },

  namesIn(beginning) {
    const { response } = discovery2.BidirectionalStreamSchema.field;
    const fields = leadingFields(leadingFields(beginning).get(response.number)?.bytes);
    return { nonce: textOf(fields.get(1)), id: textOf(fields.get(3)) };
  },

  encodeConsumerMessage(message, context = '') {
    const request = create(discovery2.StreamRequestSchema, { ...requestOf(message), context });
    return toBinary(discovery2.BidirectionalStreamSchema, create(discovery2.BidirectionalStreamSchema, { request }));
  },
  decodeConsumerMessage(bytes) {
    const { request } = decodeBounded(discovery2.BidirectionalStreamSchema, bytes);
    if (request === undefined) return undefined;
    const message = consumerMessageOf(request);
    return message.kind === 'subscribe' && request.context !== '' ? { ...message, context: request.context } : message;
  },
};

/** For an owner that knows how, asks for the end of the snapshot to be marked; echoed by it. */
export const snapshotHeader = 'portolan-snapshot';

export const drafts: readonly Draft[] = [v1alpha1, v1alpha2];

function offerOf(service: SharedService, bytes: Uint8Array): Offer {
  return { service, bytes, hash: sha256(bytes) };
}

function resourceOf(message: OwnerMessage, url: string): Any {
  if (message.kind !== 'snapshotEnd') return create(AnySchema, { typeUrl: url, value: message.offer.bytes });
  const { epoch, revision, count, digest } = message.end;
  const end = create(SnapshotEndSchema, { epoch, revision: BigInt(revision), count, digest });
  return create(AnySchema, { typeUrl: snapshotEndUrl, value: toBinary(SnapshotEndSchema, end) });
}

function decodeEnd(resource: Any): SnapshotEnd {
  const { epoch, revision, count, digest } = decodeBounded(SnapshotEndSchema, resource.value);
  return { epoch, revision: Number(revision), count, digest };
}

// Some owners leave the outer URL out; the one inside is what says how to read the resource.
function whatIsWrongWithUrls(resourceUrl: string, resource: Any | undefined, expected: string): string | undefined {
  if (resource === undefined) return 'resource: Required value';
  if (resource.typeUrl !== expected) return `resource.type_url: ${JSON.stringify(resource.typeUrl)} is not ${expected}`;
  if (resourceUrl !== '' && resourceUrl !== expected)
    return `resource_url: ${JSON.stringify(resourceUrl)} is not ${expected}`;
  return undefined;
}

interface Resource {
  readonly nonce: string;
  readonly resource: Any;
  readonly isDelete: boolean;
  /** Id in a resource that cannot be decoded as a whole. */
  readonly idIn: (resource: Any) => string;
  readonly decode: (value: Uint8Array) => SharedService;
}

function readResource({ nonce, resource, isDelete, idIn, decode }: Resource): ReceivedMessage {
  try {
    const service = decode(resource.value);
    if (isDelete) return { kind: 'delete', nonce, id: service.id };
    return { kind: 'upsert', nonce, service, hash: sha256(resource.value), bytes: resource.value.length };
  } catch (error) {
    return unreadable(nonce, idIn(resource), `resource: ${(error as Error).message}`);
  }
}

/** Id of a refused resource, whatever its fault, so that its last good form is not taken for deleted. */
function idOf1(resource: { readonly value: Uint8Array } | undefined): string {
  return textOf(leadingFields(resource?.value).get(FederatedServiceSchema.field.id.number));
}

const noBytes = new Uint8Array(0);

interface Field {
  readonly bytes: Uint8Array;
  readonly isWhole: boolean;
}

// The last of each, as decoders have it; as far as the bytes can be followed. A field that is cut off yields its
// available part.
function leadingFields(bytes: Uint8Array = noBytes): Map<number, Field> {
  // Places first: there may be hundreds of thousands of one field, and only the last of each is cut out.
  const places = new Map<number, { start: number; length: number }>();
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (wireType !== WireType.LengthDelimited) {
        reader.skip(wireType, field);
        continue;
      }
      const length = reader.uint32();
      const place = places.get(field);
      if (place === undefined) places.set(field, { start: reader.pos, length });
      else [place.start, place.length] = [reader.pos, length];
      reader.pos += length;
    }
  } catch {
    // The readable part is the result.
  }
  const cutOut = ({ start, length }: { start: number; length: number }): Field => {
    const part = bytes.subarray(start, start + length);
    return { bytes: part, isWhole: part.length === length };
  };
  return new Map(Array.from(places, ([field, place]) => [field, cutOut(place)]));
}

function textOf(field: Field | undefined): string {
  return field?.isWhole ? Buffer.from(field.bytes).toString('utf8') : '';
}

function unreadable(nonce: string, id: string, reason: string): ReceivedMessage {
  return { kind: 'unreadable', nonce, id, reason };
}

function requestOf(message: ConsumerMessage): { resourceUrl: string; responseNonce?: string; status?: Status } {
  if (message.kind === 'subscribe') return { resourceUrl: message.resourceUrl };
  const status =
    message.kind === 'ack' ? { message: message.note ?? '' } : { code: message.code, message: message.reason };
  return { resourceUrl: message.resourceUrl, responseNonce: message.nonce, status: create(StatusSchema, status) };
}

function consumerMessageOf(request: { resourceUrl: string; responseNonce: string; status?: Status }): ConsumerMessage {
  const { resourceUrl, responseNonce: nonce, status } = request;
  if (status === undefined) return { kind: 'subscribe', resourceUrl };
  const note = status.message === '' ? {} : { note: status.message };
  if (status.code === 0) return { kind: 'ack', nonce, resourceUrl, ...note };
  return { kind: 'nack', nonce, resourceUrl, code: status.code, reason: status.message };
}

function sha256(bytes: Uint8Array): Uint8Array {
  return createHash('sha256').update(bytes).digest();
}
