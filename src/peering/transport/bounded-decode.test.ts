import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { expect, test } from 'vitest';
import { FederatedServiceSchema } from '../../gen/federation/types/v1alpha2/federated_service_pb.js';
import { decodeBounded } from './bounded-decode.ts';

/** So many items without content in one field. */
const empty = (field: number, count: number) => Buffer.alloc(count * 2, Buffer.from([(field << 3) | 2, 0]));

test('bounded decode: a message of ordinary size, with a field of a later version -> as it is, without that field', () => {
  const endpoints = Array.from({ length: 1000 }, (_, at) => ({ address: `10.0.0.${at % 250}`, port: at + 1 }));
  const bytes = toBinary(FederatedServiceSchema, create(FederatedServiceSchema, { name: 'a', endpoints }));
  const later = new BinaryWriter().raw(bytes).tag(1000, 2).string('later').finish();
  const read = decodeBounded(FederatedServiceSchema, later);
  expect([read.endpoints.length, read.$unknown]).toEqual([1000, undefined]);
});

test.each([
  ['tags', empty(3, 500_000)],
  ['endpoints', empty(9, 500_000)],
  ['fields that nobody knows', empty(15, 500_000)],
  ['labels of one endpoint', new BinaryWriter().tag(9, 2).bytes(empty(3, 500_000)).finish()],
])('bounded decode: half a million %s -> refused before they are made', (_what, bytes) => {
  expect(() => decodeBounded(FederatedServiceSchema, bytes)).toThrow('more than 60000 fields');
});

test('bounded decode: a nested message that ends too late -> refused', () => {
  expect(() => decodeBounded(FederatedServiceSchema, Buffer.from([(9 << 3) | 2, 100, 8]))).toThrow();
});
