// The value of the lock key: which process holds it. Pure.

import type { KeyValue } from './messages.ts';

export interface Holder {
  readonly id: string;
  readonly address: string;
  /** The lease of the key. */
  readonly lease: string;
  /** For so long after it saw its lock it may answer from memory; absent if it knows nothing of claims. */
  readonly certainMs?: number | undefined;
  /** Create revision of the key; a lock that is taken anew has another one. */
  readonly createRevision: number;
}

export function encodeHolder(holder: Omit<Holder, 'createRevision'>): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, ...holder }));
}

export function holderOf({ key, value, createRevision }: KeyValue): Holder {
  try {
    const { v, id, address, lease, certainMs } = JSON.parse(Buffer.from(value).toString());
    const isHolder = v === 1 && typeof id === 'string' && typeof address === 'string' && /^\d+$/.test(lease);
    const isCertain = typeof certainMs === 'number' && certainMs >= 0 && certainMs <= certainMsMax;
    if (isHolder) return { id, address, lease, createRevision, ...(isCertain ? { certainMs } : {}) };
  } catch {
    // Said below.
  }
  throw new Error(`etcd key ${key}: this is not what a home writes; give a prefix of its own`);
}

/** Longer than any lease: who promises more is waited for. */
const certainMsMax = 10_000;
