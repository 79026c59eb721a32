// Small helpers of the contract suite: text as values, a watch that records its events, bounded waiting.

import { vi } from 'vitest';
import type { CommitRequest, CommitResult, Entry, Store, StoreEvent, StoreWatch } from '../store.ts';

export function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

export function text(value: Uint8Array): string {
  return Buffer.from(value).toString();
}

/** Its fields as a test compares them, wherever the entry takes them from. */
export function plain(entry: Entry | undefined): Entry | undefined {
  if (entry === undefined) return undefined;
  const { key, value, latin1, createRevision, revision } = entry;
  return { key, value: new Uint8Array(value), latin1, createRevision, revision };
}

/** With its value as text beside the bytes. */
export function entryOf(fields: Omit<Entry, 'latin1'>): Entry {
  return { ...fields, latin1: Buffer.from(fields.value).toString('latin1') };
}

export function commit(store: Store, request: Partial<CommitRequest>): Promise<CommitResult> {
  return store.commit({ compares: [], writes: [], ...request });
}

export async function put(store: Store, key: string, value: string): Promise<number> {
  const result = await commit(store, { writes: [{ key, value: bytes(value) }] });
  if (result.kind !== 'committed') throw new Error(`put ${key}: conflict at ${result.key}`);
  return result.revision;
}

export class Observed {
  readonly events: StoreEvent[] = [];
  readonly progress: number[] = [];
  readonly ends: Error[] = [];
  /** How many events came with each call. */
  readonly calls: number[] = [];
  /** Events and progress in the order they came. */
  readonly order: string[] = [];
  watch!: StoreWatch;

  revisions(): number[] {
    return this.events.map(({ revision }) => revision);
  }

  keys(): string[] {
    return this.events.map(({ key }) => key);
  }
}

export function observe(store: Store, prefix: string, afterRevision: number): Observed {
  const observed = new Observed();
  observed.watch = store.watch({
    prefix,
    afterRevision,
    onEvents: (events) => {
      observed.calls.push(events.length);
      for (const event of events) {
        observed.events.push(event);
        observed.order.push(`event ${event.revision}`);
      }
    },
    onProgress: (revision) => {
      observed.progress.push(revision);
      observed.order.push(`progress ${revision}`);
    },
    onEnd: (error) => observed.ends.push(error),
  });
  return observed;
}

/** Waits until it holds; fails after a time in which it should have. */
export function until(holds: () => boolean): Promise<void> {
  return vi.waitFor(
    () => {
      if (!holds()) throw new Error(`never came true: ${holds}`);
    },
    { timeout: 15_000, interval: 1 },
  );
}
