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
  const { client, world, identity } = options;
  const log = options.log.with({ lease: `${options.namespace}/${options.name}`, identity });
  const times = options.times ?? defaultTimes;
  const stopping = new AbortController();
  let observed: Observation | undefined;
  /** Since when the Lease is not there, as far as we saw. */
  let absentSinceMs: number | undefined;
  /** Set while we lead: the moment until which no other can. */
  let leadsUntilMs: number | undefined;
  /** The Lease as we wrote it last, while nothing says that it is another. */
  let held: Lease | undefined;
  let isHeldByOther = false;
  /** Error of the last attempt. */
  let problem = '';
  /** Counts our terms. */
  let term = 0;
  const ref = { namespace: options.namespace, name: options.name };
  const requestTimeoutMs = times.renewDeadlineMs / 2;

  const nowMs = () => world.clock.monotonicMs();
  const isLeader = () => leadsUntilMs !== undefined && nowMs() < leadsUntilMs;

  function observe(lease: Lease): void {
    const resourceVersion = lease.metadata.resourceVersion ?? '';
    if (observed?.resourceVersion !== resourceVersion) observed = { resourceVersion, atMs: nowMs() };
    absentSinceMs = undefined;
  }

  /** One try to get or to keep the Lease. Whether we hold it now. */
  async function attempt(): Promise<boolean> {
    const sentMs = nowMs();
    const attemptTerm = term;
    const current = held ?? (await getOrUndefined<Lease>(client, leaseType, ref, { timeoutMs: requestTimeoutMs }));
    if (current !== undefined) observe(current);
    isHeldByOther = !['', identity].includes(current?.spec?.holderIdentity ?? '');
    if (current === undefined ? isDeleted() : !mayTake(current)) {
      leadsUntilMs = undefined;
      if (current === undefined) await restore();
      return false;
    }
    held = undefined;
    const written = await write(current);
    observe(written);
    // An answer that comes after the term it belongs to has ended must not make us leader again.
    if (attemptTerm !== term) return false;
    held = written;
    isHeldByOther = false;
    leadsUntilMs = sentMs + times.renewDeadlineMs;
    return true;
  }

  function write(current: Lease | undefined): Promise<Lease> {
    const wanted = wantedLease(current);
    if (current === undefined) return create(wanted);
    return client.update(leaseType, wanted, { timeoutMs: requestTimeoutMs });
  }

  function create(lease: Lease): Promise<Lease> {
    const limit = { timeoutMs: requestTimeoutMs };
    return options.create?.(lease, limit) ?? client.create(leaseType, lease, limit);
  }

  /** A Lease that was there may have a holder that has not noticed that it is gone. */
  function isDeleted(): boolean {
    return observed !== undefined && !isLeader();
  }

  async function restore(): Promise<void> {
    absentSinceMs ??= nowMs();
    if (nowMs() - absentSinceMs < patienceRetries * times.retryMs) return;
    const { spec, ...lease } = wantedLease(undefined);
    observe(await create({ ...lease, spec: { ...spec, holderIdentity: nobody } }));
  }

  function mayTake(lease: Lease): boolean {
    const holder = lease.spec?.holderIdentity ?? '';
    if (holder === '' || holder === identity) return true;
    const promisedMs = (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    return nowMs() - observed!.atMs >= Math.max(promisedMs, times.leaseMs);
  }

  function wantedLease(current: Lease | undefined): Lease {
    const now = formatMicroTime(world.clock.wallMs());
    const isRenewal = current?.spec?.holderIdentity === identity;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: current?.metadata ?? ref,
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(times.leaseMs / 1000),
        acquireTime: isRenewal ? current?.spec?.acquireTime : now,
        renewTime: now,
        leaseTransitions: (current?.spec?.leaseTransitions ?? 0) + (isRenewal || current === undefined ? 0 : 1),
      },
    };
  }

  async function tryOnce(): Promise<boolean> {
    try {
      const isHeld = await attempt();
      problem = '';
      return isHeld;
    } catch (error) {
      // A conflict shows that another was first; any other error, that we could not ask.
      problem = isConflict(error) || isThere(error) ? '' : errorText(error);
      log.debug('lease was not written', { error: errorText(error) });
      return false;
    }
  }

  /** Renews until it has failed for too long, or we stop. */
  async function renew(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && isLeader()) {
      const restMs = leadsUntilMs! - nowMs();
      await sleep(world.timers, Math.min(times.retryMs, restMs), signal).catch(() => {});
      if (signal.aborted || !isLeader()) return;
      await Promise.race([tryOnce(), sleep(world.timers, leadsUntilMs! - nowMs(), signal).catch(() => {})]);
    }
  }

  async function lead(): Promise<void> {
    log.info('leading');
    const ending = new AbortController();
    const onStop = () => ending.abort(new Error('told to stop'));
    stopping.signal.addEventListener('abort', onStop, { once: true });
    const work = options.whileLeading(ending.signal).catch((error) => log.error('leader work failed', { error }));
    await Promise.race([renew(ending.signal), work]);
    stopping.signal.removeEventListener('abort', onStop);
    ending.abort(new Error('not leading any more'));
    if (!isLeader()) log.warn('leadership lost');
    await keepWhile(work);
    await release();
    leadsUntilMs = undefined;
    held = undefined;
    term += 1;
  }

  /** Work that ends in good order may take its time: the Lease stays ours until it has. */
  async function keepWhile(work: Promise<void>): Promise<void> {
    const done = new AbortController();
    await Promise.all([renew(done.signal), work.finally(() => done.abort())]);
  }

  function givenUp(lease: Lease | undefined): Lease {
    if (lease === undefined) throw new Error('it was deleted');
    if (lease.spec?.holderIdentity !== identity) return lease;
    return { ...lease, spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1 } };
  }

  async function release(): Promise<void> {
    if (!isLeader()) return;
    leadsUntilMs = undefined;
    try {
      const options = { timeoutMs: times.retryMs };
      const present = await client.get<Lease>(leaseType, ref, options);
      // A renewal that is still under way may be written first.
      await apply<Lease>({ client, type: leaseType, present, change: givenUp, onConflict: 'retry', options });
    } catch (error) {
      log.info('lease could not be given up, it will run out', { error: errorText(error) });
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const isWon = await tryOnce();
      // Told to stop while the request was under way: nobody would end that term.
      if (isWon) await (stopping.signal.aborted ? release() : lead());
      if (stopping.signal.aborted) return;
      const jitter = 1 + world.random.float() / 5;
      await sleep(world.timers, times.retryMs * jitter, stopping.signal).catch(() => {});
    }
  }

  const running = run();
  return {
    isLeader,
    problem: () => problem,
    isHeldByOther: () => isHeldByOther,
    stop: async () => {
      stopping.abort(new Error('candidate stopped'));
      await running;
    },
  };
}

/** It was to be created, and another was first. An update without a resourceVersion overwrites no Lease. */
function isThere(error: unknown): boolean {
  if (isAlreadyExists(error)) return true;
  const causes = isInvalid(error) ? ((error as ApiError).details?.causes ?? []) : [];
  return causes.some(({ field }) => field === 'metadata.resourceVersion');
}
