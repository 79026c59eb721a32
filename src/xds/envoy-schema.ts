// The Envoy messages that we send and read, and the message of each type of resource.

import { encodeAny, typeUrlPrefix } from '../base/protobuf/encode.ts';
import { Schema } from '../base/protobuf/schema.ts';
import { enums, messages } from '../gen/envoy-types.ts';
import type { XdsResource, XdsType } from './resource.ts';

// Its memo only holds constants: what it returns never depends on earlier calls.
export const envoySchema = new Schema({ messages, enums });

const messageOf: Readonly<Record<XdsType, string>> = {
  cluster: 'envoy.config.cluster.v3.Cluster',
  endpoints: 'envoy.config.endpoint.v3.ClusterLoadAssignment',
  listener: 'envoy.config.listener.v3.Listener',
  route: 'envoy.config.route.v3.RouteConfiguration',
  'virtual-host': 'envoy.config.route.v3.VirtualHost',
  secret: 'envoy.extensions.transport_sockets.tls.v3.Secret',
};

export function typeUrlOf(type: XdsType): string {
  return typeUrlPrefix + messageOf[type];
}

const typeByUrl = new Map(Object.keys(messageOf).map((type) => [typeUrlOf(type as XdsType), type as XdsType]));

export function typeOfUrl(url: string): XdsType | undefined {
  return typeByUrl.get(url);
}

/** As `google.protobuf.Any`. Throws EncodeError for a body that Envoy's own parser would refuse. */
export function encodeResource({ type, body }: Pick<XdsResource, 'type' | 'body'>): Uint8Array {
  return encodeAny(envoySchema, messageOf[type], body);
}
