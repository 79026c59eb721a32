import { describe, expect, test } from 'vitest';
import { createTestApi } from '../testing/test-api.ts';

const corePath = '/api/v1/namespaces/default/events';
const newPath = '/apis/events.k8s.io/v1/namespaces/default/events';
const about = { apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'web' };
const merge = { 'content-type': 'application/merge-patch+json' };

function coreEvent(name: string, more: object = {}) {
  const times = { firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:01:00Z', count: 3 };
  const source = { component: 'agent', host: 'east' };
  return {
    metadata: { name },
    type: 'Normal',
    reason: 'R',
    message: 'm',
    involvedObject: about,
    source,
    ...times,
    ...more,
  };
}

function newEvent(name: string, more: object = {}) {
  const reporting = { reportingController: 'example.com/x', reportingInstance: 'x-1', action: 'Look' };
  const eventTime = '2026-01-01T00:00:00.000000Z';
  return {
    metadata: { name },
    type: 'Normal',
    reason: 'R',
    note: 'n',
    regarding: about,
    eventTime,
    ...reporting,
    ...more,
  };
}

describe('events', () => {
  test('written in the core group -> read in events.k8s.io in its words, and the other way', async () => {
    const { ok } = await createTestApi();
    const made = await ok(`POST ${corePath}`, coreEvent('a'));
    const seen = await ok(`GET ${newPath}/a`);
    expect(seen).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { uid: made.metadata.uid, resourceVersion: made.metadata.resourceVersion },
      note: 'm',
      regarding: about,
      deprecatedSource: { component: 'agent', host: 'east' },
      deprecatedFirstTimestamp: '2026-01-01T00:00:00Z',
      deprecatedLastTimestamp: '2026-01-01T00:01:00Z',
      deprecatedCount: 3,
    });
    for (const field of ['message', 'involvedObject', 'source', 'firstTimestamp', 'lastTimestamp', 'count'])
      expect(seen).not.toHaveProperty(field);
    const other = await ok(`POST ${newPath}`, newEvent('b'));
    expect(other).toMatchObject({ apiVersion: 'events.k8s.io/v1', note: 'n', regarding: about });
    expect(await ok(`GET ${corePath}/b`)).toMatchObject({
      apiVersion: 'v1',
      metadata: { uid: other.metadata.uid },
      message: 'n',
      involvedObject: about,
      reportingComponent: 'example.com/x',
      action: 'Look',
    });
  });

  test('lists, selectors and tables of both groups -> the same Events, each in its own words', async () => {
    const { ok } = await createTestApi();
    await ok(`POST ${corePath}`, coreEvent('a'));
    await ok(`POST ${newPath}`, newEvent('b', { regarding: { ...about, name: 'other' } }));
    const ofCore = await ok(`GET ${corePath}?fieldSelector=involvedObject.name=other`);
    const ofNew = await ok(`GET ${newPath}?fieldSelector=regarding.name=other`);
    expect([ofCore.items[0].message, ofNew.items[0].note]).toEqual(['n', 'n']);
    expect([ofCore.items.length, ofNew.items.length]).toEqual([1, 1]);
    const all = await ok('GET /apis/events.k8s.io/v1/events');
    expect(all.items.map(({ note }: { note: string }) => note)).toEqual(['m', 'n']);
    const accept = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    for (const path of [corePath, newPath]) {
      const { rows } = await ok(`GET ${path}`, undefined, accept);
      expect(rows.map(({ cells }: { cells: string[] }) => cells.slice(1, 5))).toEqual([
        ['Normal', 'R', 'service/web', 'm'],
        ['Normal', 'R', 'service/other', 'n'],
      ]);
    }
  });

  test('two watches of one Event -> each is told in its own words, of the deletion too', async () => {
    const { ok, watch, time } = await createTestApi();
    const core = (await watch(`${corePath}?watch=true&fieldSelector=involvedObject.name=web`)).read();
    const other = (await watch(`${newPath}?watch=true&fieldSelector=regarding.name=web`)).read();
    await ok(`POST ${newPath}`, newEvent('b'));
    await ok(`PATCH ${corePath}/b`, { message: 'changed' }, merge);
    await ok(`DELETE ${newPath}/b`);
    await time.advance(10);
    const told = (events: (typeof core)['events']) =>
      events.map(({ type, object }) => [type, object.apiVersion, object.message ?? '', object.note ?? '']);
    expect(told(core.events)).toEqual([
      ['ADDED', 'v1', 'n', ''],
      ['MODIFIED', 'v1', 'changed', ''],
      ['DELETED', 'v1', 'changed', ''],
    ]);
    expect(told(other.events)).toEqual([
      ['ADDED', 'events.k8s.io/v1', '', 'n'],
      ['MODIFIED', 'events.k8s.io/v1', '', 'changed'],
      ['DELETED', 'events.k8s.io/v1', '', 'changed'],
    ]);
    core.close();
    other.close();
  });

  test('of the core group, changed in events.k8s.io -> needs no fields that the core group does not have', async () => {
    const { ok, send } = await createTestApi();
    await ok(`POST ${corePath}`, coreEvent('a'));
    const changed = await ok(`PATCH ${newPath}/a`, { note: 'changed' }, merge);
    expect(changed.note).toBe('changed');
    const again = await ok(`PATCH ${newPath}/a`, { note: 'changed' }, merge);
    expect(again.metadata.resourceVersion).toBe(changed.metadata.resourceVersion);
    const { status, body } = await send(`POST ${newPath}`, { ...newEvent('c'), eventTime: undefined });
    expect([status, body.details.causes[0].field]).toEqual([422, 'eventTime']);
  });

  test('a quota for Events -> counts those of both groups', async () => {
    const { ok, send } = await createTestApi();
    await ok('POST /api/v1/namespaces/default/resourcequotas', {
      metadata: { name: 'q' },
      spec: { hard: { 'count/events': '1' } },
    });
    await ok(`POST ${newPath}`, newEvent('a'));
    const { status, body } = await send(`POST ${newPath}`, newEvent('b'));
    expect([status, body.message]).toEqual([403, expect.stringContaining('exceeded quota: q')]);
  });

  test('stored by an earlier version in a place of its own -> moved at the start, dropped where the name is taken', async () => {
    const { api, store, ok } = await createTestApi({ isStarted: false });
    const older = (name: string) => ({
      key: `/registry/events.k8s.io/events/default/${name}`,
      value: Buffer.from(JSON.stringify({ ...newEvent(name), metadata: { name, namespace: 'default', uid: name } })),
    });
    const taken = { metadata: { name: 'b', namespace: 'default' }, message: 'mine', involvedObject: about };
    const core = { key: '/registry/core/events/default/b', value: Buffer.from(JSON.stringify(taken)) };
    await store.commit({ compares: [], writes: [older('a'), older('b'), core] });
    await api.start();
    expect((await ok(`GET ${newPath}`)).items.map(({ note }: { note: string }) => note)).toEqual(['n', 'mine']);
    expect((await store.range({ prefix: '/registry/events.k8s.io/' })).entries).toEqual([]);
  });
});
