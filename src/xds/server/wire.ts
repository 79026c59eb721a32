// Requests from bytes and responses to bytes, in both variants. Entries are encoded already: a response only puts them
// together.

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { isObject, type JsonObject } from '../../base/json.ts';
import { decodeMessage } from '../../base/protobuf/decode.ts';
import { MalformedError, WireReader } from '../../base/protobuf/wire-reader.ts';
import { envoySchema, typeUrlOf } from '../envoy-schema.ts';
import type { Variant } from '../resource.ts';
import type { Answer, ClientRequest, NodeInfo, ServerResponse } from '../session/messages.ts';

const service = 'envoy.service.discovery.v3';
/** Limits on one request; more is an error of the sender. */
export const namesMax = 100_000;
const nameLengthMax = 512;
/** Read before the names are counted: millions of empty ones would hold everybody up for seconds. */
const valuesMax = 4 * namesMax;
const errorLengthMax = 1024;

/** Throws MalformedError. */
export function decodeRequest(variant: Variant, bytes: Uint8Array): ClientRequest {
  return variant === 'delta' ? decodeDelta(bytes) : decodeSotw(bytes);
}

function decodeSotw(bytes: Uint8Array): ClientRequest {
  const fields = decodeMessage(envoySchema, `${service}.DiscoveryRequest`, new WireReader(bytes, { valuesMax }));
  return {
    ...common(fields),
    names: { kind: 'all', names: bounded(textsIn(fields['resource_names'])) },
    held: { version: textIn(fields['version_info']) },
  };
}

function decodeDelta(bytes: Uint8Array): ClientRequest {
  const fields = decodeMessage(envoySchema, `${service}.DeltaDiscoveryRequest`, new WireReader(bytes, { valuesMax }));
  const versions = isObject(fields['initial_resource_versions']) ? fields['initial_resource_versions'] : {};
  bounded(Object.keys(versions));
  return {
    ...common(fields),
    names: {
      kind: 'changes',
      subscribe: bounded(textsIn(fields['resource_names_subscribe'])),
      unsubscribe: bounded(textsIn(fields['resource_names_unsubscribe'])),
    },
    held: { versions: versions as Record<string, string> },
  };
}

function common(fields: JsonObject): Pick<ClientRequest, 'typeUrl' | 'node' | 'answer'> {
  const node = nodeIn(fields['node']);
  const answer = answerIn(fields);
  return { typeUrl: textIn(fields['type_url']), ...(node && { node }), ...(answer && { answer }) };
}

function answerIn(fields: JsonObject): Answer | undefined {
  const nonce = textIn(fields['response_nonce']);
  if (nonce === '') return undefined;
  const detail = fields['error_detail'];
  if (!isObject(detail)) return { nonce };
  return { nonce, error: textIn(detail['message']).slice(0, errorLengthMax) };
}

function nodeIn(value: unknown): NodeInfo | undefined {
  if (!isObject(value)) return undefined;
  const locality = isObject(value['locality']) ? value['locality'] : {};
  return {
    id: textIn(value['id']),
    cluster: textIn(value['cluster']),
    region: textIn(locality['region']),
    zone: textIn(locality['zone']),
    userAgent: textIn(value['user_agent_name']),
    metadata: isObject(value['metadata']) ? value['metadata'] : {},
  };
}

export function encodeResponse(variant: Variant, response: ServerResponse): Uint8Array {
  const head = new BinaryWriter().tag(1, WireType.LengthDelimited).string(response.version).finish();
  const tail = new BinaryWriter();
  tail.tag(4, WireType.LengthDelimited).string(typeUrlOf(response.type));
  tail.tag(5, WireType.LengthDelimited).string(response.nonce);
  for (const name of response.removed) tail.tag(6, WireType.LengthDelimited).string(name);
  return Buffer.concat([head, ...response.entries.map(({ packed }) => packed[variant]), tail.finish()]);
}

function bounded(names: readonly string[]): readonly string[] {
  if (names.length > namesMax)
    throw new MalformedError(`${names.length} names in one request; ${namesMax} are allowed`);
  if (names.some((name) => name.length > nameLengthMax))
    throw new MalformedError(`a name of more than ${nameLengthMax} characters`);
  return names;
}

function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
