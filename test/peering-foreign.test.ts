// Peers that have never connected us: a minimal one written from the wire facts alone, and grpc-js with protobufjs, each as
// owner and as consumer.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { afterEach, expect, test } from 'vitest';
import { serviceType } from '../src/kube/objects/service.ts';
import type { PeerSpec } from '../src/peering/kinds/peer.ts';
import type { LinkLimits } from '../src/peering/rules/link-config.ts';
import { introduceTo, startMesh, type TestMeshNode } from '../src/peering/testing/edge/memory-home.ts';
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

async function ourMesh(limits: Partial<LinkLimits> = {}): Promise<TestMeshNode> {
  const node = await startMesh('ours', { limits });
  closing.push(() => node.stop());
  return node;
}

function db(id: string, changes: Partial<ForeignService> = {}): ForeignService {
  const endpoints = [{ address: '192.0.2.9', port: 443 }];
  return { id, fqdn: id, san: 'URI:spiffe://foreign.example', protocols: ['http'], endpoints, ...changes };
}

async function takeFromForeign(
  changes: { readonly isLazy?: boolean } = {},
  limits: Partial<LinkLimits> = {},
): Promise<{ owner: ForeignOwner; ours: TestMeshNode }> {
  const ours = await ourMesh(limits);
  const { certificate: cert, key } = foreign.issue();
  const owner = await startForeignOwner({ cert, key, ca: ours.mesh.certificate, ...changes });
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

test('foreign owner: empty nonces, SAN with URI:, DELETE with only an id -> we follow its catalog [000-01]', async () => {
  const { owner, ours } = await takeFromForeign();
  for (const name of ['a', 'b', 'c']) owner.put(db(`${name}.foreign.example`));
  await addForeign(ours, owner.port);
  await eventually(() => heldBy(ours)).toEqual(['a.foreign.example', 'b.foreign.example', 'c.foreign.example']);
  expect((await ours.peerServices())[0]?.spec.sans).toEqual(['spiffe://foreign.example']);
  owner.remove('b.foreign.example');
  owner.put(db('a.foreign.example', { description: 'changed' }));
  await eventually(() => heldBy(ours)).toEqual(['a.foreign.example', 'c.foreign.example']);
  await eventually(async () => (await ours.peerServices())[0]?.spec.description).toBe('changed');
  await eventually(() => owner.heard).toEqual(['register', 'ack', 'ack', 'ack', 'ack', 'ack']);
  // The one thing of ours that a foreign owner sees, and may ignore.
  const extra = Object.keys(owner.headers[0] ?? {}).filter((name) => name.includes('portolan'));
  expect(extra).toEqual(['portolan-snapshot']);
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
  await eventually(() => heldBy(ours)).toEqual(['a.foreign.example', 'b.foreign.example']);
  expect(owner.heard[1]).toMatch(/^nack 3 the message: Too long: 52\d+ bytes are more than 1048576/);
  await eventually(async () => (await ours.peer('foreign')).status?.consumer?.refusals).toEqual([
    { id: 'a.foreign.example', reason: expect.stringContaining('Too long') },
  ]);
  await eventually(async () => (await ours.peerServices())[0]?.status?.state).toBe('Refused');
});

test('foreign owner: fields that the home itself refuses -> NACK, not a stream that starts over and over', async () => {
  const { owner, ours } = await takeFromForeign();
  owner.put(db('a.foreign.example', { description: 'x'.repeat(10_000) }));
  owner.put(db('b.foreign.example'));
  await addForeign(ours, owner.port);
  await eventually(() => owner.heard.length).toBe(3);
  expect(owner.heard).toEqual(['register', expect.stringMatching(/^nack 3 description: Too long/), 'ack']);
});

test('foreign owner: another peer has the name -> an ACK like any other, whose message says so; never a second answer [000-07]', async () => {
  const { owner, ours } = await takeFromForeign();
  const other = await startMesh('other');
  closing.push(() => other.stop());
  await introduceTo(other, ours, { asOwner: { allowedDomains: ['shared.example'] } });
  await other.addService('db');
  await other.exportServices({ peers: ['ours'], fqdn: 'db.shared.example' });
  await eventually(() => heldBy(ours)).toEqual(['db.shared.example']);
  owner.put(db('x.foreign.example', { fqdn: 'db.shared.example' }));
  await addForeign(ours, owner.port, { allowedDomains: ['foreign.example', 'shared.example'] });
  await eventually(() => owner.notes).toEqual([
    expect.stringMatching(
      /^db\.shared\.example is held by another peer, which claimed it first; here it answers at \S+$/,
    ),
  ]);
  expect(owner.acknowledged.has('x.foreign.example')).toBe(true);
  await other.client.delete(serviceType, { namespace: 'shop', name: 'db' });
  await eventually(() => heldBy(ours)).toEqual(['x.foreign.example']);
  await eventually(async () => (await ours.peerServices())[0]?.status?.hostnames).toBeUndefined();
  owner.put(db('x.foreign.example', { fqdn: 'db.shared.example', description: 'next' }));
  await eventually(() => owner.acknowledged.get('x.foreign.example')).toBe('next');
  expect(owner.heard).toEqual(['register', 'ack', 'ack']);
  expect(owner.notes).toHaveLength(1);
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

test('foreign owner: headers only with its first message, and nothing to share any more -> Synced by silence, withdrawn by retention', async () => {
  const { owner, ours } = await takeFromForeign({ isLazy: true }, { keepAliveMs: 500 });
  for (const name of ['a', 'b']) owner.put(db(`${name}.foreign.example`));
  await addForeign(ours, owner.port, { retentionSeconds: 3 });
  await eventually(() => heldBy(ours)).toHaveLength(2);
  const status = async () => (await ours.peer('foreign')).status?.consumer;
  await eventually(status).toMatchObject({ state: 'Synced', reconciliation: 'Quiescence' });
  owner.breakStreams();
  for (const name of ['a', 'b']) owner.remove(`${name}.foreign.example`);
  await eventually(() => owner.heard.filter((said) => said === 'register').length).toBe(2);
  await eventually(() => heldBy(ours)).toEqual([]);
  await eventually(status).toMatchObject({ state: 'Synced', services: 0 });
});

async function giveToForeign(changes: Partial<ForeignConsumerOptions> = {}, spec: Partial<PeerSpec> = {}) {
  const ours = await ourMesh();
  await ours.addPeer('foreign', { trust: { domain: 'foreign.example', bundle: foreign.certificate }, ...spec });
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
    await ours.client.delete(serviceType, { namespace: 'shop', name: 'b' });
    await eventually(() => consumer.heard.at(-1)).toBe('DELETE b.shop.ours.example');
    await eventually(() => ours.peering.owner.report('foreign')?.unacknowledged).toBe(0);
    expect([...consumer.held.keys()]).toEqual(['a.shop.ours.example', 'c.shop.ours.example']);
  },
);

test('foreign consumer: its Peer says window 1 (strict), it is slow to answer -> one message, and the next after its answer', async () => {
  const { consumer } = await giveToForeign({ isSlow: true }, { window: 1 });
  await eventually(() => consumer.heard).toHaveLength(1);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(consumer.heard).toHaveLength(1);
  consumer.answer();
  await eventually(() => consumer.heard).toHaveLength(2);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(consumer.heard).toHaveLength(2);
});

test('foreign consumer: no window at its Peer -> everything is sent without waiting', async () => {
  const { consumer } = await giveToForeign({ isSlow: true });
  await eventually(() => consumer.heard).toHaveLength(3);
});

test('foreign consumer: it half-closes (deregisterConsumer) -> the call ends in good order, and it is no consumer any more', async () => {
  const { ours, consumer } = await giveToForeign();
  await eventually(() => consumer.held.size).toBe(3);
  consumer.deregister();
  expect((await consumer.ended).status).toBe('0');
  await eventually(() => ours.peering.owner.report('foreign')).toBeUndefined();
});

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

interface Said {
  readonly nonce?: string;
  readonly resourceUrl?: string;
  readonly resourceId?: string;
  readonly resource?: { readonly typeUrl?: string; readonly value: Uint8Array };
  readonly operation?: number;
}

/** One draft as grpc-js speaks it: what each side says, put into the messages of that draft. */
interface ForeignDraft {
  readonly name: 'v1alpha1' | 'v1alpha2';
  readonly url: string;
  readonly Service: protobuf.Type;
  readonly definition: grpc.ServiceDefinition;
  readonly operations: { readonly create: number; readonly update: number; readonly delete: number };
  request(fields: object): object;
  response(fields: object): object;
  requestIn(message: object): { readonly status?: object | null };
  responseIn(message: object): Said;
  service(id: string): object;
  idIn(said: Said): string;
}

function foreignDraft(name: ForeignDraft['name']): ForeignDraft {
  protoRoot.loadSync(`federation/resourcediscovery/${name}/discovery.proto`);
  protoRoot.loadSync(`federation/types/${name}/federated_service.proto`);
  const isFirst = name === 'v1alpha1';
  const message = (type: string) => protoRoot.lookupType(`federation.resourcediscovery.${name}.${type}`);
  const Request = message(isFirst ? 'StreamRequest' : 'BidirectionalStream');
  const Response = message(isFirst ? 'StreamResponse' : 'BidirectionalStream');
  const Service = protoRoot.lookupType(`federation.types.${name}.FederatedService`);
  const service2 = (id: string) => {
    const { san, protocols, ...rest } = db(id);
    const instances = (protocols ?? []).map((protocol) => ({ id, protocol, metadata: { SNI: id } }));
    return { ...rest, sans: [san], instances };
  };
  return {
    name,
    url: `type.googleapis.com/federation.types.${name}.FederatedService`,
    Service,
    definition: {
      EstablishStream: {
        path: `/federation.resourcediscovery.${name}.DiscoveryService/EstablishStream`,
        requestStream: true,
        responseStream: true,
        requestSerialize: (value: object) => Buffer.from(Request.encode(value as never).finish()),
        requestDeserialize: (bytes: Buffer) => Request.decode(bytes),
        responseSerialize: (value: object) => Buffer.from(Response.encode(value as never).finish()),
        responseDeserialize: (bytes: Buffer) => Response.decode(bytes),
      },
    },
    operations: isFirst ? { create: 1, update: 2, delete: 3 } : { create: 1, update: 1, delete: 2 },
    request: (fields) => (isFirst ? fields : { request: fields }),
    response: (fields) => (isFirst ? fields : { response: fields }),
    requestIn: (said) => (isFirst ? said : (said as { request: object }).request),
    responseIn: (said) => (isFirst ? said : (said as { response: object }).response),
    service: isFirst ? db : service2,
    idIn: ({ resource, resourceId }) =>
      isFirst ? (Service.decode(resource!.value) as unknown as { id: string }).id : (resourceId ?? ''),
  };
}

const foreignDrafts = [foreignDraft('v1alpha1'), foreignDraft('v1alpha2')];

const plainly = foreignDrafts.map((draft) => ({ ...draft, how: 'plain', options: {} }));
const gzip = { 'grpc.default_compression_algorithm': grpc.compressionAlgorithms.gzip };
const compressing = { ...foreignDrafts[0]!, how: 'by gzip', options: gzip };

test.each([...plainly, compressing])(
  'grpc-js as consumer, $how -> full catalog, then changes; its answers are understood ($name) [000-02]',
  async ({ options, ...draft }) => {
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
    const Client = grpc.makeGenericClientConstructor(draft.definition, 'DiscoveryService');
    const client = new Client(`127.0.0.1:${ours.peering.port}`, credentials, options);
    closing.push(() => client.close());
    const stream = (client['EstablishStream'] as () => grpc.ClientDuplexStream<object, object>).call(client);
    closing.push(() => stream.cancel());
    stream.on('error', () => {});
    const heard: string[] = [];
    stream.on('data', (message: object) => {
      const said = draft.responseIn(message);
      const id = draft.idIn(said);
      heard.push(`${said.operation} ${id}`);
      const status = id.startsWith('c.') ? { code: 3, message: 'we do not want it' } : {};
      stream.write(draft.request({ resourceUrl: draft.url, responseNonce: said.nonce, status }));
    });
    stream.write(draft.request({ resourceUrl: draft.url }));
    const { create, update, delete: remove } = draft.operations;
    const all = ['a', 'b', 'c'].map((name) => `${create} ${name}.shop.ours.example`);
    await eventually(() => heard).toEqual(all);
    await eventually(() => ours.peering.owner.report('foreign')).toMatchObject({ lag: 0, version: draft.name });
    expect([...ours.peering.owner.report('foreign')!.refusals.keys()]).toEqual(['c.shop.ours.example']);
    const body = { metadata: { annotations: { 'portolan.dev/description': 'changed' } } };
    await ours.client.patch(serviceType, { namespace: 'shop', name: 'a' }, { kind: 'merge', body });
    await eventually(() => heard.at(-1)).toBe(`${update} a.shop.ours.example`);
    await ours.client.delete(serviceType, { namespace: 'shop', name: 'b' });
    await eventually(() => heard.at(-1)).toBe(`${remove} b.shop.ours.example`);
    expect(heard).toHaveLength(5);
  },
);

test.each(foreignDrafts)('grpc-js as owner -> we take its catalog and follow it ($name) [000-02]', async (draft) => {
  const ours = await ourMesh();
  const { certificate, key } = foreign.issue();
  const server = new grpc.Server();
  const heard: string[] = [];
  let say: (operation: number, id: string) => void = () => {};
  server.addService(draft.definition, {
    EstablishStream: (stream: grpc.ServerDuplexStream<object, object>) => {
      say = (operation, id) => {
        const value = draft.Service.encode(draft.Service.fromObject(draft.service(id))).finish();
        const resource = { type_url: draft.url, typeUrl: draft.url, value };
        stream.write(draft.response({ nonce: id, resourceUrl: draft.url, resourceId: id, resource, operation }));
      };
      stream.on('data', (message) => {
        const { status } = draft.requestIn(message);
        heard.push(status === undefined || status === null ? 'register' : 'answer');
        if (heard.length === 1)
          for (const id of ['a.foreign.example', 'b.foreign.example']) say(draft.operations.create, id);
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
  expect((await ours.peerServices())[0]?.spec).toMatchObject({
    fqdn: 'a.foreign.example',
    sans: ['spiffe://foreign.example'],
    protocols: ['http'],
    endpoints: [{ address: '192.0.2.9', port: 443 }],
  });
  say(draft.operations.delete, 'a.foreign.example');
  await eventually(() => heldBy(ours)).toEqual(['b.foreign.example']);
  await eventually(() => heard).toEqual(['register', 'answer', 'answer', 'answer']);
  await eventually(async () => (await ours.peer('foreign')).status?.consumer?.version).toBe(draft.name);
});

test('grpc-js publishes and subscribes on the one stream that we opened, and wants a context -> both halves are served [000-08]', async () => {
  const draft = foreignDrafts[1]!;
  const ours = await ourMesh();
  await ours.addService('db');
  const { certificate, key } = foreign.issue();
  const server = new grpc.Server();
  const heard: string[] = [];
  server.addService(draft.definition, {
    EstablishStream: (stream: grpc.ServerDuplexStream<object, object>) => {
      stream.on('error', () => {});
      stream.on('data', (message: BothHalves) => {
        const { request, response } = message;
        if (request?.context) heard.push(`${request.status ? 'answer' : 'register'} in ${request.context}`);
        if (response) {
          heard.push(`${response.operation} ${response.resourceId} in ${response.context}`);
          stream.write({ request: { resourceUrl: draft.url, responseNonce: response.nonce, status: {} } });
        }
        if (request && !request.status) {
          const value = draft.Service.encode(draft.Service.fromObject(draft.service('a.foreign.example'))).finish();
          const resource = { type_url: draft.url, typeUrl: draft.url, value };
          const published = {
            nonce: '1',
            resourceUrl: draft.url,
            resourceId: 'a.foreign.example',
            resource,
            operation: 1,
          };
          // One message with both halves, as the draft allows.
          stream.write({ request: { resourceUrl: draft.url, context: 'theirs' }, response: published });
        }
      });
    },
  });
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(key) };
  const credentials = grpc.ServerCredentials.createSsl(Buffer.from(ours.mesh.certificate), [pair], true);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  closing.push(() => server.forceShutdown());
  await ours.exportServices({ peers: ['foreign'] });
  await addForeign(ours, port, { versions: ['v1alpha2'], context: 'mesh-7' });
  await eventually(() => heldBy(ours)).toEqual(['a.foreign.example']);
  await eventually(() => [...heard].sort()).toEqual([
    '1 db.shop.ours.example in theirs',
    'answer in mesh-7',
    'register in mesh-7',
  ]);
  await eventually(async () => (await ours.peer('foreign')).status?.owner).toMatchObject({
    state: 'Synced',
    services: 1,
  });
});

interface BothHalves {
  readonly request?: { readonly context?: string; readonly status?: object | null };
  readonly response?: {
    readonly nonce: string;
    readonly operation: number;
    readonly resourceId: string;
    readonly context: string;
  };
}

test('the later draft on the same port, both sides at once -> neither waits for the other', async () => {
  const [one, two] = [await startMesh('one'), await startMesh('two')];
  closing.push(
    () => one.stop(),
    () => two.stop(),
  );
  const names = Array.from({ length: 50 }, (_, n) => `s${n}`);
  for (const [from, to] of [
    [one, two],
    [two, one],
  ] as const) {
    await from.addPeer(to.name, {
      address: `127.0.0.1:${to.peering.port}`,
      trust: { domain: to.mesh.domain, bundle: to.mesh.certificate },
      allowedDomains: [to.mesh.domain],
      versions: ['v1alpha2'],
    });
    for (const name of names) await from.addService(name);
    await from.exportServices({ peers: [to.name] });
  }
  for (const node of [one, two]) await eventually(async () => (await heldBy(node)).length).toBe(50);
});

test('the foreign peer is foreign -> it imports nothing from src', () => {
  for (const file of ['owner.ts', 'consumer.ts', 'wire.ts']) {
    const code = readFileSync(new URL(`foreign-peer/${file}`, import.meta.url), 'utf8');
    expect(code).not.toMatch(/from '\.\.\//);
  }
});
