// Removes the lock of a process that seems to be gone, before its lease ends. The process may be alive: it looks for a claim
// each time before it answers from memory for a while, and denies it. Who claims waits for longer than that while, so when
// the claim still stands the process cannot answer any more.

import { sleep, type World } from '../../../base/world.ts';
import type { EtcdClient } from './client.ts';
import type { Holder } from './holder.ts';

export interface Claim {
  readonly modRevision: number;
}

export interface ClaimOptions {
  readonly client: EtcdClient;
  readonly world: Pick<World, 'timers'>;
  readonly key: string;
  readonly claimKey: string;
  readonly holder: Holder;
  /** Address of the process that claims. */
  readonly address: string;
  readonly leaseMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Clocks of two machines may run differently, by much less than this. */
const waitPart = 1.25;

export async function removeByClaim(options: ClaimOptions): Promise<'removed' | 'denied' | 'taken'> {
  const { client, world, key, claimKey, holder, address, leaseMs, signal } = options;
  const { leaseId } = await client.grantLease(leaseMs / 1000);
  try {
    const lock = { key, createRevision: holder.createRevision };
    const value = Buffer.from(JSON.stringify({ v: 1, address }));
    const claimed = await client.txn({
      conditions: [lock, { key: claimKey, createRevision: 0 }],
      operations: [{ put: claimKey, value, leaseId }],
    });
    if (!claimed.hasSucceeded) return 'taken';
    await sleep(world.timers, (holder.certainMs ?? leaseMs) * waitPart, signal);
    const removed = await client.txn({
      conditions: [lock, { key: claimKey, createRevision: claimed.revision }],
      operations: [{ remove: claimKey }, { remove: key }],
    });
    return removed.hasSucceeded ? 'removed' : 'denied';
  } finally {
    void client.revokeLease(leaseId).catch(() => undefined);
  }
}
