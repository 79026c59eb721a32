// Objects that were stored before their definition changed, as they are read afterwards.

import { expect, test } from 'vitest';
import { createTestApi, type TestApi } from '../testing/test-api.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const boats = '/apis/ex.io/v1/namespaces/default/boats';
const merge = { 'content-type': 'application/merge-patch+json' };

function definitionOf(fields: object): object {
  const schema = { type: 'object', properties: { spec: { type: 'object', properties: fields } } };
  const version = {
    name: 'v1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: schema },
    selectableFields: 'flag' in fields ? [{ jsonPath: '.spec.flag' }] : [],
    additionalPrinterColumns: [{ name: 'Flag', type: 'string', jsonPath: '.spec.flag' }],
  };
  const names = { plural: 'boats', kind: 'Boat' };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boats.ex.io' },
    spec: { group: 'ex.io', names, scope: 'Namespaced', versions: [version] },
  };
}

/** `old` is stored with a field that the definition then loses, while it gets one with a default; `new` afterwards. */
async function withOldBoat(): Promise<TestApi & { before: string }> {
  const api = await createTestApi();
  await api.ok(`POST ${definitions}`, definitionOf({ sail: { type: 'string' }, mast: { type: 'string' } }));
  await api.time.advance(1000);
  const boat = { apiVersion: 'ex.io/v1', kind: 'Boat' };
  const old = await api.ok(`POST ${boats}`, { ...boat, metadata: { name: 'old' }, spec: { sail: 'red', mast: 'oak' } });
  const next = definitionOf({ sail: { type: 'string' }, flag: { type: 'string', default: 'none' } }) as {
    spec: object;
  };
  await api.ok(`PATCH ${definitions}/boats.ex.io`, { spec: next.spec }, merge);
  await api.time.advance(1000);
  await api.ok(`POST ${boats}`, { ...boat, metadata: { name: 'new' }, spec: { sail: 'blue', flag: 'own' } });
  return { ...api, before: old.metadata.resourceVersion };
}

const renewed = { sail: 'red', flag: 'none' };

test('definition changed: an older object is read -> with new defaults, without unknown fields, at its own revision', async () => {
  const { ok, before } = await withOldBoat();
  const { spec, metadata } = await ok(`GET ${boats}/old`);
  expect([spec, metadata.resourceVersion]).toEqual([renewed, before]);
  const { items } = await ok(`GET ${boats}`);
  expect(items.map((item: { spec: object }) => item.spec)).toEqual([{ sail: 'blue', flag: 'own' }, renewed]);
});

test('definition changed: older objects in tables and by selector -> the default counts', async () => {
  const { ok } = await withOldBoat();
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const { rows } = await ok(`GET ${boats}`, undefined, { accept });
  expect(rows.map(({ cells }: { cells: string[] }) => cells)).toEqual([
    ['new', 'own'],
    ['old', 'none'],
  ]);
  const { items } = await ok(`GET ${boats}?fieldSelector=spec.flag%3Dnone`);
  expect(items.map((item: { spec: object }) => item.spec)).toEqual([renewed]);
});

test('definition changed: older objects in a watch -> in the new form, also when they are deleted', async () => {
  const { ok, watch, before } = await withOldBoat();
  const events = (
    await watch(`${boats}?watch=1&resourceVersion=${Number(before) - 1}&fieldSelector=metadata.name%3Dold`)
  ).read();
  await ok(`DELETE ${boats}/old`);
  await expect.poll(() => events.events.length).toBe(2);
  expect(events.events.map(({ type, object }) => [type, object.spec])).toEqual([
    ['ADDED', renewed],
    ['DELETED', renewed],
  ]);
  events.close();
});

test('definition changed: an older object is written -> stored in the new form', async () => {
  const { ok, store } = await withOldBoat();
  const label = { metadata: { labels: { l: '1' } } };
  expect((await ok(`PATCH ${boats}/old`, label, merge)).spec).toEqual(renewed);
  const entry = await store.get('/registry/ex.io/boats/default/old');
  expect(JSON.parse(Buffer.from(entry!.value).toString()).spec).toEqual(renewed);
});

test('definition became stricter: an older object may change elsewhere, not what is wrong, and no new one is taken', async () => {
  const { ok, send, time } = await createTestApi();
  await ok(`POST ${definitions}`, definitionOf({ sail: { type: 'string' }, mast: { type: 'string' } }));
  await time.advance(1000);
  const boat = (name: string, spec: object) => ({ apiVersion: 'ex.io/v1', kind: 'Boat', metadata: { name }, spec });
  await ok(`POST ${boats}`, boat('old', { sail: 'red', mast: 'oak' }));
  const stricter = { sail: { type: 'string', enum: ['blue'] }, mast: { type: 'string' } };
  await ok(`PATCH ${definitions}/boats.ex.io`, { spec: (definitionOf(stricter) as { spec: object }).spec }, merge);
  await time.advance(1000);
  const change = async (spec: object) => (await send(`PATCH ${boats}/old`, { spec }, merge)).status;
  expect(await change({ mast: 'pine' })).toBe(200);
  expect(await change({ sail: 'green' })).toBe(422);
  expect((await send(`POST ${boats}`, boat('new', { sail: 'red' }))).status).toBe(422);
  expect(await change({ sail: 'blue' })).toBe(200);
});
