import { describe, expect, test } from 'vitest';
import { customResourceDefinitionKind } from '../kinds/custom-resource-definition.ts';
import { builtinKinds } from '../kinds/index.ts';
import type { Admission, Kind, KindBehaviour } from '../model/kind.ts';
import { StatusError } from '../model/status.ts';
import { createTestApi, type TestApi, TestTime } from '../testing/test-api.ts';

const things = '/apis/example.com/v1/things';

function thingKind(behaviour: Partial<KindBehaviour>): Kind {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
  return {
    group: 'example.com',
    kind: 'Thing',
    listKind: 'ThingList',
    plural: 'things',
    singular: 'thing',
    shortNames: [],
    categories: [],
    isNamespaced: false,
    storageVersion: 'v1',
    versions: [{ name: 'v1', isServed: true, schema, hasStatus: false, columns: [] }],
    behaviour: { nameRule: 'dnsSubdomain', ...behaviour },
  };
}

function withThings(behaviour: Partial<KindBehaviour>): Promise<TestApi> {
  const { random } = new TestTime().world;
  const extra = [customResourceDefinitionKind, thingKind(behaviour)];
  return createTestApi({ kinds: builtinKinds({ serviceRanges: ['10.96.0.0/16'], random, extra }) });
}

describe('admission', () => {
  test('further writes -> in the same commit as the object, on create, update and removal', async () => {
    const admit = async ({ operation, object, alsoWrite }: Admission) => {
      alsoWrite.push({ key: `/claims/${object.metadata.name}`, value: Buffer.from(operation) });
    };
    const { ok, store } = await withThings({ admit });
    const claim = async () => {
      const entry = await store.get('/claims/t');
      return [Buffer.from(entry!.value).toString(), entry!.revision];
    };
    const made = await ok(`POST ${things}`, { metadata: { name: 't' } });
    expect(await claim()).toEqual(['create', Number(made.metadata.resourceVersion)]);
    const changed = await ok(`PUT ${things}/t`, { ...made, size: 1 });
    expect(await claim()).toEqual(['update', Number(changed.metadata.resourceVersion)]);
    await ok(`DELETE ${things}/t`);
    expect(await claim()).toEqual(['delete', store.revision()]);
  });

  test('a compare that fails -> the whole request again, from a fresh object', async () => {
    const seen: unknown[] = [];
    const admit = async ({ object, alsoCompare, store }: Admission) => {
      seen.push(object['mark']);
      object['mark'] = 'admitted';
      const current = (await store.get('/counter'))?.revision ?? 0;
      // The first two are based on something that is no longer so.
      alsoCompare.push({ key: '/counter', revision: seen.length < 3 ? 999 : current });
    };
    const { ok } = await withThings({ admit });
    expect((await ok(`POST ${things}`, { metadata: { name: 't' } })).mark).toBe('admitted');
    expect(seen).toEqual([undefined, undefined, undefined]);
  });

  test('a compare that never holds -> 429 in the end, not for ever', async () => {
    const admit = async ({ alsoCompare }: Admission) => void alsoCompare.push({ key: '/counter', revision: 999 });
    const { send } = await withThings({ admit });
    expect((await send(`POST ${things}`, { metadata: { name: 't' } })).status).toBe(429);
  });

  test('a refusal -> told, and nothing is written', async () => {
    const admit = async () => {
      throw new StatusError('Forbidden', 'things are not for you');
    };
    const { send, store } = await withThings({ admit });
    const before = store.revision();
    const { status, body } = await send(`POST ${things}`, { metadata: { name: 't' } });
    expect([status, body.message, store.revision()]).toEqual([403, 'things are not for you', before]);
  });

  test('a delete of something that is held -> the kind is asked at once, its writes come with the removal', async () => {
    const asked: string[] = [];
    const admit = async ({ operation, alsoWrite }: Admission) => {
      asked.push(operation);
      if (operation === 'delete') alsoWrite.push({ key: '/claims/t', value: Buffer.from('released') });
    };
    const { ok, store } = await withThings({ admit });
    const made = await ok(`POST ${things}`, { metadata: { name: 't', finalizers: ['example.com/hold'] } });
    await ok(`DELETE ${things}/t`);
    expect(await store.get('/claims/t')).toBeUndefined();
    const { metadata } = await ok(`GET ${things}/t`);
    await ok(`PUT ${things}/t`, { ...made, metadata: { ...metadata, finalizers: [] } });
    expect(await store.get('/claims/t')).toBeDefined();
    expect(asked).toEqual(['create', 'delete', 'delete']);
  });

  test('warnings of the kind -> in the Warning header', async () => {
    const { send } = await withThings({ warnings: () => ['things are "old"'] });
    const { headers } = await send(`POST ${things}`, { metadata: { name: 't' } });
    expect(headers['warning']).toBe('299 - "things are \\"old\\""');
  });
});

describe('reviews and subresources', () => {
  test('a review -> answered with 201, nothing stored, no other verb', async () => {
    const review: KindBehaviour['review'] = async (object, { user }) => ({ ...object, status: { user: user.name } });
    const { send, store } = await withThings({ review, verbs: ['create'] });
    const before = store.revision();
    const { status, body } = await send(`POST ${things}`, { spec: { a: 1 } });
    expect([status, body.status, body.spec]).toEqual([201, { user: 'tester' }, { a: 1 }]);
    expect(store.revision()).toBe(before);
    expect((await send(`GET ${things}`)).status).toBe(405);
    expect((await send(`GET ${things}/t`)).status).toBe(405);
  });

  test('a subresource -> POST with its own kind of body, on an object that is there', async () => {
    const subresources: KindBehaviour['subresources'] = {
      key: {
        group: 'keys.example.com',
        version: 'v1',
        kind: 'KeyRequest',
        create: async (body, parent) => ({ ...body, status: { for: parent.metadata.uid } }),
      },
    };
    const { ok, send } = await withThings({ subresources });
    const made = await ok(`POST ${things}`, { metadata: { name: 't' } });
    const { status, body } = await send(`POST ${things}/t/key`, { spec: {} });
    expect([status, body.kind, body.apiVersion]).toEqual([201, 'KeyRequest', 'keys.example.com/v1']);
    expect(body.status.for).toBe(made.metadata.uid);
    expect((await send(`POST ${things}/none/key`, {})).status).toBe(404);
    expect((await send(`GET ${things}/t/key`)).status).toBe(405);
    expect((await send(`POST ${things}/t/key`, { apiVersion: 'v1', kind: 'Pod' })).status).toBe(400);
    const { resources } = await ok('GET /apis/example.com/v1');
    expect(resources[1]).toMatchObject({
      name: 'things/key',
      kind: 'KeyRequest',
      group: 'keys.example.com',
      verbs: ['create'],
    });
  });
});
