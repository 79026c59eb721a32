// Shared by the server's own controllers: they watch a prefix of the store and process keys from a queue.

import { errorText } from '../../base/log.ts';
import { Queue, type WorkResult } from '../../base/queue.ts';
import type { Engine } from '../model/call.ts';
import { type Following, followPrefix } from '../store/follow.ts';
import type { StoreEvent } from '../store/store.ts';

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
  /** See FollowRequest. */
  readonly remembersKeys?: boolean;
  /** Called for everything that is there when it starts, as if it had just come, and for every change after. */
  onEvent(event: StoreEvent, queue: Queue): void;
}

export function followStore(options: FollowOptions): Background {
  const { engine, name, prefix } = options;
  const queue = new Queue({
    name,
    world: engine.world,
    work: options.work,
    concurrency: options.concurrency ?? 1,
    backoff: { firstMs: 50, delayMsMax: 30_000 },
    onFailure: ({ key, error, retryMs }) => {
      engine.log.warn(`${name} failed, tried again later`, { key, retryMs, error: errorText(error) });
    },
  });
  let following: Following | undefined;
  return {
    start: async () => {
      const { store, world, log } = engine;
      const onEvent = (event: StoreEvent) => options.onEvent(event, queue);
      following = await followPrefix({ store, world, log, prefix, remembersKeys: options.remembersKeys, onEvent });
      queue.start();
    },
    stop: () => {
      following?.cancel();
      return queue.stop();
    },
    whenIdle: () => queue.whenIdle(),
  };
}
