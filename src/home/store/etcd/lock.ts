// Which process may write a home: the one that made the lock key, on a lease that it keeps alive. Others wait. While the
// lock was seen in etcd a short time ago, nobody else can have written anything.

import { errorText, type Log } from '../../../base/log.ts';
import { sleep, type Timer, type World } from '../../../base/world.ts';
import { type Claim, removeByClaim } from './claim.ts';
import { type EtcdClient, EtcdError } from './client.ts';
import { encodeHolder, type Holder, holderOf } from './holder.ts';
import type { Condition } from './messages.ts';

export interface LockOptions {
  readonly client: EtcdClient;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly key: string;
  /** Where a process that waits says that it wants the lock of one that seems to be gone. */
  readonly claimKey: string;
  /** How others reach this process. */
  readonly address: string;
  /** Called with the address of the process that holds it, at first and when that changes. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  /** Whether nobody listens at the holder's address. It may be wrong: the holder is asked before its lock is removed. */
  readonly isGone?: ((holder: string) => Promise<boolean>) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly leaseSeconds?: number;
}

const defaultLeaseSeconds = 5;
const pollMs = 400;
/** Part of the lease after which it counts as old. Clocks of two machines may differ, by much less than the rest. */
const stalePart = 0.8;
/** Whoever claims the lock waits for longer than this, which is written in it. */
const certainMs = 1_000;
const confirmEveryMs = 250;
/** Somebody who cannot reach the holder does not ask it all the time whether it lives. */
const claimPauseMs = 10_000;

export class EtcdLock {
  readonly #options: LockOptions;
  readonly #id: string;
  readonly #leaseMs: number;
  #leaseId = 0n;
  #createRevision = 0;
  /** When it was asked for that the lock is ours and nobody claims it, the last time that this was so. */
  #confirmedMs = 0;
  /** The same for the lease. */
  #renewedMs = 0;
  #timer: Timer | undefined;
  #isReleased = false;
  #grantedMs = 0;
  #claimAgainMs = 0;
  /** Reads that wait until it is certain again. */
  #awaited: (PromiseWithResolvers<void> & { readonly timer: Timer }) | undefined;
  #taking: Promise<void> | undefined;
  /** Set by its user: whether nobody else has written, asked when the lock had ended and was had again. */
  isUnchanged: (() => Promise<boolean>) | undefined;
  /** Set by its user: another process has taken over. */
  onLost: ((error: Error) => void) | undefined;

  private constructor(options: LockOptions) {
    this.#options = options;
    this.#id = options.world.random.uuid();
    this.#leaseMs = (options.leaseSeconds ?? defaultLeaseSeconds) * 1000;
  }

  /** Waits until it is free. */
  static async acquire(options: LockOptions): Promise<EtcdLock> {
    const lock = new EtcdLock(options);
    let waitingFor: string | undefined;
    for (;;) {
      options.signal?.throwIfAborted();
      let holder: Holder | 'unknown' | undefined = 'unknown';
      try {
        holder = await lock.#try();
      } catch (error) {
        // A wrong name, password or certificate does not become right by waiting.
        if (!(error instanceof EtcdError) || (error.isRefusal && !error.isAboutSpace)) throw error;
        options.log.warn('etcd does not answer: waiting for it', { error: errorText(error) });
      }
      if (holder === undefined) break;
      if (holder !== 'unknown' && holder.address !== waitingFor) options.onWaiting?.((waitingFor = holder.address));
      if (holder !== 'unknown' && (await lock.#hasRemoved(holder))) continue;
      await sleep(options.world.timers, pollMs, options.signal);
    }
    lock.#confirmed(lock.#grantedMs, lock.#grantedMs);
    lock.#confirmLater();
    return lock;
  }

  /** In every transaction: the lock is still the same. */
  get condition(): Condition {
    return { key: this.#options.key, createRevision: this.#createRevision };
  }

  /** Nobody else can have written until now. */
  get isCertain(): boolean {
    return this.#options.world.clock.monotonicMs() - this.#confirmedMs < certainMs && !this.isStale;
  }

  /** It has not been certain for so long that another process may be writing. */
  get isStale(): boolean {
    return this.#staleAtMs <= this.#options.world.clock.monotonicMs();
  }

  /** Resolves when it is certain again, or stale; undefined if it is one of them. */
  untilCertain(): Promise<void> | undefined {
    if (this.isCertain || this.isStale) return undefined;
    if (this.#awaited === undefined) {
      const { timers, clock } = this.#options.world;
      const timer = timers.after(this.#staleAtMs - clock.monotonicMs(), () => this.#endWaiting());
      this.#awaited = { ...Promise.withResolvers<void>(), timer };
    }
    return this.#awaited.promise;
  }

  /** Who holds it according to etcd; undefined if nobody does. */
  async holder(): Promise<Holder | undefined> {
    const { client, key } = this.#options;
    const found = (await client.range({ key })).entries[0];
    return found && holderOf(found);
  }

  get id(): string {
    return this.#id;
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    this.#timer?.cancel();
    this.#endWaiting();
    await this.#options.client.revokeLease(this.#leaseId).catch(() => undefined);
  }

  /** The present holder, or undefined once it is ours. */
  async #try(): Promise<Holder | undefined> {
    const { client, key, world, address } = this.#options;
    const present = (await client.range({ key })).entries[0];
    if (present !== undefined) {
      const holder = holderOf(present);
      if (holder.id !== this.#id) return holder;
      // Ours already: the answer to an earlier try was lost, or comes late.
      this.#createRevision = present.createRevision;
      this.#leaseId = BigInt(holder.lease);
      return undefined;
    }
    this.#grantedMs = world.clock.monotonicMs();
    const { leaseId } = await client.grantLease(this.#leaseMs / 1000);
    const value = encodeHolder({ id: this.#id, address, lease: String(leaseId), certainMs });
    const { hasSucceeded, revision } = await client.txn({
      conditions: [{ key, createRevision: 0 }],
      operations: [{ put: key, value, leaseId }],
    });
    if (!hasSucceeded) {
      void client.revokeLease(leaseId).catch(() => undefined);
      return this.#try();
    }
    this.#createRevision = revision;
    this.#leaseId = leaseId;
    return undefined;
  }

  /** Whether the lock of a process that is gone was removed before its lease ended. */
  async #hasRemoved(holder: Holder): Promise<boolean> {
    const { isGone, world, log } = this.#options;
    if (holder.certainMs === undefined || world.clock.monotonicMs() < this.#claimAgainMs) return false;
    if (!(await isGone?.(holder.address))) return false;
    const outcome = await removeByClaim({ ...this.#options, holder, leaseMs: this.#leaseMs }).catch((error) => {
      this.#options.signal?.throwIfAborted();
      log.debug('the lock could not be claimed', { error: errorText(error) });
      return 'failed' as const;
    });
    if (outcome === 'removed')
      log.info('the process that served this home is gone; taking over', { from: holder.address });
    else this.#claimAgainMs = world.clock.monotonicMs() + claimPauseMs;
    if (outcome === 'denied')
      log.warn('the process that serves this home seemed to be gone, and lives', { holder: holder.address });
    return outcome === 'removed';
  }

  #confirmLater(): void {
    if (!this.#isReleased) this.#timer = this.#options.world.timers.after(confirmEveryMs, () => void this.#confirm());
  }

  async #confirm(): Promise<void> {
    const askedMs = this.#options.world.clock.monotonicMs();
    try {
      const [{ seconds }, found] = await Promise.all([this.#options.client.keepAlive(this.#leaseId), this.#look()]);
      if (this.#isReleased) return;
      if (seconds === 0 || !found.isOurs) await this.takeAgain();
      else if (found.claim === undefined) this.#confirmed(askedMs, askedMs);
      else await this.#deny(found.claim, askedMs);
    } catch (error) {
      this.#options.log.debug('the lock in etcd could not be confirmed', { error: errorText(error) });
    }
    this.#confirmLater();
  }

  /** Both keys as they were at one moment; nothing else of a home lies between them. */
  async #look() {
    const { client, key, claimKey } = this.#options;
    const { entries } = await client.range({ key: claimKey, until: `${key}\0` });
    const lock = entries.find((entry) => entry.key === key);
    const claim = entries.find((entry) => entry.key === claimKey);
    return { isOurs: lock?.createRevision === this.#createRevision, claim };
  }

  /** Whoever claims the lock may remove it only as long as this has not been done. */
  async #deny(claim: Claim, renewedMs: number): Promise<void> {
    const { client, world, claimKey } = this.#options;
    const askedMs = world.clock.monotonicMs();
    const { hasSucceeded } = await client.txn({
      conditions: [this.condition, { key: claimKey, modRevision: claim.modRevision }],
      operations: [{ remove: claimKey }],
    });
    if (hasSucceeded) this.#confirmed(askedMs, renewedMs);
  }

  #confirmed(confirmedMs: number, renewedMs: number): void {
    this.#confirmedMs = confirmedMs;
    this.#renewedMs = renewedMs;
    if (this.isCertain) this.#endWaiting();
  }

  get #staleAtMs(): number {
    return Math.min(this.#confirmedMs, this.#renewedMs) + this.#leaseMs * stalePart;
  }

  #endWaiting(): void {
    this.#awaited?.timer.cancel();
    this.#awaited?.resolve();
    this.#awaited = undefined;
  }

  /** The lease has ended while etcd or this process was away. If nobody came meanwhile, it goes on. */
  takeAgain(): Promise<void> {
    this.#taking ??= this.#takeAgain().finally(() => (this.#taking = undefined));
    return this.#taking;
  }

  async #takeAgain(): Promise<void> {
    if (this.#isReleased) return;
    this.#confirmedMs = Number.NEGATIVE_INFINITY;
    const holder = await this.#try();
    if (holder === undefined && (await this.isUnchanged?.()) !== false) {
      this.#confirmed(this.#grantedMs, this.#grantedMs);
      return;
    }
    this.#isReleased = true;
    this.#endWaiting();
    const now = holder === undefined ? 'it is not serving any more' : `it is at ${holder.address}`;
    this.onLost?.(new Error(`another process has taken over while this one was away from etcd; ${now}`));
  }
}
