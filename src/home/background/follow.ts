// What the server's own parts have in common: they follow a prefix of the store and work on keys from a queue.

import { errorText } from '../../base/log.ts';
import { createQueue, type Queue, type WorkResult } from '../../base/queue.ts';
import type { Engine } from '../request/call.ts';
import { forEachEntry } from '../store/each-entry.ts';
import { CompactedError, type StoreEvent } from '../store/store.ts';

export interface Background {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when there is nothing to do at this moment. */
  whenIdle(): Promise<void>;
}

export interface FollowOptions {
  readonly engine: Pick<Engine, 'world' | 'log' | 'store'>;
  readonly name: string;
  readonly prefix: string;
  /** How many keys are worked on at once; one when absent. */
  readonly concurrency?: number;
  work(key: string): Promise<WorkResult | undefined>;
  /** Told of everything that is there when it starts, as if it had just come, and of every change after. */
  onEvent(event: StoreEvent, queue: Queue): void;
}

export function followStore(options: FollowOptions): Background {
  const { engine, name, prefix, onEvent } = options;
  const queue = createQueue({
    name,
    world: engine.world,
    work: options.work,
    concurrency: options.concurrency ?? 1,
    backoff: { firstMs: 50, delayMsMax: 30_000 },
    onFailure: ({ key, error, retryMs }) => {
      engine.log.warn(`${name} failed, tried again later`, { key, retryMs, error: errorText(error) });
    },
  });
  let cancel = () => {};
  async function follow(): Promise<void> {
    const revision = await forEachEntry(engine.store, prefix, (entry) =>
      onEvent({ revision: entry.revision, key: entry.key, entry, previous: undefined }, queue),
    );
    const watch = engine.store.watch({
      prefix,
      afterRevision: revision,
      onEvents: (events) => {
        for (const event of events) onEvent(event, queue);
      },
      onEnd,
    });
    cancel = () => watch.cancel();
  }
  function onEnd(error: Error): void {
    engine.log.info(`${name} can no longer follow the store`, { error: errorText(error) });
    // Compaction overtook the list; a store that was closed has nothing more to tell.
    if (error instanceof CompactedError) void follow().catch(onEnd);
  }
  return {
    start: async () => {
      await follow();
      queue.start();
    },
    stop: () => {
      cancel();
      return queue.stop();
    },
    whenIdle: () => queue.whenIdle(),
  };
}
