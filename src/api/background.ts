// What the server's own parts have in common: they follow a prefix of the store and work on keys from a queue.

import { errorText } from '../base/log.ts';
import { createQueue, type Queue, type WorkResult } from '../base/queue.ts';
import type { StoreEvent } from '../store/store.ts';
import type { Engine } from './call.ts';

export interface Background {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when there is nothing to do at this moment. */
  whenIdle(): Promise<void>;
}

export interface FollowOptions {
  readonly engine: Engine;
  readonly name: string;
  readonly prefix: string;
  /** How many keys are worked on at once; one when absent. */
  readonly concurrency?: number;
  work(key: string): Promise<WorkResult | undefined>;
  /** Told of everything that is there when it starts, as if it had just come, and of every change after. */
  onEvent(event: StoreEvent, queue: Queue): void;
}

const pageLength = 1000;

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
  return {
    start: async () => {
      const revision = await forEachEntry(engine, prefix, (event) => onEvent(event, queue));
      const watch = engine.store.watch({
        prefix,
        afterRevision: revision,
        onEvents: (events) => {
          for (const event of events) onEvent(event, queue);
        },
        onEnd: (error) => engine.log.info(`${name} ends with the store`, { error: errorText(error) }),
      });
      cancel = () => watch.cancel();
      queue.start();
    },
    stop: () => {
      cancel();
      return queue.stop();
    },
    whenIdle: () => queue.whenIdle(),
  };
}

/** All that is there at one revision, which is returned. */
async function forEachEntry(engine: Engine, prefix: string, see: (event: StoreEvent) => void): Promise<number> {
  let page = await engine.store.range({ prefix, limit: pageLength, countMax: 1 });
  for (;;) {
    for (const entry of page.entries) see({ revision: entry.revision, key: entry.key, entry, previous: undefined });
    if (page.remaining === 0) return page.revision;
    const after = page.entries.at(-1)!.key;
    page = await engine.store.range({ prefix, limit: pageLength, countMax: 1, after, revision: page.revision });
  }
}
