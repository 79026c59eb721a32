// Writes the shards of a federation to where its authorities read them. Starts from a list, then one write per
// change; a record that others changed or lost is put back by the periodic list.

import { errorText, type Log } from '../../base/log.ts';
import { Queue } from '../../base/queue.ts';
import type { Timer, World } from '../../base/world.ts';
import { formatShardRecord } from '../rules/record.ts';
import type { FederationShardSet } from '../rules/shard-set.ts';

/** etcd, as far as it is needed here. */
export interface RecordStore {
  list(): Promise<{ readonly records: readonly { readonly key: string; readonly value: string }[] }>;
  put(key: string, value: string): Promise<void>;
  remove(key: string): Promise<void>;
}

export interface FederationRecordsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly shards: FederationShardSet;
  readonly store: RecordStore;
  readonly resyncMs?: number;
}

export interface FederationRecordsController {
  /** Resolves when what was under way has ended. */
  stop(): Promise<void>;
}

const defaultResyncMs = 300_000;
/** The key under which the whole is compared; no shard has an empty key. */
const everything = '';

export function runFederationRecords(options: FederationRecordsOptions): FederationRecordsController {
  const { world, log, shards, store } = options;
  /** The known contents of etcd. */
  const known = new Map<string, string>();
  let timer: Timer | undefined;
  let hasListed = false;

  async function compareAll(): Promise<void> {
    if (!shards.hasSynced) return;
    const { records } = await store.list();
    known.clear();
    for (const { key, value } of records) known.set(key, value);
    hasListed = true;
    for (const key of new Set([...known.keys(), ...shards.keys()])) if (known.get(key) !== textOf(key)) queue.add(key);
    timer?.cancel();
    timer = world.timers.after(options.resyncMs ?? defaultResyncMs, () => queue.add(everything));
  }

  function textOf(key: string): string | undefined {
    const shard = shards.get(key);
    return shard && formatShardRecord(shard.record);
  }

  async function write(key: string): Promise<void> {
    const wanted = textOf(key);
    if (wanted === known.get(key)) return;
    if (wanted === undefined) {
      await store.remove(key);
      known.delete(key);
    } else {
      await store.put(key, wanted);
      known.set(key, wanted);
    }
  }

  const queue = new Queue({
    name: 'federation records',
    world,
    concurrency: 8,
    backoff: { firstMs: 200, delayMsMax: 10_000 },
    work: async (key) => {
      if (key === everything) await compareAll();
      // Before the first list the contents are unknown; the list brings every key that differs.
      else if (hasListed) await write(key);
      return undefined;
    },
    onFailure: ({ key, error, retryMs }) =>
      log.warn('a federation record was not written', { key, retryMs: Math.round(retryMs), error: errorText(error) }),
  });
  const unsubscribe = shards.onChange((key) => queue.add(key));
  queue.add(everything);
  queue.start();
  return {
    stop: () => {
      timer?.cancel();
      unsubscribe();
      return queue.stop();
    },
  };
}
