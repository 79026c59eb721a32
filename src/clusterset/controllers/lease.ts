// Renews this member's lease at the broker and judges those of the others. Reports who died and who came back; the effect
// on their records is decided by the importers. Where other members watch the leases, this one reads only those that are
// reported as silent, and judges them by its own renewals. Verdicts, hold-downs and the number of returns survive a restart
// in a ConfigMap of the home; a failure to read one member, or to remember, does not affect the others.

import { errorText, type Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { Heartbeat } from '../kinds/heartbeat.ts';
import type { Member, MemberFollower } from '../members/follower.ts';
import { readHeartbeat, readHeartbeats } from '../members/read-heartbeat.ts';
import { Contact } from '../rules/leases/contact.ts';
import type { RenewalTimes } from '../rules/leases/heartbeat-rate.ts';
import { homeAwayOf, vouchedRevisionOf } from '../rules/leases/home-away.ts';
import { LeaseMonitor, type LeaseVerdict } from '../rules/leases/lease-monitor.ts';
import type { JudgingRules } from '../rules/leases/observing.ts';
import { OwnRenewals } from '../rules/leases/own-renewals.ts';
import { PatientTimes, type Renewal, renewalsOf, unchangedMs } from '../rules/leases/renewal.ts';
import { VerdictMemory } from './lease-memory.ts';
import { LeaseObserver } from './lease-observer.ts';
import { OwnLease } from './own-lease.ts';

export interface LeaseOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  readonly members: MemberFollower;
  readonly clusterId: string;
  /** This member's namespace at the broker. */
  readonly namespace: string;
  readonly systemNamespace: string;
  readonly times: () => RenewalTimes;
  readonly rules: JudgingRules;
  /** Annotations of our lease, replacing the present ones. */
  readonly annotations: (present: Lease | undefined) => Record<string, string>;
  /** Wall time since which our home does not answer; undefined while it does. Our renewals then vouch for nothing. */
  readonly homeAwaySinceMs: () => number | undefined;
  readonly onVerdict: (clusterId: string, verdict: LeaseVerdict) => void;
  /** The broker's copy differs from our last renewal: it was restored from a backup, or another writer changed it. */
  readonly onOtherHistory: () => void;
}

/** A renewal that hangs on a dead connection is given up, so that the next one goes another way. */
const renewalMs = { min: 2000, max: 10_000 };
/** A broker that restarts within 5 s is asked again before this. Its last answer may be one period older. */
const brokerRestartMs = 6_500;
/** After a failure we are in a hurry, for the others count the time; but a broker that stays away is not asked as fast. */
const hurryMs = 500;
/** How many times as often a broker that stays away is asked, compared with renewals. */
const hurryMax = 4;
/** Renewals come a little early, by chance: members that begin together do not stay together. */
const jitter = 0.1;
/** Members that follow reports look at the reported within this time, not all at once. */
const followMs = 1_000;

export class LeaseController {
  readonly #options: LeaseOptions;
  readonly #monitor: LeaseMonitor;
  readonly #patient = new PatientTimes();
  readonly #memory: VerdictMemory;
  readonly #observer: LeaseObserver;
  readonly #own: OwnLease;
  readonly #renewals = new OwnRenewals();
  readonly #broker: Contact;
  readonly #told = new Map<string, LeaseVerdict>();
  /** Leases of members that are reported as silent, as read since. */
  readonly #readTokens = new Map<string, string>();
  /** Our own renewals before this run. */
  #earlier: readonly Renewal[] = [];
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
  /** Whether the next renewal follows the one under way at once. */
  #isDueNow = false;
  #followTimer: Timer | undefined;
  #isStopped = false;
  #isJudging = false;
  /** Renewals that failed since the last one that did not. */
  #failures = 0;
  readonly #failureLines: LogBudget;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#failureLines = new LogBudget(options.world.clock, { linesMax: 1, perMs: 60_000 });
    const boundMs = () => options.times().renewMs + brokerRestartMs;
    this.#broker = new Contact({ boundMs, nowMs: options.world.clock.monotonicMs() });
    this.#monitor = new LeaseMonitor(() => this.#patient.judgeBy(options.times(), options.world.clock.monotonicMs()));
    this.#memory = new VerdictMemory({ ...options, namespace: options.systemNamespace });
    this.#observer = new LeaseObserver({
      ...options,
      verdict: (id) => this.verdict(id),
      silent: () => this.#silent(),
      onReports: () => this.#lookSoon(),
    });
    const leaseMs = () => options.times().leaseMs;
    this.#own = new OwnLease({ ...options, leaseMs, isJudging: () => this.#observer.isSeated });
  }

  /** Resolves when what an earlier run knew has been read; renewing goes on from there by itself. */
  async start(): Promise<void> {
    const { members, broker, namespace, times } = this.#options;
    const left = await readHeartbeat(broker, namespace, this.#limit());
    this.#own.adopt(left);
    this.#earlier = renewalsOf(left);
    for (const [id, record] of await this.#memory.recall(times().holdDownMsMax)) {
      this.#monitor.recall(id, record);
      this.#tellOne(id, { remembered: true });
    }
    members.on({
      heartbeat: (id, heartbeat) => this.#seen(id, heartbeat),
      changed: (id, member) => {
        if (member !== undefined) return this.#look(id);
        this.#monitor.forget(id);
        this.#told.delete(id);
      },
    });
    for (const { id } of members.all()) this.#look(id);
    void this.#round();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.timer.cancel();
    this.#followTimer?.cancel();
    this.#observer.stop();
  }

  /** For a broker that may have been restored from an older copy. */
  relist(): void {
    this.#renewals.forget();
    this.#observer.relist();
  }

  /** The clusterset may have changed its lease times: who renews too late by the new ones renews now. */
  timesChanged(): void {
    const { world, times } = this.#options;
    if (this.#timer !== undefined && this.#timer.dueMs > world.clock.monotonicMs() + times().renewMs) this.renewNow();
  }

  /** Our lease has something new to tell. After a renewal that failed the next one comes soon anyway. */
  renewNow(): void {
    this.#isDueNow = this.#failures === 0;
    if (this.#timer === undefined || !this.#isDueNow) return;
    this.#timer.timer.cancel();
    void this.#round();
  }

  /** For how long the broker has not answered, once it counts as away; undefined before. */
  brokerLostMs(): number | undefined {
    return this.#broker.lostMs(this.#options.world.clock.monotonicMs());
  }

  /** Since the broker's last answer, whether it counts as away or not. */
  brokerSilentMs(): number {
    return this.#broker.silentMs(this.#options.world.clock.monotonicMs());
  }

  /** Keeps in the home since when the broker is away, for people who ask there. */
  noteBroker(awaySinceMs: number): Promise<void> {
    return this.#memory.noteBroker(awaySinceMs);
  }

  /** The last published verdict: a caller that acted on an unpublished one would miss its withdrawal. */
  verdict(clusterId: string): LeaseVerdict {
    return this.#told.get(clusterId) ?? 'alive';
  }

  // Not before heartbeats have been listed: one that is not here yet would look as if there were none, and its coming as
  // a sign of life.
  #look(id: string): void {
    const { members } = this.#options;
    void members.whenHeartbeatsWatched().then(() => {
      const member = members.get(id);
      if (member !== undefined && !this.#isStopped) this.#seen(id, member.heartbeat());
    });
  }

  async #round(): Promise<void> {
    this.#timer = undefined;
    this.#isDueNow = false;
    if (this.#isStopped) return;
    const { world, log, times } = this.#options;
    let waitMsMax = Number.POSITIVE_INFINITY;
    this.#broker.asked(world.clock.monotonicMs());
    try {
      await this.#renew();
      this.#failures = 0;
      const nowMs = world.clock.monotonicMs();
      this.#broker.answered(nowMs);
      // An earlier run may have left it too.
      void this.#memory.noteBroker(undefined);
      this.#monitor.ownRenewed(nowMs);
      this.#observer.ownRenewed(nowMs);
    } catch (error) {
      waitMsMax = Math.min(times().renewMs / hurryMax, hurryMs * 2 ** Math.min(this.#failures, 10));
      this.#failures += 1;
      this.#broker.failed();
      this.#monitor.ownRenewalFailed();
      this.#observer.ownRenewalFailed();
      const fields = this.#failureLines.take();
      if (fields) log.warn('own lease not renewed; leases of other members are not checked', { error, ...fields });
    }
    if (this.#isStopped) return;
    if (this.#isDueNow) waitMsMax = 0;
    const waitMs = Math.min(times().renewMs, waitMsMax) * (1 - jitter * world.random.float());
    const timer = world.timers.after(waitMs, () => void this.#round());
    this.#timer = { timer, dueMs: world.clock.monotonicMs() + waitMs };
    if (this.#failures === 0) await this.#judgeOthers();
  }

  /** Beside the renewals: a member that does not let itself be read must not hold them up. */
  async #judgeOthers(): Promise<void> {
    if (this.#isJudging) return;
    this.#isJudging = true;
    try {
      await this.#observer.review(this.#limit());
    } catch (error) {
      this.#options.log.warn('report about heartbeats not written, trying again later', { error: errorText(error) });
    }
    if (this.#observer.isWatching) await Promise.all(this.#monitor.suspects().map((id) => this.#lookAgain(id)));
    else await this.#followReports();
    this.#isJudging = false;
    if (this.#isStopped) return;
    // Remembered before it is published: otherwise a process killed in between would begin by withdrawing it.
    await this.#remember();
    for (const { id } of this.#options.members.all()) this.#tellOne(id);
  }

  #remember(): Promise<void> {
    const { members } = this.#options;
    return this.#memory.remember(new Map(members.all().map(({ id }) => [id, this.#monitor.record(id)])));
  }

  /** A report has changed: the members that it concerns are looked at before the next renewal. */
  #lookSoon(): void {
    const { world } = this.#options;
    if (this.#followTimer !== undefined || this.#isStopped) return;
    this.#followTimer = world.timers.after(followMs * world.random.float(), () => {
      this.#followTimer = undefined;
      if (this.#failures === 0 && !this.#isStopped) void this.#judgeOthers();
    });
  }

  /**
   * Others watch the leases. A member that nobody reports is as good as seen; one that is reported, and one that is stale
   * here and no longer reported, is read. A report alone condemns nobody.
   */
  async #followReports(): Promise<void> {
    const { members, clusterId, world, log, rules } = this.#options;
    const reported = this.#observer.reported();
    const nowMs = world.clock.monotonicMs();
    const unsure: Member[] = [];
    for (const member of members.all()) {
      const record = this.#monitor.record(member.id);
      const isAway = record?.verdict === 'stale' && record.heldMs === undefined;
      if (member.id === clusterId) continue;
      if (reported.has(member.id) !== isAway) unsure.push(member);
      else if (!isAway) this.#monitor.vouched(member.id, nowMs);
    }
    for (const id of this.#readTokens.keys()) if (!reported.has(id)) this.#readTokens.delete(id);
    if (unsure.length === 0) return;
    const leases = await readHeartbeats(this.#options.broker, unsure, this.#limit()).catch((error: unknown) => {
      log.warn('leases of reported members cannot be read, so they are not judged', { error: errorText(error) });
      return new Map<string, Heartbeat | undefined>();
    });
    const renewing = new Set<string>();
    for (const [id, lease] of leases) {
      const provenMs = this.#provenMs(lease);
      const unchangedMs = rules.silence({ provenMs, leaseMs: this.#options.times().leaseMs });
      this.#seen(id, lease, { unchangedMs });
      if (!reported.has(id)) continue;
      this.#monitor.condemn(id);
      const token = lease?.metadata.resourceVersion ?? '';
      const isVouching = homeAwayOf(lease) === undefined;
      if (isVouching && (this.#readTokens.get(id) ?? token) !== token) renewing.add(id);
      this.#readTokens.set(id, token);
    }
    this.#observer.refuted(renewing);
  }

  /** Members to be reported: one of their renewals at least is missing. */
  #silent(): string[] {
    const { members, times, clusterId } = this.#options;
    const { leaseMs, renewMs } = times();
    const ids = this.#monitor.silentFor(Math.max(leaseMs - renewMs, leaseMs / 2));
    return ids.filter((id) => id !== clusterId && members.get(id) !== undefined);
  }

  async #renew(): Promise<void> {
    const { members, clusterId, world } = this.#options;
    const { revision, isStrange } = await this.#own.renew(members.get(clusterId)?.heartbeat(), this.#limit());
    if (isStrange) this.#renewals.forget();
    this.#renewals.acknowledged(revision, world.clock.monotonicMs());
    if (isStrange) this.#options.onOtherHistory();
  }

  #limit(): { timeoutMs: number } {
    return { timeoutMs: Math.min(renewalMs.max, Math.max(renewalMs.min, this.#options.times().renewMs)) };
  }

  /** Our watch may be behind: before a member is called dead, its lease is read once more. */
  async #lookAgain(clusterId: string): Promise<void> {
    const { members, broker, log } = this.#options;
    const member = members.get(clusterId);
    if (member === undefined) return;
    try {
      this.#seen(clusterId, await readHeartbeat(broker, member.cluster.spec.namespace, this.#limit()));
      this.#monitor.condemn(clusterId);
    } catch (error) {
      log.warn('lease of a member cannot be read, so it is not judged', { member: clusterId, error });
    }
  }

  #seen(cluster: string, lease: Lease | undefined, read?: { readonly unchangedMs: number }): void {
    const { clusterId, world } = this.#options;
    if (cluster === clusterId) return;
    const nowMs = world.clock.monotonicMs();
    const { uid, resourceVersion } = lease?.metadata ?? {};
    const token = lease === undefined ? undefined : `${uid}/${resourceVersion}`;
    // A new watch may show leases that have not changed for long: our own renewals tell since when.
    const unchangedMs = read?.unchangedMs ?? this.#provenMs(lease);
    const homeAwaySince = homeAwayOf(lease)?.since;
    this.#monitor.seen({ cluster, token, nowMs, isRead: true, unchangedMs, homeAwaySince });
    if (read === undefined && homeAwaySince === undefined) this.#observer.renewed(cluster, this.#limit());
    const before = this.verdict(cluster);
    this.#tellOne(cluster);
    // Imports follow at once. With the old verdict, whoever compares them with the broker would call them behind.
    if (this.verdict(cluster) !== before) void this.#remember();
  }

  /** For how long a lease that was read just now has not changed, by our own renewals. */
  #provenMs(lease: Lease | undefined): number {
    const { world, times } = this.#options;
    const revision = vouchedRevisionOf(lease);
    const at = { nowMs: world.clock.monotonicMs(), gapMsMax: times().renewalGapMsMax };
    return Math.max(this.#renewals.unchangedMs(revision, at), this.#earlierMs(lease));
  }

  #earlierMs(lease: Lease | undefined): number {
    const { world, times } = this.#options;
    const revision = vouchedRevisionOf(lease);
    return unchangedMs(this.#earlier, {
      revision,
      wallMs: world.clock.wallMs(),
      gapMsMax: times().renewalGapMsMax,
    });
  }

  /** `more` is logged: a verdict that an earlier run reached is no new one. */
  #tellOne(clusterId: string, more: object = {}): void {
    // We ourselves are alive to us.
    const verdict = clusterId === this.#options.clusterId ? 'alive' : this.#monitor.verdict(clusterId);
    if (this.verdict(clusterId) === verdict) return;
    this.#told.set(clusterId, verdict);
    this.#options.log.info('lease verdict', { member: clusterId, verdict, ...more });
    this.#options.onVerdict(clusterId, verdict);
  }
}
