// One leader at a time among those who share a Lease.
//
// A holder is taken for gone when its Lease has not changed for the lease time on our own monotonic clock since we
// saw it change last; timestamps written by others are never compared. A leader steps down by its own clock before
// another may step up: it counts from the moment it sent its last successful renewal, the others from when they saw
// it. `isLeader()` asks the clock at each call, so a process that was asleep does not rely on an old result. A Lease that is
// deleted is created again by the leader. If it does not, another candidate creates it with a holder that is nobody, and
// waits for its end like for that of any other holder.

import { errorText, type Log } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import { getOrUndefined } from '../client/absent.ts';
import { apply } from '../client/apply.ts';
import type { Client, RequestOptions } from '../client/client.ts';
import { type ApiError, isAlreadyExists, isConflict, isInvalid } from '../objects/api-error.ts';
import { formatMicroTime, type Lease, leaseType } from '../objects/lease.ts';

export interface LeaderOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly namespace: string;
  readonly name: string;
  /** Different for every start of every process: a restarted one must not take itself for the old one. */
  readonly identity: string;
  /** Runs while we lead. Its signal is aborted when we do not any more; we stand again after it has returned. */
  readonly whileLeading: (signal: AbortSignal) => Promise<void>;
  readonly times?: LeaderTimes;
  /** Creates the Lease if it is not there; by POST when absent. */
  readonly create?: (lease: Lease, options: RequestOptions) => Promise<Lease>;
}

export interface LeaderTimes {
  /** Others wait this long after the last change they saw. */
  readonly leaseMs: number;
  /** A leader that could not renew for this long steps down. Well below leaseMs: the rest is for clocks that run apart. */
  readonly renewDeadlineMs: number;
  /** Between renewals, and between looks of those who wait. */
  readonly retryMs: number;
}

export interface Candidate {
  isLeader(): boolean;
  /** Why the Lease could not be read or written at the last try; empty if it could. */
  problem(): string;
  /** Whether another held the Lease when it was read last. */
  isHeldByOther(): boolean;
  /** Ends the work, then gives the Lease up so that the next one need not wait. */
  stop(): Promise<void>;
}

const defaultTimes: LeaderTimes = { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

/** Holder of a Lease that was created again by a candidate that did not lead. */
const nobody = 'nobody';
/** For so many looks a deleted Lease is left to its leader. */
const patienceRetries = 3;

interface Observation {
  readonly resourceVersion: string;
  readonly atMs: number;
}

export function standForLeader(options: LeaderOptions): Candidate {
  const candidate = new LeaderCandidate(options);
  const running = candidate.run();
  return {
    isLeader: () => candidate.isLeader(),
    problem: () => candidate.problem,
    isHeldByOther: () => candidate.isHeldByOther,
    stop: async () => {
      candidate.stop();
      await running;
    },
  };
}

class LeaderCandidate {
  isHeldByOther = false;
  /** Error of the last attempt. */
  problem = '';
  readonly #options: LeaderOptions;
  readonly #log: Log;
  readonly #times: LeaderTimes;
  readonly #ref: { readonly namespace: string; readonly name: string };
  readonly #request: RequestOptions;
  readonly #stopping = new AbortController();
  #observed: Observation | undefined;
  /** Since when the Lease is not there, as far as we saw. */
  #absentSinceMs: number | undefined;
  /** Set while we lead: the moment until which no other can. */
  #leadsUntilMs: number | undefined;
  /** The Lease as we wrote it last, while nothing says that it is another. */
  #held: Lease | undefined;
  /** Counts our terms. */
  #term = 0;

  constructor(options: LeaderOptions) {
    const { namespace, name, identity } = options;
    this.#options = options;
    this.#log = options.log.with({ lease: `${namespace}/${name}`, identity });
    this.#times = options.times ?? defaultTimes;
    this.#ref = { namespace, name };
    this.#request = { timeoutMs: this.#times.renewDeadlineMs / 2 };
  }

  isLeader(): boolean {
    return this.#leadsUntilMs !== undefined && this.#nowMs() < this.#leadsUntilMs;
  }

  stop(): void {
    this.#stopping.abort(new Error('candidate stopped'));
  }

  async run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const isWon = await this.#tryOnce();
      // Told to stop while the request was under way: nobody would end that term.
      if (isWon) await (signal.aborted ? this.#release() : this.#lead());
      if (signal.aborted) return;
      const jitter = 1 + this.#options.world.random.float() / 5;
      await this.#sleep(this.#times.retryMs * jitter, signal);
    }
  }

  async #tryOnce(): Promise<boolean> {
    try {
      const isHeld = await this.#attempt();
      this.problem = '';
      return isHeld;
    } catch (error) {
      // A conflict shows that another was first; any other error, that we could not ask.
      this.problem = isConflict(error) || isThere(error) ? '' : errorText(error);
      this.#log.debug('lease was not written', { error: errorText(error) });
      return false;
    }
  }

  /** One try to get or to keep the Lease. Whether we hold it now. */
  async #attempt(): Promise<boolean> {
    const sentMs = this.#nowMs();
    const term = this.#term;
    const current =
      this.#held ?? (await getOrUndefined<Lease>(this.#options.client, leaseType, this.#ref, this.#request));
    if (current !== undefined) this.#observe(current);
    this.isHeldByOther = !['', this.#options.identity].includes(current?.spec?.holderIdentity ?? '');
    if (current === undefined ? this.#isDeleted() : !this.#mayTake(current)) {
      this.#leadsUntilMs = undefined;
      if (current === undefined) await this.#restore();
      return false;
    }
    this.#held = undefined;
    const written = await this.#write(current);
    this.#observe(written);
    // An answer that comes after the term it belongs to has ended must not make us leader again.
    if (term !== this.#term) return false;
    this.#held = written;
    this.isHeldByOther = false;
    this.#leadsUntilMs = sentMs + this.#times.renewDeadlineMs;
    return true;
  }

  #observe(lease: Lease): void {
    const resourceVersion = lease.metadata.resourceVersion ?? '';
    if (this.#observed?.resourceVersion !== resourceVersion) this.#observed = { resourceVersion, atMs: this.#nowMs() };
    this.#absentSinceMs = undefined;
  }

  #mayTake(lease: Lease): boolean {
    const holder = lease.spec?.holderIdentity ?? '';
    if (holder === '' || holder === this.#options.identity) return true;
    const promisedMs = (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    return this.#nowMs() - this.#observed!.atMs >= Math.max(promisedMs, this.#times.leaseMs);
  }

  /** A Lease that was there may have a holder that has not noticed that it is gone. */
  #isDeleted(): boolean {
    return this.#observed !== undefined && !this.isLeader();
  }

  async #restore(): Promise<void> {
    this.#absentSinceMs ??= this.#nowMs();
    if (this.#nowMs() - this.#absentSinceMs < patienceRetries * this.#times.retryMs) return;
    const { spec, ...lease } = this.#wantedLease(undefined);
    this.#observe(await this.#create({ ...lease, spec: { ...spec, holderIdentity: nobody } }));
  }

  #write(current: Lease | undefined): Promise<Lease> {
    const wanted = this.#wantedLease(current);
    if (current === undefined) return this.#create(wanted);
    return this.#options.client.update(leaseType, wanted, this.#request);
  }

  #create(lease: Lease): Promise<Lease> {
    const { client, create } = this.#options;
    return create?.(lease, this.#request) ?? client.create(leaseType, lease, this.#request);
  }

  #wantedLease(current: Lease | undefined): Lease {
    const { world, identity } = this.#options;
    const now = formatMicroTime(world.clock.wallMs());
    const isRenewal = current?.spec?.holderIdentity === identity;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: current?.metadata ?? this.#ref,
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(this.#times.leaseMs / 1000),
        acquireTime: isRenewal ? current?.spec?.acquireTime : now,
        renewTime: now,
        leaseTransitions: (current?.spec?.leaseTransitions ?? 0) + (isRenewal || current === undefined ? 0 : 1),
      },
    };
  }

  async #lead(): Promise<void> {
    this.#log.info('leading');
    const ending = new AbortController();
    const onStop = () => ending.abort(new Error('told to stop'));
    this.#stopping.signal.addEventListener('abort', onStop, { once: true });
    const work = this.#options
      .whileLeading(ending.signal)
      .catch((error) => this.#log.error('leader work failed', { error }));
    await Promise.race([this.#renew(ending.signal), work]);
    this.#stopping.signal.removeEventListener('abort', onStop);
    ending.abort(new Error('not leading any more'));
    if (!this.isLeader()) this.#log.warn('leadership lost');
    await this.#keepWhile(work);
    await this.#release();
    this.#leadsUntilMs = undefined;
    this.#held = undefined;
    this.#term += 1;
  }

  /** Renews until it has failed for too long, or we stop. */
  async #renew(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.isLeader()) {
      await this.#sleep(Math.min(this.#times.retryMs, this.#restMs()), signal);
      if (signal.aborted || !this.isLeader()) return;
      await Promise.race([this.#tryOnce(), this.#sleep(this.#restMs(), signal)]);
    }
  }

  /** Work that ends in good order may take its time: the Lease stays ours until it has. */
  async #keepWhile(work: Promise<void>): Promise<void> {
    const done = new AbortController();
    await Promise.all([this.#renew(done.signal), work.finally(() => done.abort())]);
  }

  async #release(): Promise<void> {
    if (!this.isLeader()) return;
    const { client, identity } = this.#options;
    this.#leadsUntilMs = undefined;
    try {
      const options = { timeoutMs: this.#times.retryMs };
      const present = await client.get<Lease>(leaseType, this.#ref, options);
      const change = (lease: Lease | undefined) => givenUp(lease, identity);
      // A renewal that is still under way may be written first.
      await apply<Lease>({ client, type: leaseType, present, change, onConflict: 'retry', options });
    } catch (error) {
      this.#log.info('lease could not be given up, it will run out', { error: errorText(error) });
    }
  }

  /** Until our term ends if it is not renewed. */
  #restMs(): number {
    return this.#leadsUntilMs! - this.#nowMs();
  }

  #nowMs(): number {
    return this.#options.world.clock.monotonicMs();
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(this.#options.world.timers, ms, signal).catch(() => {});
  }
}

function givenUp(lease: Lease | undefined, identity: string): Lease {
  if (lease === undefined) throw new Error('it was deleted');
  if (lease.spec?.holderIdentity !== identity) return lease;
  return { ...lease, spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1 } };
}

/** It was to be created, and another was first. An update without a resourceVersion overwrites no Lease. */
function isThere(error: unknown): boolean {
  if (isAlreadyExists(error)) return true;
  const causes = isInvalid(error) ? ((error as ApiError).details?.causes ?? []) : [];
  return causes.some(({ field }) => field === 'metadata.resourceVersion');
}
