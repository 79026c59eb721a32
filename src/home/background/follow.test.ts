import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { createMemoryStore } from '../open-store.ts';
import type { RangeRequest, Store, WatchRequest } from '../store/store.ts';
import { followStore } from './follow.ts';

async function openStore(wrap: (store: Store) => Store) {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('home');
  const store = createMemoryStore({ world });
  const worked: string[] = [];
  const put = (key: string) =>
    store.commit({ compares: [], writes: [{ key: `/registry/${key}`, value: new Uint8Array([1]) }] });
  const background = followStore({
    engine: { world, log: silentLog, store: wrap(store) },
    name: 'test',
    prefix: '/registry/',
    onEvent: ({ key }, queue) => queue.add(key),
    work: async (key) => {
      worked.push(key);
      return undefined;
    },
  });
  return { simulation, store, put, background, worked };
}

describe('followStore', () => {
  test('what is there and what comes -> both are worked on', async () => {
    const { simulation, put, background, worked } = await openStore((store) => store);
    await put('first');
    await background.start();
    await put('second');
    await simulation.time.advance(100);
    expect(worked).toEqual(['/registry/first', '/registry/second']);
    await background.stop();
  });

  test('compaction overtakes its list -> it lists again and misses nothing', async () => {
    let isFirst = true;
    const { simulation, store, put, background, worked } = await openStore((whole) =>
      Object.create(whole, {
        watch: {
          value: (request: WatchRequest) => {
            const afterRevision = isFirst ? 1 : request.afterRevision;
            isFirst = false;
            return whole.watch({ ...request, afterRevision });
          },
        },
        range: { value: (request: RangeRequest) => whole.range(request) },
      }),
    );
    await put('first');
    await put('first');
    await put('second');
    await store.compact(3);
    await background.start();
    await simulation.time.advance(100);
    await put('third');
    await simulation.time.advance(100);
    expect(worked.filter((key) => key === '/registry/third')).toHaveLength(1);
    await background.stop();
  });

  test('the watch breaks off, and an entry is deleted meanwhile -> its key is worked on, and following goes on', async () => {
    const watches: WatchRequest[] = [];
    const { simulation, store, put, background, worked } = await openStore((whole) =>
      Object.create(whole, {
        watch: {
          value: (request: WatchRequest) => {
            watches.push(request);
            return watches.length === 1 ? { cancel: () => {} } : whole.watch(request);
          },
        },
        range: { value: (request: RangeRequest) => whole.range(request) },
      }),
    );
    await put('first');
    await put('second');
    await background.start();
    await simulation.time.advance(100);
    worked.length = 0;
    await store.commit({ compares: [], writes: [{ key: '/registry/first' }] });
    watches[0]?.onEnd(new Error('the store has failed'));
    await simulation.time.advance(1000);
    expect(worked).toContain('/registry/first');
    worked.length = 0;
    await put('third');
    await simulation.time.advance(100);
    expect(worked).toEqual(['/registry/third']);
    await background.stop();
  });
});
