// Peers that have never heard of us: a minimal one written from the wire facts alone, and grpc-js with protobufjs, each as
// owner and as consumer.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { afterEach, expect, test } from 'vitest';
import { startMesh, type TestMeshNode } from '../src/peering/testing/edge/memory-home.ts';
import { meshOf } from '../src/peering/testing/edge/mesh.ts';
import { type ForeignConsumerOptions, startForeignConsumer } from './foreign-peer/consumer.ts';
import { type ForeignOwner, startForeignOwner } from './foreign-peer/owner.ts';
import { ack, type ForeignService } from './foreign-peer/wire.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const foreign = meshOf('foreign.example');
const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 15_000, interval: 20 });

async function ourMesh(): Promise<TestMeshNode> {
  const node = await startMesh('ours');
  closing.push(() => node.stop());
  return node;
}

function db(id: string, changes: Partial<ForeignService> = {}): ForeignService {
  const endpoints = [{ address: '192.0.2.9', port: 443 }];
  return { id, fqdn: id, san: 'URI:spiffe://foreign.example', protocols: ['http'], endpoints, ...changes };
}

async function takeFromForeign(): Promise<{ owner: ForeignOwner; ours: TestMeshNode }> {
  const ours = await ourMesh();
  const { certificate: cert, key } = foreign.issue();
  const owner = await startForeignOwner({ cert, key, ca: ours.mesh.certificate });
  closing.push(() => owner.close());
  return { owner, ours };
}

const addForeign = (ours: TestMeshNode, port: number, changes: object = {}) =>
  ours.addPeer('foreign', {
    address: `127.0.0.1:${port}`,
    trust: { domain: 'foreign.example', bundle: foreign.certificate },
    allowedDomains: ['foreign.example'],
    foreign: { quietSeconds: 1, graceSeconds: 1 },
    ...changes,
  });

const heldBy = async (node: TestMeshNode) => (await node.peerServices()).map(({ spec }) => spec.id).sort();

test('foreign owner: empty nonces, SAN with URI:, DELETE with only an id -> we follow its catalog', async () => {
  const { owner, ours } = await takeFromForeign();
  for (const name of ['a', 'b', 'c']) owner.put(db(`${name}.foreign.example`));
  await addForeign(ours, owner.port);
  await eventually(() => heldBy(ours)).toEqual(['a.foreign.example', 'b.foreign.example', 'c.foreign.example']);
  expect((await ours.peerServices())[0]?.spec.sans).toEqual(['spiffe://foreign.example']);
  owner.remove('b.foreign.example');
  owner.put(db('a.foreign.example', { description: 'changed' }));
  await eventually(() => heldBy(ours)).toEqual(['a.foreign.example', 'c.foreign.example']);
  await eventually(async () => (await ours.peerServices())[0]?.spec.description).toBe('changed');
  expect(owner.heard).toEqual(['register', 'ack', 'ack', 'ack', 'ack', 'ack']);
  await eventually(async () => (await ours.peer('foreign')).status?.consumer).toMatchObject({
    state: 'Synced',
    reconciliation: 'Quiescence',
  });
});

test('foreign owner: a bad service among good ones -> NACK with the field, the rest syncs', async () => {
  const { owner, ours } = await takeFromForeign();
  owner.put(db('a.foreign.example', { san: 'nonsense' }));
  owner.put(db('b.foreign.example', { endpoints: [{ address: '192.0.2.9', port: 70_000 }] }));
  owner.put(db('c.foreign.example'));
  await addForeign(ours, owner.port);
  await eventually(() => owner.heard.length).toBe(4);
  expect(owner.heard.slice(1)).toEqual([
    expect.stringContaining('nack 3 san: Invalid value: "nonsense"'),
    expect.stringContaining('nack 3 endpoints[0].port: Invalid value: 70000'),
    'ack',
  ]);
});

test('foreign owner: a message too large among good ones -> NACK with its size, the rest syncs', async () => {
  const { owner, ours } = await takeFromForeign();
  owner.put(db('a.foreign.example', { description: 'x'.repeat(5 * 1024 * 1024) }));
  owner.put(db('b.foreign.example'));
  await addForeign(ours, owner.port);
  await eventually(() => heldBy(ours)).toEqual(['b.foreign.example']);
  expect(owner.heard[1]).toMatch(/^nack 3 the message: Too long: 52\d+ bytes are more than 4194304/);
  await eventually(async () => (await ours.peer('foreign')).status?.consumer?.refusals?.[0]?.reason).toContain(
    'Too long',
  );
});

test('foreign owner: fields that the home itself refuses -> NACK, not a stream that starts over and over', async () => {
  const { owner, ours } = await takeFromForeign();
  owner.put(db('a.foreign.example', { description: 'x'.repeat(10_000) }));
  owner.put(db('b.foreign.example'));
  await addForeign(ours, owner.port);
  await eventually(() => owner.heard.length).toBe(3);
  expect(owner.heard).toEqual(['register', expect.stringMatching(/^nack 3 .*spec\.description: Too long/), 'ack']);
});

test('foreign owner: it deletes while we are away -> gone after silence and grace, nothing else', async () => {
  const { owner, ours } = await takeFromForeign();
  for (const name of ['a', 'b']) owner.put(db(`${name}.foreign.example`));
  await addForeign(ours, owner.port);
  await eventually(() => heldBy(ours)).toHaveLength(2);
  owner.breakStreams();
  owner.remove('a.foreign.example');
  await eventually(() => heldBy(ours)).toEqual(['b.foreign.example']);
});

async function giveToForeign(changes: Partial<ForeignConsumerOptions> = {}) {
  const ours = await ourMesh();
  await ours.addPeer('foreign', { trust: { domain: 'foreign.example', bundle: foreign.certificate } });
  for (const name of ['a', 'b', 'c']) await ours.addService(name);
  await ours.exportServices({ peers: ['foreign'] });
  await eventually(() => ours.peering.catalog.count('foreign')).toBe(3);
  const { certificate: cert, key } = foreign.issue();
  const options = { port: ours.peering.port, cert, key, ca: ours.mesh.certificate, ...changes };
  const consumer = startForeignConsumer(options);
  closing.push(() => consumer.close());
  return { ours, consumer };
}

test.each([true, false])(
  'foreign consumer: answers without a URL, nonces %s -> it has the catalog and follows it, and sees nothing of ours',
  async (hasNonces) => {
    const { ours, consumer } = await giveToForeign({ hasNonces });
    await eventually(() => consumer.heard).toEqual([
      'CREATE a.shop.ours.example',
      'CREATE b.shop.ours.example',
      'CREATE c.shop.ours.example',
    ]);
    const services = { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true };
    await ours.client.delete(services, { namespace: 'shop', name: 'b' });
    await eventually(() => consumer.heard.at(-1)).toBe('DELETE b.shop.ours.example');
    await eventually(() => ours.peering.owner.report('foreign')?.unacknowledged).toBe(0);
    expect([...consumer.held.keys()]).toEqual(['a.shop.ours.example', 'c.shop.ours.example']);
  },
);

test('foreign consumer: it refuses one -> visible at the export, the rest goes on', async () => {
  const { ours, consumer } = await giveToForeign({ refuses: 'b.' });
  await eventually(() => consumer.held.size).toBe(2);
  await eventually(() => [...(ours.peering.owner.report('foreign')?.refusals.values() ?? [])]).toMatchObject([
    { id: 'b.shop.ours.example', code: 3, reason: 'we do not want it' },
  ]);
});

test.each<[string, Partial<ForeignConsumerOptions>, string]>([
  ['no certificate', { cert: undefined, key: undefined }, '16'],
  ['a certificate of somebody else', certificateOf(meshOf('stranger.example')), '16'],
  ['an ACK before registering', { firstMessage: ack('1') }, '3'],
  ['bytes that are no message', { firstMessage: Buffer.from([255, 255, 255]) }, '3'],
])('foreign consumer: %s -> refused with the code of the protocol, no data', async (_name, changes, status) => {
  const { consumer } = await giveToForeign(changes);
  expect((await consumer.ended).status).toBe(status);
  expect(consumer.heard).toEqual([]);
});

function certificateOf(mesh: ReturnType<typeof meshOf>): { cert: string; key: string } {
  const { certificate: cert, key } = mesh.issue();
  return { cert, key };
}

// ---- grpc-js, with protobufjs reading the same .proto files that we generate from ----

const protoRoot = new protobuf.Root();
protoRoot.resolvePath = (_origin, target) =>
  join(dirname(fileURLToPath(import.meta.url)), '..', target.startsWith('proto/') ? target : `proto/${target}`);
protoRoot.loadSync('federation/resourcediscovery/v1alpha1/discovery.proto');
protoRoot.loadSync('federation/types/v1alpha1/federated_service.proto');
const Request = protoRoot.lookupType('federation.resourcediscovery.v1alpha1.StreamRequest');
const Response = protoRoot.lookupType('federation.resourcediscovery.v1alpha1.StreamResponse');
const Federated = protoRoot.lookupType('federation.types.v1alpha1.FederatedService');
const typeUrl = 'type.googleapis.com/federation.types.v1alpha1.FederatedService';

const discovery: grpc.ServiceDefinition = {
  EstablishStream: {
    path: '/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream',
    requestStream: true,
    responseStream: true,
    requestSerialize: (value: object) => Buffer.from(Request.encode(value as never).finish()),
    requestDeserialize: (bytes: Buffer) => Request.decode(bytes),
    responseSerialize: (value: object) => Buffer.from(Response.encode(value as never).finish()),
    responseDeserialize: (bytes: Buffer) => Response.decode(bytes),
  },
};

test('grpc-js as consumer -> full catalog, then changes; its answers are understood', async () => {
  const { ours, consumer } = await giveToForeign();
  await eventually(() => consumer.held.size).toBe(3);
  consumer.close();
  const { certificate, key } = foreign.issue();
  const credentials = grpc.credentials.createSsl(
    Buffer.from(ours.mesh.certificate),
    Buffer.from(key),
    Buffer.from(certificate),
    { checkServerIdentity: () => undefined },
  );
  const Client = grpc.makeGenericClientConstructor(discovery, 'DiscoveryService');
  const client = new Client(`127.0.0.1:${ours.peering.port}`, credentials);
  closing.push(() => client.close());
  const stream = (client['EstablishStream'] as () => grpc.ClientDuplexStream<object, object>).call(client);
  closing.push(() => stream.cancel());
  stream.on('error', () => {});
  const ids: string[] = [];
  stream.on('data', (message: { nonce: string; resource: { value: Uint8Array } }) => {
    ids.push((Federated.decode(message.resource.value) as unknown as { id: string }).id);
    stream.write({ resourceUrl: typeUrl, responseNonce: message.nonce, status: {} });
  });
  stream.write({ resourceUrl: typeUrl });
  await eventually(() => ids).toEqual(['a.shop.ours.example', 'b.shop.ours.example', 'c.shop.ours.example']);
  await eventually(() => ours.peering.owner.report('foreign')?.lag).toBe(0);
});

test('grpc-js as owner -> we take its catalog', async () => {
  const ours = await ourMesh();
  const { certificate, key } = foreign.issue();
  const server = new grpc.Server();
  const heard: object[] = [];
  server.addService(discovery, {
    EstablishStream: (stream: grpc.ServerDuplexStream<{ status?: object }, object>) => {
      stream.on('data', (request) => {
        heard.push(request);
        if (request.status !== undefined && request.status !== null) return;
        for (const id of ['a.foreign.example', 'b.foreign.example']) {
          const value = Federated.encode(Federated.fromObject(db(id))).finish();
          const resource = { type_url: typeUrl, typeUrl, value };
          stream.write({ nonce: id, resourceUrl: typeUrl, resource, operation: 1 });
        }
      });
      stream.on('error', () => {});
    },
  });
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(key) };
  const credentials = grpc.ServerCredentials.createSsl(Buffer.from(ours.mesh.certificate), [pair], true);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  closing.push(() => server.forceShutdown());
  await addForeign(ours, port);
  await eventually(() => heldBy(ours)).toEqual(['a.foreign.example', 'b.foreign.example']);
  await eventually(() => heard.length).toBe(3);
});

test('the foreign peer is foreign -> it imports nothing from src', () => {
  for (const file of ['owner.ts', 'consumer.ts', 'wire.ts']) {
    const code = readFileSync(new URL(`foreign-peer/${file}`, import.meta.url), 'utf8');
    expect(code).not.toMatch(/from '\.\.\//);
  }
});
