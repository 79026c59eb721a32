// The three ways to get a store: on disk, in etcd, and in memory for simulation.

import type { Log } from '../base/log.ts';
import { silentLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { World } from '../base/world.ts';
import { EtcdJournal, type EtcdJournalOptions } from './store/etcd/journal.ts';
import { Loader } from './store/load.ts';
import { LogStore, type LogStoreOptions } from './store/log-store.ts';
import { MemoryDisk, MemoryJournal } from './store/memory-journal.ts';
import { defaultLimits, freeBytesMax, type Limits, logBytesMax } from './store/retention.ts';
import { SqliteJournal } from './store/sqlite/journal.ts';
import { observeStore } from './store/store-metrics.ts';

export interface StoreOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log?: Log;
  readonly limits?: Partial<Limits>;
  readonly metrics?: Metrics;
}

export interface SqliteStoreOptions extends StoreOptions {
  /** The database file; its directory is made if it is not there. */
  readonly path: string;
  /** Values below this key are JSON: a store with one that is not cannot be opened. */
  readonly jsonBelow?: string;
  /** The database takes no more pages of 4096 bytes than this, as if the disk were full. */
  readonly pagesMax?: number;
}

export async function openSqliteStore(options: SqliteStoreOptions): Promise<LogStore> {
  const { world, log = silentLog, path, jsonBelow, pagesMax } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const { journal, floor } = await SqliteJournal.open({
    path,
    jsonBelow,
    pagesMax,
    logBytesMax: logBytesMax(limits),
    freeBytesMax: freeBytesMax(limits),
  });
  const loader = new Loader(floor);
  try {
    await journal.readAll((row) => loader.add(row));
  } catch (error) {
    await journal.close();
    throw error;
  }
  return createStore(options, { world, log, journal, limits, loaded: loader.finish() });
}

export interface EtcdStoreOptions extends StoreOptions, Omit<EtcdJournalOptions, 'world' | 'log'> {
  /** Before its rows are read: whether they are those of this home. */
  readonly check?: (journal: EtcdJournal) => Promise<void>;
}

/** The lock is held; it goes when the store is closed, or when it cannot be opened. */
export async function openEtcdStore(
  options: EtcdStoreOptions,
): Promise<{ readonly store: LogStore; readonly journal: EtcdJournal }> {
  const { world, log = silentLog, check } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const journal = await EtcdJournal.open({ ...options, log });
  try {
    if (journal.tip.movedTo !== undefined) throw new Error(`this home has moved to ${journal.tip.movedTo}`);
    await check?.(journal);
    const loader = new Loader(journal.tip.floor);
    await journal.readAll((row) => loader.add(row));
    return { journal, store: createStore(options, { world, log, journal, limits, loaded: loader.finish() }) };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

export interface MemoryStoreOptions extends StoreOptions {
  /** The disk of earlier processes; opening it takes it away from them. */
  readonly disk?: MemoryDisk;
}

export function createMemoryStore(options: MemoryStoreOptions): LogStore {
  const { world, log = silentLog, disk = new MemoryDisk() } = options;
  const journal = new MemoryJournal(disk);
  const { floor, rows } = journal.contents();
  const loader = new Loader(floor);
  for (const row of rows) loader.add(row);
  const limits = { ...defaultLimits, ...options.limits };
  return createStore(options, { world, log, journal, limits, loaded: loader.finish() });
}

function createStore({ metrics }: StoreOptions, parts: Omit<LogStoreOptions, 'onBatch'>): LogStore {
  const onBatch = metrics === undefined ? undefined : observeStore(metrics, () => store.stats());
  const store: LogStore = new LogStore({ ...parts, onBatch });
  return store;
}
