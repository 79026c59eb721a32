// Renews this member's lease at the broker and judges those of the others. Tells who died and who came back; what
// that means for their records is for the importers to say. Verdicts, hold-downs and the number of returns survive a
// restart in a ConfigMap of the home; a failure to read one member, or to remember, does not affect the others.

import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { formatMicroTime, type Lease, leaseType } from '../../kube/objects/lease.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import type { Member, Members } from '../copies/members.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import { LeaseJudge, type LeaseTimes, type LeaseVerdict } from '../rules/leases/lease-judge.ts';
import {
  formatRenewals,
  PatientTimes,
  type Renewal,
  renewalsAnnotation,
  renewalsOf,
  unchangedMs,
} from '../rules/leases/renewal.ts';
import { VerdictMemory } from './lease-memory.ts';

export interface LeaseOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  readonly members: Members;
  readonly clusterId: string;
  /** This member's namespace at the broker. */
  readonly namespace: string;
  readonly systemNamespace: string;
  readonly times: () => LeaseTimes & { readonly renewMs: number };
  /** Annotations of our lease, replacing the present ones. */
  readonly annotations: (present: Lease | undefined) => Record<string, string>;
  readonly onVerdict: (clusterId: string, verdict: LeaseVerdict) => void;
  /** The broker's copy differs from our last renewal: it was restored from a backup, or another writer changed it. */
  readonly onOtherHistory: () => void;
}

/** A renewal that hangs on a dead connection is given up, so that the next one goes another way. */
const renewalMs = { min: 2000, max: 10_000 };
/** After a failure we are in a hurry, for the others count the time; but a broker that stays away is not asked as fast. */
const hurryMs = 500;

export class LeaseController {
  readonly #options: LeaseOptions;
  readonly #judge: LeaseJudge;
  readonly #patient = new PatientTimes();
  readonly #memory: VerdictMemory;
  readonly #told = new Map<string, LeaseVerdict>();
  /** Our own renewals before this run. */
  #earlier: readonly Renewal[] = [];
  /** Tokens that our lease may hold now: the last acknowledged renewal, and those tried since. */
  #ours = new Set<string>();
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
  #isStopped = false;
  #isJudging = false;
  /** Renewals that failed since the last one that did not. */
  #failures = 0;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#judge = new LeaseJudge(() => this.#patient.judgeBy(options.times(), options.world.clock.monotonicMs()));
    this.#memory = new VerdictMemory({ ...options, namespace: options.systemNamespace });
  }

  /** Resolves when what an earlier run knew has been read; renewing goes on from there by itself. */
  async start(): Promise<void> {
    const { members, namespace, times } = this.#options;
    this.#earlier = renewalsOf(await this.#read(namespace));
    for (const [id, record] of await this.#memory.recall(times().holdDownMsMax)) {
      this.#judge.recall(id, record);
      this.#tellOne(id);
    }
    members.onLease((id, lease) => this.#seen(id, lease));
    members.onMember((id, member) => {
      if (member !== undefined) return this.#look(member);
      this.#judge.forget(id);
      this.#told.delete(id);
    });
    for (const member of members.all()) this.#look(member);
    void this.#round();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.timer.cancel();
  }

  /** The clusterset may have changed its lease times: who renews too late by the new ones renews now. */
  timesChanged(): void {
    const { world, times } = this.#options;
    if (this.#timer === undefined || this.#timer.dueMs <= world.clock.monotonicMs() + times().renewMs) return;
    this.#timer.timer.cancel();
    this.#timer = undefined;
    void this.#round();
  }

  /** The last published verdict: a caller that acted on an unpublished one would miss its withdrawal. */
  verdict(clusterId: string): LeaseVerdict {
    return this.#told.get(clusterId) ?? 'alive';
  }

  // Not before its leases have been listed: one that is not here yet would look as if there were none, and its coming as
  // a sign of life.
  #look({ id, cluster, leases }: Member): void {
    void leases.whenSynced().then(() => {
      const isSame = this.#options.members.get(id)?.leases === leases;
      if (isSame && !this.#isStopped) this.#seen(id, leases.get(`${cluster.spec.namespace}/${memberLeaseName}`));
    });
  }

  async #round(): Promise<void> {
    if (this.#isStopped) return;
    const { world, log, times } = this.#options;
    let waitMsMax = Number.POSITIVE_INFINITY;
    try {
      await this.#renew();
      this.#failures = 0;
      this.#judge.ownRenewed(world.clock.monotonicMs());
    } catch (error) {
      waitMsMax = Math.min(times().renewMs / 2, hurryMs * 2 ** Math.min(this.#failures, 10));
      this.#failures += 1;
      this.#judge.ownRenewalFailed();
      log.warn('own lease not renewed; leases of other members are not checked', { error });
    }
    if (this.#isStopped) return;
    const waitMs = Math.min(times().renewMs, waitMsMax);
    const timer = world.timers.after(waitMs, () => void this.#round());
    this.#timer = { timer, dueMs: world.clock.monotonicMs() + waitMs };
    if (this.#failures === 0) await this.#judgeOthers();
  }

  /** Beside the renewals: a member that does not let itself be read must not hold them up. */
  async #judgeOthers(): Promise<void> {
    if (this.#isJudging) return;
    this.#isJudging = true;
    await Promise.all(this.#judge.suspects().map((id) => this.#lookAgain(id)));
    this.#isJudging = false;
    if (this.#isStopped) return;
    const { members } = this.#options;
    // Remembered before it is published: otherwise a process killed in between would begin by withdrawing it.
    await this.#memory.remember(new Map(members.all().map(({ id }) => [id, this.#judge.record(id)])));
    for (const { id } of members.all()) this.#tellOne(id);
  }

  async #renew(): Promise<void> {
    const { broker, members, clusterId, namespace } = this.#options;
    const present = members.get(clusterId)?.leases.get(`${namespace}/${memberLeaseName}`);
    let isStrange = false;
    let renewTime = '';
    const change = (there: Lease | undefined) => {
      const lease = this.#leaseFor(there);
      isStrange = this.#ours.size > 0 && !this.#ours.has(there?.spec?.renewTime ?? '');
      renewTime = lease.spec!.renewTime!;
      this.#ours.add(renewTime);
      return lease;
    };
    const options = this.#limit();
    await apply<Lease>({ client: broker, type: leaseType, present, change, onConflict: 'retry', options });
    this.#ours = new Set([renewTime]);
    if (isStrange) this.#options.onOtherHistory();
  }

  #limit(): { timeoutMs: number } {
    return { timeoutMs: Math.min(renewalMs.max, Math.max(renewalMs.min, 2 * this.#options.times().renewMs)) };
  }

  #leaseFor(present: Lease | undefined): Lease {
    const { world, clusterId, namespace, times, annotations } = this.#options;
    const metadata = present?.metadata ?? { name: memberLeaseName, namespace };
    const wallMs = world.clock.wallMs();
    const renewals = formatRenewals(renewalsOf(present), { wallMs, spanMs: 2 * times().leaseMs });
    const told = { ...annotations(present), ...(renewals === '' ? {} : { [renewalsAnnotation]: renewals }) };
    return {
      apiVersion: apiVersionOf(leaseType),
      kind: leaseType.kind,
      metadata: { ...metadata, annotations: told },
      spec: {
        ...present?.spec,
        holderIdentity: clusterId,
        leaseDurationSeconds: Math.ceil(times().leaseMs / 1000),
        renewTime: formatMicroTime(wallMs),
      },
    };
  }

  /** Our watch may be behind: before a member is called dead, its lease is read once more. */
  async #lookAgain(clusterId: string): Promise<void> {
    const { members, log } = this.#options;
    const member = members.get(clusterId);
    if (member === undefined) return;
    try {
      this.#seen(clusterId, await this.#read(member.cluster.spec.namespace));
      this.#judge.condemn(clusterId);
    } catch (error) {
      log.warn('lease of a member cannot be read, so it is not judged', { member: clusterId, error });
    }
  }

  async #read(namespace: string): Promise<Lease | undefined> {
    const ref = { namespace, name: memberLeaseName };
    return getOrUndefined<Lease>(this.#options.broker, leaseType, ref, this.#limit());
  }

  #seen(cluster: string, lease: Lease | undefined): void {
    const { clusterId, world, times } = this.#options;
    if (cluster === clusterId) return;
    const nowMs = world.clock.monotonicMs();
    const { uid, resourceVersion } = lease?.metadata ?? {};
    const token = lease === undefined ? undefined : `${uid}/${resourceVersion}`;
    const since = {
      revision: Number(resourceVersion),
      wallMs: world.clock.wallMs(),
      gapMsMax: times().renewalGapMsMax,
    };
    this.#judge.seen({ cluster, token, nowMs, unchangedMs: unchangedMs(this.#earlier, since) });
    this.#tellOne(cluster);
  }

  #tellOne(clusterId: string): void {
    // We ourselves are alive to us.
    const verdict = clusterId === this.#options.clusterId ? 'alive' : this.#judge.verdict(clusterId);
    if (this.verdict(clusterId) === verdict) return;
    this.#told.set(clusterId, verdict);
    this.#options.log.info('lease verdict', { member: clusterId, verdict });
    this.#options.onVerdict(clusterId, verdict);
  }
}
