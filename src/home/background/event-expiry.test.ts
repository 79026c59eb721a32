import { describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createApi } from '../api.ts';
import { builtinKinds } from '../kinds/index.ts';
import { allowAll, createTestApi, type TestApi, withMethods } from '../testing/test-api.ts';

const minuteMs = 60_000;
const path = '/api/v1/namespaces/default/events';
const newPath = '/apis/events.k8s.io/v1/namespaces/default/events';

function event(name: string, more: object = {}) {
  const involvedObject = { apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'web' };
  return { metadata: { name }, type: 'Normal', reason: 'Imported', message: 'imported', involvedObject, ...more };
}

function newEvent(name: string) {
  const regarding = { apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'web' };
  const reporting = { reportingController: 'example.com/x', reportingInstance: 'x-1', action: 'Look' };
  const eventTime = '2026-01-01T00:00:00.000000Z';
  return { metadata: { name }, type: 'Normal', reason: 'Imported', regarding, eventTime, ...reporting };
}

async function eventKeys({ store }: TestApi): Promise<string[]> {
  const { entries } = await store.range({ prefix: '/registry/' });
  return entries.map(({ key }) => key).filter((key) => key.includes('/events/'));
}

describe('event expiry', () => {
  test('Events of both groups -> there for an hour, then deleted, with a notice to watchers', async () => {
    const api = await createTestApi();
    await api.ok(`POST ${path}`, event('a'));
    await api.ok(`POST ${newPath}`, newEvent('b'));
    await api.time.advance(59 * minuteMs);
    expect(await eventKeys(api)).toHaveLength(2);
    const watch = (await api.watch(`${path}?watch=true&resourceVersion=${api.store.revision()}`)).read();
    await api.time.advance(3 * minuteMs);
    expect(await eventKeys(api)).toEqual([]);
    expect(watch.names.filter((line) => !line.startsWith('BOOKMARK'))).toEqual(['DELETED a', 'DELETED b']);
  });

  test('an Event that is written again -> an hour from then on', async () => {
    const api = await createTestApi();
    await api.ok(`POST ${path}`, event('a'));
    await api.time.advance(40 * minuteMs);
    await api.ok(`PATCH ${path}/a`, { count: 2 }, { 'content-type': 'application/merge-patch+json' });
    await api.time.advance(40 * minuteMs);
    expect(await eventKeys(api)).toHaveLength(1);
    await api.time.advance(22 * minuteMs);
    expect(await eventKeys(api)).toEqual([]);
  });

  test('the home restarts -> the age of each Event counts on; a time that is far ahead gives no more than an hour', async () => {
    const before = await createTestApi();
    await before.ok(`POST ${path}`, event('old'));
    await before.time.advance(50 * minuteMs);
    await before.ok(`POST ${path}`, event('ahead', { lastTimestamp: '2999-01-01T00:00:00Z' }));
    await before.ok(`POST ${path}`, event('odd', { series: { lastObservedTime: null } }));
    await before.api.stop();
    const { store, time } = before;
    const kinds = builtinKinds({ serviceRanges: [], random: time.world.random });
    const api = await createApi({ world: time.world, store, kinds, access: allowAll, log: silentLog });
    await api.start();
    await time.advance(12 * minuteMs);
    const names = (keys: string[]) => keys.map((key) => key.slice(key.lastIndexOf('/') + 1));
    expect(names(await eventKeys(before))).toEqual(['ahead', 'odd']);
    await time.advance(50 * minuteMs);
    expect(await eventKeys(before)).toEqual([]);
  });

  test('thousands of Events, one of them held by a finalizer -> all others go, and nothing is left to time', async () => {
    const api = await createTestApi();
    await api.ok(`POST ${path}`, event('held', { metadata: { name: 'held', finalizers: ['example.com/hold'] } }));
    for (let index = 0; index < 2_000; index += 1) await api.ok(`POST ${path}`, event(`e${index}`));
    await api.time.advance(62 * minuteMs);
    expect(await eventKeys(api)).toEqual(['/registry/core/events/default/held']);
    const { timerCount } = api.time;
    await api.ok(
      `PATCH ${path}/held`,
      { metadata: { finalizers: null } },
      {
        'content-type': 'application/merge-patch+json',
      },
    );
    expect(await eventKeys(api)).toEqual([]);
    await api.time.advance(2 * minuteMs);
    expect(api.time.timerCount).toBeLessThan(timerCount);
  });

  test('the store takes no writes for a while -> tried again', async () => {
    let isFull = false;
    const api = await createTestApi({
      wrapStore: (store) =>
        withMethods(store, {
          commit: (request) => (isFull ? Promise.reject(new Error('disk full')) : store.commit(request)),
        }),
    });
    await api.ok(`POST ${path}`, event('a'));
    isFull = true;
    await api.time.advance(70 * minuteMs);
    expect(await eventKeys(api)).toHaveLength(1);
    isFull = false;
    await api.time.advance(2 * minuteMs);
    expect(await eventKeys(api)).toEqual([]);
  });
});
