// Which process may write a home: the one that made the lock key, on a lease that it keeps alive. Others wait. While the
// lease was confirmed a short time ago, nobody else can have written anything.

import { errorText, type Log } from '../../../base/log.ts';
import { sleep, type Timer, type World } from '../../../base/world.ts';
import { type EtcdClient, EtcdError } from './client.ts';
import type { Condition } from './messages.ts';

export interface LockOptions {
  readonly client: EtcdClient;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly key: string;
  /** How others reach this process. */
  readonly address: string;
  /** Called with the address of the process that holds it, at first and when that changes. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly leaseSeconds?: number;
}

interface Holder {
  readonly id: string;
  readonly address: string;
  /** The lease of the key. */
  readonly lease: string;
}

const defaultLeaseSeconds = 5;
const pollMs = 400;
/** Clocks of two machines may run differently, by much less than this. */
const certainPart = 0.8;

export class EtcdLock {
  readonly #options: LockOptions;
  readonly #id: string;
  readonly #leaseMs: number;
  #leaseId = 0n;
  #createRevision = 0;
  /** When the last confirmation was asked for. */
  #confirmedMs = 0;
  #timer: Timer | undefined;
  #isReleased = false;
  #grantedMs = 0;
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
      await sleep(options.world.timers, pollMs, options.signal);
    }
    lock.#confirmedMs = lock.#grantedMs;
    lock.#keepAliveLater(lock.#leaseMs / 5);
    return lock;
  }

  /** In every transaction: the lock is still the same. */
  get condition(): Condition {
    return { key: this.#options.key, createRevision: this.#createRevision };
  }

  /** Nobody else can have written until now. */
  get isCertain(): boolean {
    return this.#options.world.clock.monotonicMs() - this.#confirmedMs < this.#leaseMs * certainPart;
  }

  /** Who holds it according to etcd; undefined if nobody does. */
  async holder(): Promise<Holder | undefined> {
    const { client, key } = this.#options;
    const found = (await client.range({ key })).entries[0];
    return found && holderOf(key, found.value);
  }

  get id(): string {
    return this.#id;
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    this.#timer?.cancel();
    await this.#options.client.revokeLease(this.#leaseId).catch(() => undefined);
  }

  /** The present holder, or undefined once it is ours. */
  async #try(): Promise<Holder | undefined> {
    const { client, key, world, address } = this.#options;
    const present = (await client.range({ key })).entries[0];
    if (present !== undefined) {
      const holder = holderOf(key, present.value);
      if (holder.id !== this.#id) return holder;
      // Ours already: the answer to an earlier try was lost, or comes late.
      this.#createRevision = present.createRevision;
      this.#leaseId = BigInt(holder.lease);
      return undefined;
    }
    this.#grantedMs = world.clock.monotonicMs();
    const { leaseId } = await client.grantLease(this.#leaseMs / 1000);
    const value = Buffer.from(JSON.stringify({ v: 1, id: this.#id, address, lease: String(leaseId) }));
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

  #keepAliveLater(delayMs: number): void {
    if (!this.#isReleased) this.#timer = this.#options.world.timers.after(delayMs, () => void this.#keepAlive());
  }

  async #keepAlive(): Promise<void> {
    const askedMs = this.#options.world.clock.monotonicMs();
    try {
      const { seconds } = await this.#options.client.keepAlive(this.#leaseId);
      if (this.#isReleased) return;
      if (seconds === 0) await this.takeAgain();
      else this.#confirmedMs = askedMs;
      if (this.#isReleased) return;
      this.#keepAliveLater(this.#leaseMs / 5);
    } catch (error) {
      this.#options.log.debug('the lease in etcd could not be renewed', { error: errorText(error) });
      this.#keepAliveLater(this.#leaseMs / 20);
    }
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
      this.#confirmedMs = this.#grantedMs;
      return;
    }
    this.#isReleased = true;
    const now = holder === undefined ? 'it is not serving any more' : `it is at ${holder.address}`;
    this.onLost?.(new Error(`another process has taken over while this one was away from etcd; ${now}`));
  }
}

function holderOf(key: string, value: Uint8Array): Holder {
  try {
    const { v, id, address, lease } = JSON.parse(Buffer.from(value).toString());
    const isHolder = v === 1 && typeof id === 'string' && typeof address === 'string' && /^\d+$/.test(lease);
    if (isHolder) return { id, address, lease };
  } catch {
    // Said below.
  }
  throw new Error(`etcd key ${key}: this is not what a home writes; give a prefix of its own`);
}
