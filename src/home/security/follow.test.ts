import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { keyPrefixOf } from '../model/kind.ts';
import { objectKey } from '../model/stored.ts';
import { createMemoryStore } from '../open-store.ts';
import type { Store, WatchRequest } from '../store/store.ts';
import { follow } from './follow.ts';

const type = { group: 'example.com', plural: 'things' };
const prefix = keyPrefixOf(type);

async function openStore() {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('home');
  const store = createMemoryStore({ world });
  const keyOf = (place: string) => {
    const [namespace = '', name = ''] = place.includes('/') ? place.split('/') : ['', place];
    return objectKey(prefix, namespace, name);
  };
  const put = (place: string) => {
    const value = Buffer.from(JSON.stringify({ metadata: { name: place } }));
    return store.commit({ compares: [], writes: [{ key: keyOf(place), value }] });
  };
  const remove = (place: string) => store.commit({ compares: [], writes: [{ key: keyOf(place) }] });
  const known = new Set<string>();
  const follower = {
    type,
    onSet: (object: { metadata: { name: string } }) => known.add(object.metadata.name),
    onRemove: (namespace: string, name: string) => known.delete(namespace === '' ? name : `${namespace}/${name}`),
  };
  return { simulation, world, store, put, remove, known, follower };
}

describe('follow', () => {
  test('follow: thousands are there -> all known when it resolves, then every change', async () => {
    const { simulation, world, store, put, remove, known, follower } = await openStore();
    for (let count = 0; count < 2500; count++) await put(`ns/t${count}`);
    const following = await follow({ store, world, log: silentLog }, follower);
    expect(known.size).toBe(2500);
    await put('cluster-wide');
    await remove('ns/t7');
    await simulation.time.drain();
    expect([known.has('cluster-wide'), known.has('ns/t7'), known.size]).toEqual([true, false, 2500]);
    following.cancel();
    await put('late');
    await simulation.time.drain();
    expect(known.has('late')).toBe(false);
  });

  test('follow: the store breaks the watch off -> starts over, and what went meanwhile is gone', async () => {
    const { simulation, world, store, put, remove, known, follower } = await openStore();
    await put('one');
    await put('two');
    const watches: WatchRequest[] = [];
    let failures = 2;
    const breaking: Store = Object.create(store, {
      watch: {
        value: (request: WatchRequest) => {
          watches.push(request);
          return watches.length === 1 ? { cancel: () => {} } : store.watch(request);
        },
      },
      range: {
        value: (request: Parameters<Store['range']>[0]) => {
          if (watches.length === 1 && failures-- > 0) return Promise.reject(new Error('not now'));
          return store.range(request);
        },
      },
    });
    const following = await follow({ store: breaking, world, log: silentLog }, follower);
    await remove('one');
    await put('three');
    watches[0]?.onEnd(new Error('the store has failed'));
    await simulation.time.advance(1000);
    expect([...known].sort()).toEqual(['three', 'two']);
    await put('four');
    await simulation.time.drain();
    expect(known.has('four')).toBe(true);
    following.cancel();
  });
});
