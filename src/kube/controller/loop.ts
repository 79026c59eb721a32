// The loop every controller runs in: informers name keys, a queue folds them, reconcile makes what is there what should
// be there. Level-triggered: a key says what to look at, never what happened. Nothing is reconciled before every
// informer has synced, because half a picture would look like deletions.

import { errorText, type Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { Queue, type WorkResult } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import { isAlreadyExists, isConflict } from '../objects/api-error.ts';
import type { InformerReader } from './informer.ts';

export interface ControllerSource<Kept> {
  readonly informer: Pick<InformerReader<Kept>, 'on' | 'whenSynced'>;
  /** The keys to reconcile when this object has come, changed or gone. Its own key when absent. */
  readonly keysOf?: (key: string, next: Kept | undefined, previous: Kept | undefined) => Iterable<string>;
}

export interface ControllerOptions {
  readonly name: string;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly metrics?: Metrics;
  // biome-ignore lint/suspicious/noExplicitAny: each source has its own kept type, which only its keysOf sees
  readonly sources: readonly ControllerSource<any>[];
  readonly reconcile: (key: string) => Promise<WorkResult | undefined>;
  readonly concurrency?: number;
}

export interface Controller {
  readonly queue: Pick<Queue, 'add' | 'addAfter' | 'depth' | 'whenIdle'>;
  /** Whether every informer has synced and keys are being worked on. */
  readonly isRunning: boolean;
  /** Resolves when reconciles under way have ended. */
  stop(): Promise<void>;
}

/** Failures before one is worth a warning: the first ones are races that mend themselves. */
const quietFailures = 3;

export function runController(options: ControllerOptions): Controller {
  const { name, world } = options;
  const log = options.log.with({ controller: name });
  const queue = new Queue({
    name,
    world,
    metrics: options.metrics,
    concurrency: options.concurrency ?? 4,
    work: options.reconcile,
    onFailure: ({ key, error, failures, retryMs }) => {
      const fields = { key, failures, retryMs: Math.round(retryMs), error: errorText(error) };
      // Another writer was first: retry with fresh data, this is no error.
      if (isConflict(error) || isAlreadyExists(error) || failures < quietFailures) log.debug('reconcile again', fields);
      else log.warn('reconcile failed', fields);
    },
  });
  const subscriptions = options.sources.map(({ informer, keysOf }) =>
    informer.on((key, next, previous) => {
      if (keysOf === undefined) queue.add(key);
      else for (const affected of keysOf(key, next, previous)) queue.add(affected);
    }),
  );
  const stopping = new AbortController();
  let isRunning = false;
  Promise.all(options.sources.map(({ informer }) => informer.whenSynced(stopping.signal))).then(
    () => {
      isRunning = true;
      log.info('controller has synced');
      queue.start();
    },
    () => {},
  );
  return {
    queue,
    get isRunning() {
      return isRunning;
    },
    stop: () => {
      isRunning = false;
      stopping.abort();
      for (const unsubscribe of subscriptions) unsubscribe();
      return queue.stop();
    },
  };
}
