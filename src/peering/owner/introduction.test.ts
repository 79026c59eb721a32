import { afterEach, expect, test } from 'vitest';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type Peer, peerType } from '../kinds/peer.ts';
import { formatToken, introductionName, parseToken } from '../rules/peer-introduction.ts';
import { type MemoryHome, memoryHome, namespace } from '../testing/edge/memory-home.ts';
import { hashOf, introduce } from './introduction.ts';

let home: MemoryHome | undefined;
afterEach(() => home?.stop());

async function setUp(expiresMs: number) {
  home = await memoryHome();
  const { client } = home;
  const terms = JSON.stringify({ peer: 'west', allowedDomains: ['west.example'], expiresMs });
  await client.create<Secret>(secretType, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: introductionName(hashOf('sesame')), namespace },
    stringData: { terms },
  });
  const say = (body: object, untilKnown = async (_peer: string) => {}) =>
    introduce({
      client,
      namespace,
      secretsNamespace: namespace,
      nowMs: 1000,
      body: Buffer.from(JSON.stringify(body)),
      untilKnown,
    });
  return { client, say };
}

const card = { secret: 'sesame', address: 'west.example:8008', domain: 'west.example', bundle: 'PEM' };

test('introduction: the right secret -> a Peer under the terms of the token; a second time -> refused', async () => {
  const { client, say } = await setUp(2000);
  expect(await say(card)).toEqual({ status: 200, body: '{"peer":"west"}' });
  const peer = await client.get<Peer>(peerType, { namespace, name: 'west' });
  expect(peer.spec).toMatchObject({
    address: 'west.example:8008',
    trust: { domain: 'west.example', bundle: 'PEM' },
    allowedDomains: ['west.example'],
  });
  expect((await say(card)).status).toBe(401);
});

test('introduction: the Peer is made but not known yet -> answered once it is, for the other side dials then', async () => {
  const { client, say } = await setUp(2000);
  const steps: string[] = [];
  const answer = await say(card, async (peer) => {
    steps.push(`waits for ${peer}`);
    await client.get(peerType, { namespace, name: peer });
    steps.push('known');
  });
  expect([answer.status, steps]).toEqual([200, ['waits for west', 'known']]);
});

test('introduction: expired, a wrong secret, no introduction at all -> refused, no Peer', async () => {
  const { client, say } = await setUp(999);
  expect((await say({ ...card, secret: 'guess' })).status).toBe(401);
  expect((await say({ hello: 'world' })).status).toBe(400);
  expect(await say(card)).toMatchObject({ status: 401, body: expect.stringContaining('expired') });
  expect((await client.list(peerType, { namespace })).items).toEqual([]);
});

test('introduction: a Peer of that name is there, or none can come of what was said -> refused with the reason; the token stays good', async () => {
  const { client, say } = await setUp(2000);
  const bad = await say({ ...card, domain: 'Not A Domain' });
  expect(bad).toMatchObject({ status: 422, body: expect.stringContaining('trust.domain') });
  expect(bad.body).toContain('the token can be used again');
  const other = { trust: { domain: 'other.example', bundle: 'PEM' } };
  const metadata = { name: 'west', namespace };
  await client.create(peerType, { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata, spec: other });
  expect(await say(card)).toMatchObject({ status: 409, body: expect.stringContaining('a Peer west is known there') });
  await client.delete(peerType, metadata);
  expect((await say(card)).status).toBe(200);
  expect((await say(card)).status).toBe(401);
});

test('introduction: two come with one token at once -> one becomes a Peer, the other is refused', async () => {
  const { client, say } = await setUp(2000);
  const answers = await Promise.all([say(card), say({ ...card, domain: 'other.example' })]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
  expect((await client.list(peerType, { namespace })).items).toHaveLength(1);
});

test('token: written and read again; anything else -> none', () => {
  expect(parseToken(formatToken(card))).toEqual(card);
  expect(parseToken('portolan-peer-AAAA')).toBeUndefined();
  expect(parseToken('something')).toBeUndefined();
});
