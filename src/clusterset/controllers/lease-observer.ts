// This member as one of the lease observers. Seated, it watches the heartbeats of all members and reports who is
// silent; otherwise it follows the reports of those who are, and checks the observers by its own clock.

import { isSameJson } from '../../base/json.ts';
import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply } from '../../kube/client/apply.ts';
import type { Client, RequestOptions } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { formatMicroTime } from '../../kube/objects/lease.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { type LivenessReport, livenessReportType } from '../kinds/liveness-report.ts';
import type { MemberFollower } from '../members/follower.ts';
import { livenessReportName } from '../rules/broker-layout.ts';
import { LeaseMonitor, type LeaseTimes, type LeaseVerdict } from '../rules/leases/lease-monitor.ts';
import type { JudgingRules } from '../rules/leases/observing.ts';
import { seatsMax } from '../rules/leases/seats.ts';

export interface LeaseObserverOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  readonly members: MemberFollower;
  readonly clusterId: string;
  /** This member's namespace at the broker. */
  readonly namespace: string;
  readonly times: () => LeaseTimes & { readonly renewMs: number };
  readonly verdict: (clusterId: string) => LeaseVerdict;
  readonly rules: JudgingRules;
  /** Members that this cluster has not seen renew for a while; asked when a report is written. */
  readonly silent: () => readonly string[];
  /** The reports of observers have changed. */
  readonly onReports: () => void;
}

/** No more members are read out of a report: an observer may write anything. */
const reportedMax = 5_000;
/** Reports are written at once when somebody comes back, but no more often than this. */
const promptMs = 1_000;
/** So often in a row an observer may name members that renew before it is not listened to for a while. */
const refutedMax = 3;
const distrustLeases = 10;

export class LeaseObserver {
  readonly #options: LeaseObserverOptions;
  readonly #monitor: LeaseMonitor;
  readonly #patienceShare: number;
  readonly #refuted = new Map<string, number>();
  readonly #distrustedUntilMs = new Map<string, number>();
  #reports: Informer<LivenessReport> | undefined;
  #isSeated = false;
  #shortSinceMs: number | undefined;
  #written: LivenessReport | undefined;
  #writtenSilent: ReadonlySet<string> = new Set();
  #prompt: Timer | undefined;
  #isStopped = false;

  constructor(options: LeaseObserverOptions) {
    this.#options = options;
    this.#monitor = new LeaseMonitor(options.times);
    this.#patienceShare = 1 + 2 * options.world.random.float();
  }

  /** Whether the heartbeats of all members are seen here. */
  get isWatching(): boolean {
    return this.#isSeated && this.#options.members.areHeartbeatsWatched;
  }

  get isSeated(): boolean {
    return this.#isSeated;
  }

  stop(): void {
    this.#isStopped = true;
    this.#prompt?.cancel();
    this.#reports?.stop();
  }

  relist(): void {
    this.#reports?.relist();
  }

  /** Our own renewal has been acknowledged by the broker at this monotonic time. */
  ownRenewed(nowMs: number): void {
    this.#monitor.ownRenewed(nowMs);
    for (const id of this.#monitor.suspects()) this.#monitor.condemn(id);
  }

  /** Takes the seat or leaves it, and reports. */
  async review(options: RequestOptions): Promise<void> {
    const { members, world, clusterId } = this.#options;
    // The first members observe whatever others do; who comes after them has to know what others do.
    const isFirst = members.all().findIndex(({ id }) => id === clusterId) < seatsMax;
    this.#openReports(!isFirst && !this.isWatching);
    if (!isFirst && !this.#isSeated && this.#reports?.hasSynced !== true) return;
    if (this.#decide(world.clock.monotonicMs())) await this.#sit(options);
    else await this.#standUp();
  }

  ownRenewalFailed(): void {
    this.#monitor.ownRenewalFailed();
  }

  /** Members that observers report, and that are to be looked at. */
  reported(): ReadonlySet<string> {
    const ids = this.#observersOf();
    return this.#options.rules.reported(ids.map((id) => this.#silentBy(id)));
  }

  /** These were reported though they renew. An observer that goes on with it is not listened to for a while. */
  refuted(wrongly: ReadonlySet<string>): void {
    const { world, times, log } = this.#options;
    for (const id of this.#observersOf()) {
      const isWrong = this.#silentBy(id).some((member) => wrongly.has(member));
      const count = isWrong ? (this.#refuted.get(id) ?? 0) + 1 : 0;
      this.#refuted.set(id, count);
      if (count < refutedMax) continue;
      this.#refuted.delete(id);
      this.#distrustedUntilMs.set(id, world.clock.monotonicMs() + distrustLeases * times().leaseMs);
      log.warn('an observer reports members as silent that renew: its reports are ignored for a while', { member: id });
    }
  }

  /** A member has renewed: whoever was told that it is silent is told otherwise soon. */
  renewed(clusterId: string, options: RequestOptions): void {
    if (!this.#writtenSilent.has(clusterId) || this.#prompt !== undefined) return;
    this.#prompt = this.#options.world.timers.after(promptMs, () => {
      this.#prompt = undefined;
      if (!this.#isStopped && this.isWatching) this.#report(options).catch(() => {});
    });
  }

  #decide(nowMs: number): boolean {
    const { members, clusterId: self, verdict, times, rules } = this.#options;
    const ids = members.all().map(({ id }) => id);
    const isJudging = this.#judgingNow();
    const isShort = ids.filter((id) => id < self && isJudging(id)).length < seatsMax;
    if (!isShort) this.#shortSinceMs = undefined;
    else this.#shortSinceMs ??= nowMs;
    return rules.isSeatOurs({
      self,
      ids,
      isJudging,
      // An observer that no longer reports is not waited for.
      isAlive: (id) => verdict(id) === 'alive' && (this.#reportOf(id) === undefined || isJudging(id)),
      isSeated: this.#isSeated,
      shortMs: nowMs - (this.#shortSinceMs ?? nowMs),
      patienceMs: this.#patienceShare * times().renewMs,
    });
  }

  /** Whether a member is seen to observe: by its report, or by its heartbeat where that is watched. */
  #judgingNow(): (id: string) => boolean {
    const { members, silent } = this.#options;
    if (!this.isWatching) {
      const ids = new Set(this.#observersOf());
      return (id) => ids.has(id);
    }
    const ids = new Set(silent());
    return (id) => members.get(id)?.heartbeat()?.spec?.judging === true && !ids.has(id);
  }

  /** Ids of the observers whose reports count. */
  #observersOf(): string[] {
    const { members, clusterId, rules, world } = this.#options;
    const nowMs = world.clock.monotonicMs();
    const ids: string[] = [];
    // Few members report: these are looked through, not all.
    for (const { metadata } of this.#reports?.values() ?? []) {
      const id = members.inNamespace(metadata.namespace ?? '')?.id;
      if (id === undefined || id === clusterId || metadata.name !== livenessReportName) continue;
      const isTrusted = nowMs >= (this.#distrustedUntilMs.get(id) ?? 0);
      if (isTrusted && rules.isReportFresh(this.#monitor.verdict(id))) ids.push(id);
    }
    return ids.sort();
  }

  #silentBy(id: string): readonly string[] {
    return (this.#reportOf(id)?.spec?.silent ?? []).slice(0, reportedMax);
  }

  #reportOf(id: string): LivenessReport | undefined {
    const namespace = this.#options.members.get(id)?.cluster.spec.namespace;
    return this.#reports?.get(`${namespace}/${livenessReportName}`);
  }

  #openReports(isOpen: boolean): void {
    if (!isOpen) {
      this.#reports?.stop();
      this.#reports = undefined;
    } else if (this.#reports === undefined) {
      const { broker: client, world, log, onReports } = this.#options;
      this.#reports = createInformer<LivenessReport>({ client, world, log, type: livenessReportType });
      this.#reports.on((_key, next, previous) => {
        this.#see((next ?? previous)!, next);
        // Observers write a report again and again to show that they live; its members are looked at anew when they change.
        if (!isSameJson(next?.spec?.silent ?? [], previous?.spec?.silent ?? [])) onReports();
      });
      this.#reports.start();
      void this.#reports.whenSynced().then(onReports);
    }
  }

  #see({ metadata }: LivenessReport, report: LivenessReport | undefined): void {
    const { members, world } = this.#options;
    const id = members.inNamespace(metadata.namespace ?? '')?.id;
    if (id === undefined || metadata.name !== livenessReportName) return;
    if (report === undefined) return this.#monitor.forget(id);
    const token = `${metadata.uid}/${metadata.resourceVersion}`;
    this.#monitor.seen({ cluster: id, token, nowMs: world.clock.monotonicMs() });
  }

  async #sit(options: RequestOptions): Promise<void> {
    const { members, log } = this.#options;
    if (!this.#isSeated) {
      log.info('watching the heartbeats of all members');
      this.#isSeated = true;
      members.watchHeartbeats(true);
      void members.whenHeartbeatsWatched().then(this.#options.onReports);
    }
    if (this.isWatching && members.all().length > seatsMax) await this.#report(options);
  }

  async #standUp(): Promise<void> {
    const { members, log, clusterId } = this.#options;
    if (this.#isSeated) {
      log.info('following the reports of other members about heartbeats');
      this.#isSeated = false;
      members.watchHeartbeats(false);
      this.#openReports(true);
    }
    // An earlier run may have left one too.
    if (this.#written !== undefined || this.#reportOf(clusterId) !== undefined) await this.#withdraw();
  }

  async #withdraw(): Promise<void> {
    const { broker, namespace } = this.#options;
    await deleteIfPresent(broker, livenessReportType, { namespace, name: livenessReportName });
    this.#written = undefined;
    this.#writtenSilent = new Set();
  }

  async #report(options: RequestOptions): Promise<void> {
    const { broker: client, world, namespace } = this.#options;
    const silent = [...this.#options.silent()].sort().slice(0, reportedMax);
    const change = (there: LivenessReport | undefined): LivenessReport => ({
      apiVersion: apiVersionOf(livenessReportType),
      kind: livenessReportType.kind,
      metadata: there?.metadata ?? { namespace, name: livenessReportName },
      spec: { renewTime: formatMicroTime(world.clock.wallMs()), silent },
    });
    const type = livenessReportType;
    const present = this.#written;
    const { object } = await apply<LivenessReport>({ client, type, present, change, onConflict: 'retry', options });
    this.#written = object;
    this.#writtenSilent = new Set(silent);
  }
}
