// The wire, byte by byte, against protobufjs: another implementation, given the field numbers of the protocol and none of
// our generated code. Seed 000 is the Service Discovery API; its payload examples are here literally.

import protobuf from 'protobufjs';
import { describe, expect, test } from 'vitest';
import { type PeerService, reachOf, specOf } from '../kinds/peer-service.ts';
import type { SharedService } from '../kinds/shared-service.ts';
import type { ConsumerMessage, OwnerMessage, ReceivedMessage } from '../session/messages.ts';
import { snapshotEndUrl, v1alpha1, v1alpha2 } from './wire.ts';

const { root } = protobuf.parse(
  `
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Request1 { string resource_url = 1; string response_nonce = 2; Status status = 3; }
  message Response1 { string nonce = 1; string resource_url = 2; Any resource = 3; int32 operation = 4; }
  message Endpoint1 { string address = 1; uint32 port = 2; }
  message Service1 { string name = 1; string description = 2; repeated string tags = 3; map<string,string> labels = 4;
    string fqdn = 5; string id = 6; string san = 7; repeated string protocols = 8; repeated Endpoint1 endpoints = 9; }
  message Request2 { string resource_url = 1; string response_nonce = 2; Status status = 3; string context = 4; }
  message Response2 { string nonce = 1; string resource_url = 2; string resource_id = 3; Any resource = 4;
    int32 operation = 5; string context = 6; }
  message Both { Request2 request = 1; Response2 response = 2; }
  message Endpoint2 { string address = 1; uint32 port = 2; repeated string labels = 3; string description = 4; }
  message Instance { string id = 1; string protocol = 2; map<string,string> metadata = 3;
    repeated string endpoint_selector = 4; string description = 5; }
  message Service2 { string name = 1; string description = 2; repeated string tags = 3; map<string,string> labels = 4;
    string fqdn = 5; repeated Endpoint2 endpoints = 9; repeated string sans = 10; repeated Instance instances = 11; }
  message SnapshotEnd { string epoch = 1; uint64 revision = 2; uint32 count = 3; bytes digest = 4; }
`,
  { keepCase: true },
);

function encode(type: string, fields: object): Buffer {
  const kind = root.lookupType(type);
  return Buffer.from(kind.encode(kind.fromObject(fields)).finish());
}

function decode(type: string, bytes: Uint8Array): Record<string, unknown> {
  const kind = root.lookupType(type);
  return kind.toObject(kind.decode(bytes), { longs: Number, bytes: String });
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const url = 'type.googleapis.com/federation.types.v1alpha1.FederatedService';
const url2 = 'type.googleapis.com/federation.types.v1alpha2.FederatedService';

/** Seed 000, createFederatedService, "Request message payload example". */
const created: SharedService = {
  name: 'example-service',
  fqdn: 'db.mongo.com',
  id: 'outbound_.8080_.v1_.db.mongo.com',
  san: 'spiffe://db1.mongo.com',
  endpoints: [{ address: '84.15.190.249', port: 443 }],
  protocols: ['http'],
  description: 'This is an example federated database service',
  tags: ['database'],
  labels: { db_version: '3.6' },
};

/** Seed 000, updateFederatedService, "Request message payload example". */
const updated: SharedService = {
  ...created,
  protocols: ['mongo'],
  description: 'This is an example federated mongo database service',
  tags: ['database', 'mongo'],
  labels: { db_version: '3.6', zone: 'us-east-1' },
};

const { fqdn, id, san, protocols, endpoints } = created;
const five = { fqdn, id, san, protocols, endpoints };

/** As a foreign owner writes the service: with the SAN as the seed prints it. */
const foreign = (service: SharedService) => encode('Service1', { ...service, san: `URI:${service.san}` });

describe('wire v1alpha1: the payload examples of the seed', () => {
  test('createFederatedService of the seed -> the bytes of another encoder, all nine fields [000-28]', () => {
    const offer = v1alpha1.encodeOffer(created);
    expect(hex(offer.bytes)).toBe(hex(encode('Service1', created)));
    const ours: OwnerMessage = { kind: 'create', nonce: '1', offer };
    const theirs = { nonce: '1', resource_url: url, resource: { type_url: url, value: offer.bytes }, operation: 1 };
    expect(hex(v1alpha1.encodeOwnerMessage(ours))).toBe(hex(encode('Response1', theirs)));
  });

  test('createFederatedService of the seed, its SAN with URI: in front -> read in the plain form [000-42]', () => {
    const resource = { type_url: url, value: foreign(created) };
    const bytes = encode('Response1', { nonce: 'n', resource_url: url, resource, operation: 1 });
    expect(v1alpha1.decodeOwnerMessage(bytes)).toMatchObject({ kind: 'upsert', nonce: 'n', service: created });
  });

  test('updateFederatedService of the seed -> UPDATE with the whole object, both ways [000-17, 000-47]', () => {
    const offer = v1alpha1.encodeOffer(updated);
    const bytes = v1alpha1.encodeOwnerMessage({ kind: 'update', nonce: '2', offer });
    const resource = { type_url: url, value: encode('Service1', updated) };
    expect(hex(bytes)).toBe(hex(encode('Response1', { nonce: '2', resource_url: url, resource, operation: 2 })));
    expect(v1alpha1.decodeOwnerMessage(bytes)).toMatchObject({ kind: 'upsert', service: updated });
  });

  test('deleteFederatedService of the seed, only the ServiceID -> read; ours carries the whole last object [000-44]', () => {
    const resource = { type_url: url, value: encode('Service1', { id: 'outbound_.8080_.v1_.db.mongo.com' }) };
    const bytes = encode('Response1', { nonce: '3', resource_url: url, resource, operation: 3 });
    expect(v1alpha1.decodeOwnerMessage(bytes)).toEqual({
      kind: 'delete',
      nonce: '3',
      id: 'outbound_.8080_.v1_.db.mongo.com',
    });
    const offer = v1alpha1.encodeOffer(updated);
    const ours = v1alpha1.encodeOwnerMessage({ kind: 'delete', nonce: '3', offer });
    const whole = { type_url: url, value: offer.bytes };
    expect(hex(ours)).toBe(hex(encode('Response1', { nonce: '3', resource_url: url, resource: whole, operation: 3 })));
  });
});

describe('wire v1alpha1: what a consumer says', () => {
  const says: [string, ConsumerMessage, object, string][] = [
    ['registerConsumer', { kind: 'subscribe', resourceUrl: url }, { resource_url: url }, ''],
    [
      'ACK: an empty status that is present',
      { kind: 'ack', nonce: '7', resourceUrl: url },
      { resource_url: url, response_nonce: '7', status: {} },
      '1201371a00',
    ],
    [
      'ACK with a note: code 0, which is not written, and a message',
      { kind: 'ack', nonce: '7', resourceUrl: url, note: 'held' },
      { resource_url: url, response_nonce: '7', status: { message: 'held' } },
      '1201371a06120468656c64',
    ],
    [
      'NACK: a code and a reason',
      { kind: 'nack', nonce: '7', resourceUrl: url, code: 3, reason: 'san: Required value' },
      { resource_url: url, response_nonce: '7', status: { code: 3, message: 'san: Required value' } },
      '1201371a170803121373616e3a205265717569726564',
    ],
  ];
  test.each(says)('%s -> the same bytes, and read back', (_name, message, fields, tail) => {
    const bytes = v1alpha1.encodeConsumerMessage(message);
    expect(hex(bytes)).toBe(hex(encode('Request1', fields)));
    expect(hex(bytes)).toContain(tail);
    expect(v1alpha1.decodeConsumerMessage(bytes)).toEqual(message);
  });

  test.each<[string, string, object]>([
    ['an ACK without resource_url', '1201371a00', { kind: 'ack', nonce: '7', resourceUrl: '' }],
    ['an ACK with an empty nonce', '1a00', { kind: 'ack', nonce: '', resourceUrl: '' }],
    ['an ACK with an explicit zero', '1201371a020800', { kind: 'ack', nonce: '7', resourceUrl: '' }],
    ['a first request without anything', '', { kind: 'subscribe', resourceUrl: '' }],
  ])('%s -> taken for what it is', (_name, bytes, message) => {
    expect(v1alpha1.decodeConsumerMessage(Buffer.from(bytes, 'hex'))).toEqual(message);
  });
});

describe('wire v1alpha1: what owners send that others would not', () => {
  const resource = { type_url: url, value: encode('Service1', created) };
  test.each<[string, object, object]>([
    ['an empty nonce', { resource_url: url, resource, operation: 1 }, { kind: 'upsert', nonce: '', service: created }],
    ['no outer URL', { nonce: 'n', resource, operation: 1 }, { kind: 'upsert', nonce: 'n', service: created }],
    [
      'an UPDATE of the five mandatory fields alone',
      { resource: { ...resource, value: encode('Service1', five) }, operation: 2 },
      { kind: 'upsert', service: { ...five, name: '', description: '', tags: [], labels: {} } },
    ],
  ])('%s -> read', (_name, fields, message) => {
    expect(v1alpha1.decodeOwnerMessage(encode('Response1', fields))).toMatchObject(message);
  });
});

describe('wire v1alpha1: bad input', () => {
  const good = { type_url: url, value: encode('Service1', created) };
  test.each<[string, object, string]>([
    ['an unknown operation', { operation: 9, resource: good }, 'operation: 9 is none of CREATE, UPDATE, DELETE'],
    ['no operation', { resource: good }, 'operation: 0 is none of'],
    ['no resource', { operation: 1 }, 'resource: Required value'],
    ['a wrong resource URL', { operation: 1, resource_url: 'x', resource: good }, 'resource_url: "x" is not'],
    ['a resource of another type', { operation: 1, resource: { ...good, type_url: 'y' } }, 'resource.type_url: "y"'],
    [
      'a resource that is no message',
      { operation: 1, resource: { type_url: url, value: Buffer.of(255) } },
      'resource: ',
    ],
  ])('%s -> unreadable, with the field', (_name, fields, reason) => {
    const bytes = encode('Response1', { nonce: 'n', resource_url: url, ...fields });
    expect(v1alpha1.decodeOwnerMessage(bytes)).toMatchObject({
      kind: 'unreadable',
      nonce: 'n',
      reason: expect.stringContaining(reason),
    });
  });

  test('only the beginning of a message is there -> its nonce can be told, and its id if that comes before what is long', () => {
    const large = { ...created, description: 'x'.repeat(10_000) };
    const one = v1alpha1.encodeOwnerMessage({ kind: 'create', nonce: '41', offer: v1alpha1.encodeOffer(large) });
    const two = v1alpha2.encodeOwnerMessage({ kind: 'create', nonce: '42', offer: v1alpha2.encodeOffer(large) });
    expect(v1alpha1.namesIn(one.subarray(0, 100))).toEqual({ nonce: '41', id: '' });
    expect(v1alpha2.namesIn(two.subarray(0, 200))).toEqual({ nonce: '42', id: created.id });
    expect(v1alpha1.namesIn(one.subarray(0, 2))).toEqual({ nonce: '', id: '' });
    const endpoints = Array.from({ length: 5000 }, () => ({ address: '192.0.2.1', port: 443 }));
    const offer = v1alpha1.encodeOffer({ ...created, endpoints });
    const three = v1alpha1.encodeOwnerMessage({ kind: 'create', nonce: '43', offer });
    expect(v1alpha1.namesIn(three.subarray(0, 4096))).toEqual({ nonce: '43', id: created.id });
    const cutInItsId = Buffer.from(three).indexOf(created.id) + 3;
    expect(v1alpha1.namesIn(three.subarray(0, cutInItsId)).id).toBe('');
  });

  test('a resource that cannot be read for one of its fields -> its id can be told', () => {
    const { bytes } = v1alpha1.encodeOffer({ ...created, description: 'abc' });
    const spoiled = Buffer.from(bytes);
    spoiled[spoiled.indexOf('abc')] = 0xff;
    const offer = { service: created, bytes: spoiled, hash: spoiled };
    const message = v1alpha1.encodeOwnerMessage({ kind: 'create', nonce: 'n', offer });
    expect(v1alpha1.decodeOwnerMessage(message)).toMatchObject({ kind: 'unreadable', nonce: 'n', id: created.id });
  });
});

describe('wire v1alpha2', () => {
  const service2 = {
    name: created.name,
    description: created.description,
    tags: created.tags,
    labels: created.labels,
    fqdn: created.fqdn,
    endpoints: created.endpoints,
    sans: [created.san],
    instances: [{ id: created.id, protocol: 'http', metadata: { SNI: created.id } }],
  };

  test('UPSERT, DELETE, request and answers -> the bytes of another encoder', () => {
    const offer = v1alpha2.encodeOffer(created);
    expect(hex(offer.bytes)).toBe(hex(encode('Service2', service2)));
    const response = { nonce: '1', resource_url: url2, resource_id: created.id };
    const resource = { type_url: url2, value: offer.bytes };
    for (const [kind, operation] of [
      ['create', 1],
      ['update', 1],
      ['delete', 2],
    ] as const) {
      const bytes = v1alpha2.encodeOwnerMessage({ kind, nonce: '1', offer });
      expect(hex(bytes)).toBe(hex(encode('Both', { response: { ...response, resource, operation } })));
    }
    const ack = v1alpha2.encodeConsumerMessage({ kind: 'ack', nonce: '1', resourceUrl: url2 });
    expect(hex(ack)).toBe(hex(encode('Both', { request: { resource_url: url2, response_nonce: '1', status: {} } })));
    expect(v1alpha2.decodeConsumerMessage(ack)).toEqual({ kind: 'ack', nonce: '1', resourceUrl: url2 });
  });

  const says: [string, ConsumerMessage, object][] = [
    ['registerConsumer', { kind: 'subscribe', resourceUrl: url2 }, { resource_url: url2 }],
    [
      'ACK: an empty status that is present',
      { kind: 'ack', nonce: '7', resourceUrl: url2 },
      { resource_url: url2, response_nonce: '7', status: {} },
    ],
    [
      'NACK: a code and a reason',
      { kind: 'nack', nonce: '7', resourceUrl: url2, code: 3, reason: 'sans: Required value' },
      { resource_url: url2, response_nonce: '7', status: { code: 3, message: 'sans: Required value' } },
    ],
  ];
  test.each(says)('what a consumer says, %s -> the same bytes, and read back', (_name, message, request) => {
    const bytes = v1alpha2.encodeConsumerMessage(message);
    expect(hex(bytes)).toBe(hex(encode('Both', { request })));
    expect(v1alpha2.decodeConsumerMessage(bytes)).toEqual(message);
  });

  test.each<[string, object, object]>([
    ['an ACK without resource_url', { response_nonce: '7', status: {} }, { kind: 'ack', nonce: '7', resourceUrl: '' }],
    ['an ACK with an empty nonce', { status: {} }, { kind: 'ack', nonce: '', resourceUrl: '' }],
    ['a context', { resource_url: url2, context: 'x' }, { kind: 'subscribe', resourceUrl: url2, context: 'x' }],
    ['a first request without anything', {}, { kind: 'subscribe', resourceUrl: '' }],
  ])('%s -> taken for what it is', (_name, request, message) => {
    expect(v1alpha2.decodeConsumerMessage(encode('Both', { request }))).toEqual(message);
  });

  test('an ACK whose status has an explicit zero -> an ACK', () => {
    const status = Buffer.from('0800', 'hex');
    const request = Buffer.concat([Buffer.from([0x12, 1, 0x37, 0x1a, status.length]), status]);
    const bytes = Buffer.concat([Buffer.from([0x0a, request.length]), request]);
    expect(v1alpha2.decodeConsumerMessage(bytes)).toEqual({ kind: 'ack', nonce: '7', resourceUrl: '' });
  });

  const good = { type_url: url2, value: encode('Service2', service2) };
  test.each<[string, object, string]>([
    ['an unknown operation', { operation: 9, resource: good }, 'operation: 9 is neither UPSERT nor DELETE'],
    ['no operation', { resource: good }, 'operation: 0 is neither'],
    ['no resource', { operation: 1 }, 'resource: Required value'],
    [
      'a wrong resource URL',
      { operation: 1, resource_url: url, resource: good },
      'resource_url: "type.googleapis.com/f',
    ],
    [
      'a resource of the other draft',
      { operation: 1, resource: { ...good, type_url: url } },
      'resource.type_url: "type',
    ],
    [
      'a resource that is no message',
      { operation: 1, resource: { type_url: url2, value: Buffer.of(255) } },
      'resource: ',
    ],
  ])('bad input, %s -> unreadable, with the field', (_name, fields, reason) => {
    const response = { nonce: 'n', resource_url: url2, resource_id: 'key-1', ...fields };
    expect(v1alpha2.decodeOwnerMessage(encode('Both', { response }))).toMatchObject({
      kind: 'unreadable',
      nonce: 'n',
      reason: expect.stringContaining(reason),
    });
  });

  test('the end of a snapshot -> operation UNKNOWN and an Any of our own type, without a resource_id', () => {
    const end = { epoch: 'e', revision: 7, count: 3, digest: new Uint8Array(32).fill(1) };
    const bytes = v1alpha2.encodeOwnerMessage({ kind: 'snapshotEnd', nonce: '9', end });
    const resource = { type_url: snapshotEndUrl, value: encode('SnapshotEnd', end) };
    expect(hex(bytes)).toBe(hex(encode('Both', { response: { nonce: '9', resource_url: url2, resource } })));
    expect(v1alpha2.decodeOwnerMessage(bytes)).toMatchObject({ kind: 'snapshotEnd', nonce: '9' });
  });

  test('a service of several protocols -> an instance for each, with the SNI; read back as it was', () => {
    const service = { ...created, protocols: ['http', 'grpc'] };
    const { bytes } = v1alpha2.encodeOffer(service);
    const instances = ['http', 'grpc'].map((protocol) => ({ id: created.id, protocol, metadata: { SNI: created.id } }));
    expect(hex(bytes)).toBe(hex(encode('Service2', { ...service2, instances })));
    const response = {
      resource_url: url2,
      resource_id: created.id,
      resource: { type_url: url2, value: bytes },
      operation: 1,
    };
    expect(v1alpha2.decodeOwnerMessage(encode('Both', { response }))).toMatchObject({ kind: 'upsert', service });
  });

  test('a foreign UPSERT -> the key is resource_id; all SANs, instances and their endpoints are kept', () => {
    const value = encode('Service2', {
      ...service2,
      sans: ['spiffe://a.example/1', 'URI:spiffe://a.example/2'],
      instances: [
        { id: 'i1', protocol: 'http', metadata: { SNI: 'sni.example' }, endpoint_selector: ['eu'] },
        { id: 'i2', protocol: 'grpc', metadata: { HOSTNAME: 'db.internal.example', PORT: '5432' } },
      ],
      endpoints: [
        { address: '192.0.2.1', port: 443, labels: ['us'] },
        { address: '192.0.2.2', port: 443, labels: ['eu'] },
      ],
    });
    const response = { resource_url: url2, resource_id: 'key-1', resource: { type_url: url2, value }, operation: 1 };
    const message = v1alpha2.decodeOwnerMessage(encode('Both', { response }));
    expect(message).toMatchObject({
      kind: 'upsert',
      service: { id: 'key-1', sni: 'sni.example', san: 'spiffe://a.example/1', moreSans: ['spiffe://a.example/2'] },
    });
    const { service } = message as ReceivedMessage & { kind: 'upsert' };
    expect(v1alpha2.decodeOwnerMessage(upsertOf(service))).toMatchObject({ service });
    const spec = specOf('acme', service);
    expect(reachOf({ metadata: { name: 'x' }, spec } as PeerService)).toMatchObject({
      sans: ['spiffe://a.example/1', 'spiffe://a.example/2'],
      sni: 'sni.example',
      protocols: ['http', 'grpc'],
      ingress: [{ address: '192.0.2.2', port: 443 }],
      instances: [
        { id: 'i1', protocol: 'http', sni: 'sni.example', ingress: [{ address: '192.0.2.2' }] },
        { id: 'i2', sni: 'i2', hostname: 'db.internal.example', port: 5432, ingress: [{}, {}] },
      ],
    });
  });

  test('an instance whose selector matches nothing -> all endpoints', () => {
    const instances = [{ id: 'i', protocol: 'http', endpoint_selector: ['nowhere'] }];
    const value = encode('Service2', { ...service2, instances });
    const response = { resource_url: url2, resource_id: 'i', resource: { type_url: url2, value }, operation: 1 };
    expect(v1alpha2.decodeOwnerMessage(encode('Both', { response }))).toMatchObject({
      service: { endpoints: created.endpoints },
    });
  });

  test('DELETE with only a resource_id -> read', () => {
    const response = { nonce: '', resource_id: 'key-1', operation: 2 };
    expect(v1alpha2.decodeOwnerMessage(encode('Both', { response }))).toEqual({
      kind: 'delete',
      nonce: '',
      id: 'key-1',
    });
  });

  test('a context -> sent with every request of ours, and with what is sent to a consumer that said one', () => {
    const said = decode(
      'Both',
      v1alpha2.encodeConsumerMessage({ kind: 'ack', nonce: '1', resourceUrl: url2 }, 'mesh-7'),
    );
    expect(said).toMatchObject({ request: { context: 'mesh-7', response_nonce: '1' } });
    const offer = v1alpha2.encodeOffer(created);
    const sent = decode('Both', v1alpha2.encodeOwnerMessage({ kind: 'create', nonce: '1', offer }, 'theirs'));
    expect(sent).toMatchObject({ response: { context: 'theirs', nonce: '1' } });
  });

  test('both sides on one stream -> each reads its own half', () => {
    const both = encode('Both', { request: { resource_url: url2 }, response: { resource_id: 'a', operation: 2 } });
    expect(v1alpha2.decodeConsumerMessage(both)).toEqual({ kind: 'subscribe', resourceUrl: url2 });
    expect(v1alpha2.decodeOwnerMessage(both)).toMatchObject({ kind: 'delete', id: 'a' });
    expect(v1alpha2.decodeConsumerMessage(encode('Both', {}))).toBeUndefined();
  });
});

test('wire: the end of a snapshot -> operation UNKNOWN and an Any of our own type', () => {
  const end = { epoch: 'e', revision: 2 ** 40, count: 3, digest: new Uint8Array(32).fill(1) };
  const bytes = v1alpha1.encodeOwnerMessage({ kind: 'snapshotEnd', nonce: '9', end });
  const resource = { type_url: snapshotEndUrl, value: encode('SnapshotEnd', end) };
  expect(hex(bytes)).toBe(hex(encode('Response1', { nonce: '9', resource_url: url, resource })));
  expect(decode('Response1', bytes)['operation']).toBeUndefined();
  const read = v1alpha1.decodeOwnerMessage(bytes);
  expect(read).toMatchObject({ kind: 'snapshotEnd', nonce: '9', end: { ...end, digest: expect.anything() } });
});

test('wire: labels in any order -> the same bytes', () => {
  const one = v1alpha1.encodeOffer({ ...created, labels: { a: '1', b: '2' } });
  const other = v1alpha1.encodeOffer({ ...created, labels: { b: '2', a: '1' } });
  expect(hex(one.bytes)).toBe(hex(other.bytes));
});

/** As we would offer it to another mesh. */
function upsertOf(service: SharedService): Uint8Array {
  return v1alpha2.encodeOwnerMessage({ kind: 'create', nonce: '1', offer: v1alpha2.encodeOffer(service) });
}
