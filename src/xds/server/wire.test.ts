import { expect, test } from 'vitest';
import { decodeMessage } from '../../base/protobuf/decode.ts';
import { encodeMessage } from '../../base/protobuf/encode.ts';
import { MalformedError, WireReader } from '../../base/protobuf/wire-reader.ts';
import { envoySchema, typeOfUrl, typeUrlOf } from '../envoy-schema.ts';
import { testCluster } from '../testing/resources.ts';
import { makeEntry } from '../view/entry.ts';
import { decodeRequest, encodeResponse } from './wire.ts';

const service = 'envoy.service.discovery.v3';
const node = {
  id: 'sidecar~east~web',
  cluster: 'east',
  locality: { region: 'eu', zone: 'eu-1' },
  user_agent_name: 'envoy',
  metadata: { role: 'sidecar' },
};

test('wire: a request of each variant -> the same kind of value', () => {
  const sotw = encodeMessage(envoySchema, `${service}.DiscoveryRequest`, {
    version_info: 'v',
    node,
    resource_names: ['a', 'b'],
    type_url: typeUrlOf('cluster'),
    response_nonce: '7',
    error_detail: { code: 13, message: 'no' },
  });
  const about = { id: 'sidecar~east~web', cluster: 'east', region: 'eu', zone: 'eu-1', userAgent: 'envoy' };
  expect(decodeRequest('sotw', sotw)).toEqual({
    typeUrl: typeUrlOf('cluster'),
    node: { ...about, metadata: { role: 'sidecar' } },
    answer: { nonce: '7', error: 'no' },
    names: { kind: 'all', names: ['a', 'b'] },
    held: { version: 'v' },
  });
  const delta = encodeMessage(envoySchema, `${service}.DeltaDiscoveryRequest`, {
    type_url: typeUrlOf('endpoints'),
    resource_names_subscribe: ['a'],
    resource_names_unsubscribe: ['b'],
    initial_resource_versions: { c: '1' },
  });
  expect(decodeRequest('delta', delta)).toEqual({
    typeUrl: typeUrlOf('endpoints'),
    names: { kind: 'changes', subscribe: ['a'], unsubscribe: ['b'] },
    held: { versions: { c: '1' } },
  });
});

test('wire: a response of each variant -> what its message holds', () => {
  const entry = makeEntry(testCluster('a'));
  const response = { type: 'cluster', nonce: '1', version: 'v', entries: [entry], removed: ['gone'] } as const;
  const body = { '@type': typeUrlOf('cluster'), ...testCluster('a').body };
  const read = (name: string, bytes: Uint8Array) =>
    decodeMessage(envoySchema, `${service}.${name}`, new WireReader(bytes));
  expect(read('DiscoveryResponse', encodeResponse('sotw', { ...response, removed: [] }))).toEqual({
    version_info: 'v',
    resources: [body],
    type_url: typeUrlOf('cluster'),
    nonce: '1',
  });
  expect(read('DeltaDiscoveryResponse', encodeResponse('delta', response))).toEqual({
    system_version_info: 'v',
    resources: [{ name: 'a', version: entry.version, resource: body }],
    removed_resources: ['gone'],
    type_url: typeUrlOf('cluster'),
    nonce: '1',
  });
});

test('wire: the bytes of a resource, which are kept while it is served -> in memory that holds nothing else', () => {
  const { any, packed } = makeEntry(testCluster('a'));
  for (const { buffer } of [any, packed.sotw, packed.delta]) expect(buffer.byteLength).toBe(packed.delta.length);
});

test('wire: bytes that are no request -> MalformedError', () => {
  expect(() => decodeRequest('delta', Buffer.from([0x0a, 0x7f]))).toThrow(MalformedError);
});

/** Names in resource_names_subscribe, field 3. */
function subscribing(count: number, length: number): Buffer {
  const size = length < 128 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
  const one = Buffer.concat([Buffer.from([0x1a, ...size]), Buffer.alloc(length, 97)]);
  return Buffer.alloc(count * one.length, one);
}

test('wire: millions of names, empty or not, or a long one -> refused, most of them before they are read', () => {
  const startMs = performance.now();
  expect(() => decodeRequest('delta', subscribing(8_000_000, 0))).toThrow('too many fields');
  expect(performance.now() - startMs).toBeLessThan(5000);
  expect(() => decodeRequest('delta', subscribing(100_001, 8))).toThrow('100001 names in one request');
  expect(() => decodeRequest('delta', subscribing(1, 513))).toThrow('more than 512 characters');
  expect(decodeRequest('delta', subscribing(100_000, 8)).names).toMatchObject({ kind: 'changes' });
});

test('types: by their address and back; a type that is not served -> undefined', () => {
  expect(typeOfUrl(typeUrlOf('secret'))).toBe('secret');
  expect(typeOfUrl('type.googleapis.com/envoy.config.cluster.v3.Nothing')).toBeUndefined();
});
