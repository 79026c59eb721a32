// Server-side apply under hostile and unlucky requests: fields of others, races, schemas that change, lists made up by clients.

import { describe, expect, test } from 'vitest';
import { createTestApi, type Reply, type TestApi } from '../testing/test-api.ts';

const merge = { 'content-type': 'application/merge-patch+json' };
const maps = '/api/v1/namespaces/default/configmaps';
const map = { apiVersion: 'v1', kind: 'ConfigMap' };
const things = '/apis/ex.io/v1/namespaces/default/things';
const thing = { apiVersion: 'ex.io/v1', kind: 'Thing' };
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

function apply(api: TestApi, place: string, body: object | string): Promise<Reply> {
  return api.send(`PATCH ${place}`, body, { 'content-type': 'application/apply-patch+yaml' });
}

async function applied(api: TestApi, place: string, body: object): Promise<Reply['body']> {
  const { status, body: answer } = await apply(api, place, body);
  if (status >= 300) throw new Error(`${status} ${answer.message}`);
  return answer;
}

async function withThings(properties: object): Promise<TestApi> {
  const api = await createTestApi();
  const status = { type: 'object', properties: { phase: { type: 'string' } } };
  const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', properties }, status } };
  const version = {
    name: 'v1',
    served: true,
    storage: true,
    subresources: { status: {} },
    schema: { openAPIV3Schema },
  };
  await api.ok(`POST ${definitions}`, {
    metadata: { name: 'things.ex.io' },
    spec: {
      group: 'ex.io',
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      scope: 'Namespaced',
      versions: [version],
    },
  });
  await api.time.advance(1000);
  return api;
}

async function changeThings(api: TestApi, change: (properties: Reply['body']) => void): Promise<void> {
  const definition = await api.ok(`GET ${definitions}/things.ex.io`);
  change(definition.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties);
  await api.ok(`PUT ${definitions}/things.ex.io`, definition);
  await api.time.advance(1000);
}

function managers({ metadata }: Reply['body']): string[] {
  return (metadata.managedFields ?? []).map(({ manager }: { manager: string }) => manager);
}

describe('apply: fields of others', () => {
  test('null for a map or a list that others own -> theirs stay', async () => {
    const api = await createTestApi();
    const metadata = { finalizers: ['e.io/x'], labels: { l: '1' } };
    await applied(api, `${maps}/x?fieldManager=a`, { ...map, metadata, data: { x: '1' } });
    const nothing = { ...map, metadata: { finalizers: null, labels: null }, data: null };
    const after = await applied(api, `${maps}/x?fieldManager=b&force=true`, nothing);
    expect([after.data, after.metadata.labels, after.metadata.finalizers]).toEqual([
      { x: '1' },
      { l: '1' },
      ['e.io/x'],
    ]);
  });

  test('an applier leaves all metadata it had -> the name and the rest of the server stay', async () => {
    const api = await createTestApi();
    await applied(api, `${maps}/x?fieldManager=a`, { ...map, metadata: { labels: { l: '1' } }, data: { x: '1' } });
    const after = await applied(api, `${maps}/x?fieldManager=a`, { ...map, data: { x: '1' } });
    expect(after.metadata).toMatchObject({ name: 'x', namespace: 'default', uid: expect.any(String) });
    expect(after.metadata.labels).toBeUndefined();
  });

  test('the last finalizer of a dying object is applied no longer -> the object is gone', async () => {
    const api = await createTestApi();
    await applied(api, `${maps}/x?fieldManager=a`, { ...map, metadata: { finalizers: ['e.io/x'] } });
    await api.ok(`DELETE ${maps}/x`);
    expect((await apply(api, `${maps}/x?fieldManager=a`, map)).status).toBe(200);
    expect((await api.send(`GET ${maps}/x`)).status).toBe(404);
  });

  test('a value of another form where the schema says none -> 409 on the fields below', async () => {
    const api = await withThings({ x: { 'x-kubernetes-preserve-unknown-fields': true } });
    await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: { x: { k: '1' } } });
    const { status, body } = await apply(api, `${things}/x?fieldManager=b`, { ...thing, spec: { x: [1] } });
    expect([status, body.details?.causes?.[0].field]).toEqual([409, '.spec.x.k']);
    const forced = await applied(api, `${things}/x?fieldManager=b&force=true`, { ...thing, spec: { x: [1] } });
    expect(managers(forced)).toEqual(['b']);
  });

  test('a map becomes atomic while its keys are owned -> 409 on the map', async () => {
    const api = await withThings({ m: { type: 'object', additionalProperties: { type: 'string' } } });
    await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: { m: { k: '1' } } });
    await changeThings(api, ({ m }) => {
      m['x-kubernetes-map-type'] = 'atomic';
    });
    const { status, body } = await apply(api, `${things}/x?fieldManager=b`, { ...thing, spec: { m: { l: '1' } } });
    expect([status, body.details?.causes?.[0].field]).toEqual([409, '.spec.m']);
  });

  test('a map is atomic no longer while it is owned -> its owner keeps it as it was, others may add keys', async () => {
    const m = { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: { type: 'string' } };
    const api = await withThings({ m });
    await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: { m: { k: '1' } } });
    await changeThings(api, (properties) => {
      properties.m['x-kubernetes-map-type'] = 'granular';
    });
    const both = await applied(api, `${things}/x?fieldManager=b`, { ...thing, spec: { m: { l: '1' } } });
    expect(both.spec.m).toEqual({ k: '1', l: '1' });
    expect(both.metadata.managedFields[0].fieldsV1).toEqual({ 'f:spec': { 'f:m': {} } });
    const again = await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: { m: { k: '1' } } });
    expect(again.spec.m).toEqual({ k: '1', l: '1' });
  });

  test('kubectl in conflict over some fields that are as last applied -> the others alone are named', async () => {
    const api = await createTestApi();
    const annotations = { [lastApplied]: JSON.stringify({ ...map, data: { a: '1' } }) };
    await api.ok(`POST ${maps}`, { metadata: { name: 'x', annotations }, data: { a: '1', c: '1' } });
    const { body } = await apply(api, `${maps}/x?fieldManager=kubectl`, { ...map, data: { a: '2', c: '2' } });
    expect(body.details.causes.map(({ field }: { field: string }) => field)).toEqual(['.data.c']);
  });
});

describe('apply: configurations', () => {
  test('three appliers create one object at a time -> all are applied', async () => {
    const api = await createTestApi();
    const names = ['a', 'b', 'c'];
    const replies = await Promise.all(
      names.map((name) => apply(api, `${maps}/x?fieldManager=${name}`, { ...map, data: { [name]: '1' } })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
    expect((await api.ok(`GET ${maps}/x`)).data).toEqual({ a: '1', b: '1', c: '1' });
  });

  test('another namespace in the body -> 400, also for an object that is there', async () => {
    const api = await createTestApi();
    const elsewhere = { ...map, metadata: { namespace: 'other' }, data: { x: '1' } };
    expect((await apply(api, `${maps}/x?fieldManager=a`, elsewhere)).status).toBe(400);
    await applied(api, `${maps}/x?fieldManager=a`, { ...map, data: { x: '1' } });
    expect((await apply(api, `${maps}/x?fieldManager=a`, elsewhere)).status).toBe(400);
    const space = { apiVersion: 'v1', kind: 'Namespace', metadata: { namespace: 'q', labels: { a: 'b' } } };
    for (const status of [201, 200])
      expect((await apply(api, '/api/v1/namespaces/n?fieldManager=a', space)).status).toBe(status);
  });

  test('an object embedded in another -> its type and metadata are known', async () => {
    const spec = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const e = { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec } };
    const api = await withThings({ e });
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'q' }, spec: { a: 1 } };
    expect((await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: { e: pod } })).spec.e).toEqual(pod);
  });

  test('an item of a set with its fields in another order -> the same item', async () => {
    const integer = { type: 'integer' };
    const items = { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: { a: integer, b: integer } };
    const api = await withThings({ s: { type: 'array', 'x-kubernetes-list-type': 'set', items } });
    await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: { s: [{ a: 1, b: 2 }] } });
    const both = await applied(api, `${things}/x?fieldManager=b`, { ...thing, spec: { s: [{ b: 2, a: 1 }] } });
    expect([both.spec.s, managers(both)]).toEqual([[{ a: 1, b: 2 }], ['b', 'a']]);
  });

  test('an item whose only key has a default -> told apart by it', async () => {
    const properties = { p: { type: 'string', default: 'TCP' }, n: { type: 'string' } };
    const list = { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['p'] };
    const api = await withThings({ d: { ...list, items: { type: 'object', properties } } });
    const made = await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: { d: [{ n: 'x' }] } });
    expect(made.metadata.managedFields[0].fieldsV1['f:spec']['f:d']).toEqual({
      'k:{"p":"TCP"}': { '.': {}, 'f:n': {} },
    });
  });

  test('nothing is applied to /status any longer -> the status and its manager are gone', async () => {
    const api = await withThings({});
    await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: {} });
    await applied(api, `${things}/x/status?fieldManager=c`, { ...thing, status: { phase: 'Up' } });
    const left = await applied(api, `${things}/x/status?fieldManager=c`, thing);
    expect([left.status, managers(left)]).toEqual([undefined, ['a']]);
  });

  test('annotations applied to /status of a Service -> kept and owned', async () => {
    const api = await createTestApi();
    const service = { apiVersion: 'v1', kind: 'Service' };
    const place = '/api/v1/namespaces/default/services/x';
    await applied(api, `${place}?fieldManager=a`, { ...service, spec: { ports: [{ port: 80 }] } });
    const metadata = { annotations: { a: 'b' } };
    const after = await applied(api, `${place}/status?fieldManager=c`, { ...service, metadata });
    expect(after.metadata.annotations).toEqual({ a: 'b' });
    expect(after.metadata.managedFields.at(-1)).toMatchObject({ subresource: 'status' });
  });

  test.each(['__proto__', 'constructor', 'toString'])('the key %s -> owned, in conflict and removed', async (name) => {
    const api = await createTestApi();
    const one = (value: string) => `{"apiVersion":"v1","kind":"ConfigMap","data":{"${name}":"${value}"}}`;
    await apply(api, `${maps}/x?fieldManager=a`, one('1'));
    const { body } = await apply(api, `${maps}/x?fieldManager=b`, one('2'));
    expect(body.details.causes[0].field).toBe(`.data.${name}`);
    const { body: forced } = await apply(api, `${maps}/x?fieldManager=b&force=true`, one('2'));
    expect(Object.entries(forced.data)).toEqual([[name, '2']]);
    expect((await applied(api, `${maps}/x?fieldManager=b`, map)).data).toBeUndefined();
  });

  test('an empty configuration makes an object -> it has no list of managers', async () => {
    const api = await createTestApi();
    expect((await applied(api, `${maps}/x?fieldManager=a`, map)).metadata).not.toHaveProperty('managedFields');
  });
});

describe('apply: annotations of kubectl', () => {
  test('a last configuration nested very deep -> no configuration, and the object can be applied', async () => {
    const api = await withThings({ a: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } });
    const deep = `{"spec":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`;
    const metadata = { annotations: { [lastApplied]: deep } };
    await applied(api, `${things}/x?fieldManager=a`, { ...thing, metadata, spec: { a: { b: 1 } } });
    const after = await applied(api, `${things}/x?fieldManager=kubectl`, { ...thing, spec: { a: { c: 2 } } });
    expect(after.spec.a).toEqual({ b: 1, c: 2 });
  });

  test('a configuration too long for the annotation -> applied, and the annotation is gone', async () => {
    const api = await createTestApi();
    await api.ok(`POST ${maps}`, { metadata: { name: 'x', annotations: { [lastApplied]: '{}' } } });
    const data = { b: 'x'.repeat(300_000) };
    const after = await applied(api, `${maps}/x?fieldManager=kubectl`, { ...map, data });
    expect([after.data, after.metadata.annotations]).toEqual([data, undefined]);
  });
});

describe('apply: managers that clients make up', () => {
  const entry = { manager: 'm', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1' };
  const fieldsV1 = { 'f:data': { 'f:x': {} } };

  test.each([
    ['a time that is none', [{ ...entry, fieldsV1, time: 'nonsense' }]],
    ['a second that the calendar does not have', [{ ...entry, fieldsV1, time: '2026-01-01T00:00:60Z' }]],
    ['a name of 129 bytes', [{ ...entry, fieldsV1, manager: 'm'.repeat(129) }]],
    ['numbers', [1, 2]],
    ['a text', 'abc'],
    ['two thousand entries', Array.from({ length: 2000 }, (_, at) => ({ ...entry, manager: `m${at}`, fieldsV1 }))],
  ])('%s -> ignored, the managers stay', async (_what, managedFields) => {
    const api = await createTestApi();
    const before = await applied(api, `${maps}/x?fieldManager=a`, { ...map, data: { x: '1' } });
    const after = await api.ok(`PATCH ${maps}/x`, { metadata: { managedFields } }, merge);
    expect(after).toEqual(before);
  });

  test('times with other digits -> the same times, and no new revision', async () => {
    const api = await createTestApi();
    const before = await applied(api, `${maps}/x?fieldManager=a`, { ...map, data: { x: '1' } });
    const managedFields = before.metadata.managedFields.map(({ time, ...rest }: { time: string }) => ({
      ...rest,
      time: time.replace('Z', '.000Z'),
    }));
    expect(await api.ok(`PATCH ${maps}/x`, { metadata: { managedFields } }, merge)).toEqual(before);
  });

  test('one applier more than a thousand -> 422, the managers stay; an update is tracked', async () => {
    const api = await createTestApi();
    await applied(api, `${maps}/x?fieldManager=a`, { ...map, data: { x: '1' } });
    const managedFields = Array.from({ length: 1000 }, (_, at) => ({ ...entry, manager: `m${at}`, fieldsV1 }));
    await api.ok(`PATCH ${maps}/x`, { metadata: { managedFields } }, merge);
    const { status, body } = await apply(api, `${maps}/x?fieldManager=b`, { ...map, data: { y: '1' } });
    expect([status, body.details.causes[0].field]).toEqual([422, 'metadata.managedFields']);
    expect(managers(await api.ok(`PATCH ${maps}/x?fieldManager=u`, { data: { y: '1' } }, merge))).toHaveLength(1001);
    expect((await apply(api, `${maps}/x?fieldManager=m1`, { ...map, data: { y: '2' } })).status).toBe(409);
  });

  test('fourteen updaters of the status -> nine and one for the oldest', async () => {
    const api = await withThings({});
    await applied(api, `${things}/x?fieldManager=a`, { ...thing, spec: {} });
    const definition = await api.ok(`GET ${definitions}/things.ex.io`);
    const { properties } = definition.spec.versions[0].schema.openAPIV3Schema;
    properties.status = { type: 'object', additionalProperties: { type: 'string' } };
    await api.ok(`PUT ${definitions}/things.ex.io`, definition);
    await api.time.advance(1000);
    for (let at = 0; at < 14; at++) {
      await api.time.advance(1000);
      await api.ok(`PATCH ${things}/x/status?fieldManager=u${at}`, { status: { [`k${at}`]: '1' } }, merge);
    }
    expect(managers(await api.ok(`GET ${things}/x`))).toHaveLength(11);
  });
});

test.each([
  ['POST', 'CreateOptions', ''],
  ['PUT', 'UpdateOptions', '/x'],
  ['PATCH', 'PatchOptions', '/x'],
])('a plain %s with a manager too long or unprintable -> 422 of %s', async (method, kind, name) => {
  const api = await createTestApi();
  if (name !== '') await api.ok(`POST ${maps}`, { metadata: { name: 'x' } });
  const headers = method === 'PATCH' ? merge : { 'content-type': 'application/json' };
  for (const manager of ['m'.repeat(129), '%07']) {
    const place = `${method} ${maps}${name}?fieldManager=${manager}`;
    const { status, body } = await api.send(place, { metadata: { name: 'x' } }, headers);
    expect([status, body.message]).toEqual([422, expect.stringContaining(`${kind}.meta.k8s.io "" is invalid: fieldM`)]);
  }
});
