// Renews this member's lease at the broker and judges those of the others. Tells who died and who came back; what that
// means for their records is for the importers to say. Verdicts survive a restart in a ConfigMap of the home.

import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../client/api-error.ts';
import type { Client } from '../../client/client.ts';
import { type ConfigMap, configMapType } from '../../model/config-map.ts';
import { type Lease, leaseType } from '../../model/lease.ts';
import { LeaseJudge, type LeaseTimes, type LeaseVerdict } from '../../model/lease-judge.ts';
import { apiVersionOf } from '../../model/object.ts';
import { type Member, type Members, memberLeaseName } from '../members.ts';

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
  /** What our lease says besides that we live, in place of what it says now. */
  readonly annotations: (present: Lease | undefined) => Record<string, string>;
  readonly onVerdict: (clusterId: string, verdict: LeaseVerdict) => void;
}

const memoryName = 'portolan-lease-verdicts';
/** A renewal that hangs on a dead connection is given up, so that the next one goes another way. */
const renewalMs = { min: 2000, max: 10_000 };
/** After a failure we are in a hurry, for the others count the time; but a broker that stays away is not asked as fast. */
const hurryMs = 500;

export class LeaseController {
  readonly #options: LeaseOptions;
  readonly #judge: LeaseJudge;
  readonly #told = new Map<string, LeaseVerdict>();
  #condemned: Record<string, string> = {};
  #timer: Timer | undefined;
  #isStopped = false;
  /** Renewals that failed since the last one that did not. */
  #failures = 0;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#judge = new LeaseJudge(options.times);
  }

  /** Resolves when what an earlier run knew has been read; renewing goes on from there by itself. */
  async start(): Promise<void> {
    this.#condemned = await this.#recall();
    this.#options.members.onLease((id, lease) => this.#seen(id, lease));
    this.#options.members.onMember((id, member) => {
      if (member === undefined) this.#judge.forget(id);
      else this.#look(member);
    });
    for (const member of this.#options.members.all()) this.#look(member);
    void this.#round();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** We ourselves are alive to us. */
  verdict(clusterId: string): LeaseVerdict {
    return clusterId === this.#options.clusterId ? 'alive' : this.#judge.verdict(clusterId);
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
    let waitMs = times().renewMs;
    try {
      await this.#renew();
      this.#failures = 0;
      this.#judge.ownRenewed(world.clock.monotonicMs());
      for (const suspect of this.#judge.suspects()) await this.#lookAgain(suspect);
      await this.#tell();
    } catch (error) {
      waitMs = Math.min(waitMs / 2, hurryMs * 2 ** Math.min(this.#failures, 10));
      this.#failures += 1;
      this.#judge.ownRenewalFailed();
      log.warn('own lease not renewed, so nobody else is judged', { error });
    }
    if (!this.#isStopped) this.#timer = world.timers.after(waitMs, () => void this.#round());
  }

  async #renew(): Promise<void> {
    const { broker, namespace } = this.#options;
    const own = this.#options.members.get(this.#options.clusterId);
    const known = own?.leases.get(`${namespace}/${memberLeaseName}`);
    const { renewMs } = this.#options.times();
    const limit = { timeoutMs: Math.min(renewalMs.max, Math.max(renewalMs.min, 2 * renewMs)) };
    try {
      if (known === undefined) await broker.create(leaseType, this.#leaseFor(undefined), limit);
      else await broker.update(leaseType, this.#leaseFor(known), limit);
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) throw error;
      const present = await this.#read(namespace);
      if (present === undefined) await broker.create(leaseType, this.#leaseFor(undefined), limit);
      else await broker.update(leaseType, this.#leaseFor(present), limit);
    }
  }

  #leaseFor(present: Lease | undefined): Lease {
    const { world, clusterId, namespace, times, annotations } = this.#options;
    const metadata = present?.metadata ?? { name: memberLeaseName, namespace };
    return {
      apiVersion: apiVersionOf(leaseType),
      kind: leaseType.kind,
      metadata: { ...metadata, annotations: annotations(present) },
      spec: {
        ...present?.spec,
        holderIdentity: clusterId,
        leaseDurationSeconds: Math.ceil(times().leaseMs / 1000),
        renewTime: formatMicroTime(world.clock.wallMs()),
      },
    };
  }

  /** Our watch may be behind: before a member is called dead, its lease is read once more. */
  async #lookAgain(clusterId: string): Promise<void> {
    const member = this.#options.members.get(clusterId);
    if (member === undefined) return;
    this.#seen(clusterId, await this.#read(member.cluster.spec.namespace));
    this.#judge.condemn(clusterId);
  }

  async #read(namespace: string): Promise<Lease | undefined> {
    try {
      return await this.#options.broker.get<Lease>(leaseType, { namespace, name: memberLeaseName });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  #seen(cluster: string, lease: Lease | undefined): void {
    if (cluster === this.#options.clusterId) return;
    const token = lease === undefined ? 'none' : `${lease.metadata.uid}/${lease.metadata.resourceVersion}`;
    const nowMs = this.#options.world.clock.monotonicMs();
    this.#judge.seen({ cluster, token, nowMs, condemnedToken: this.#condemned[cluster] });
    this.#tellOne(cluster);
  }

  async #tell(): Promise<void> {
    for (const { id } of this.#options.members.all()) this.#tellOne(id);
    const condemned = this.#judge.condemned();
    if (JSON.stringify(condemned) === JSON.stringify(this.#condemned)) return;
    await this.#remember(condemned);
    this.#condemned = condemned;
  }

  #tellOne(clusterId: string): void {
    const verdict = this.verdict(clusterId);
    if ((this.#told.get(clusterId) ?? 'alive') === verdict) return;
    this.#told.set(clusterId, verdict);
    this.#options.log.info('lease verdict', { member: clusterId, verdict });
    this.#options.onVerdict(clusterId, verdict);
  }

  async #recall(): Promise<Record<string, string>> {
    try {
      const memory = await this.#options.home.get<ConfigMap>(configMapType, this.#memoryRef());
      return memory.data ?? {};
    } catch (error) {
      if (isNotFound(error)) return {};
      throw error;
    }
  }

  async #remember(data: Record<string, string>): Promise<void> {
    const { home, log } = this.#options;
    const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: this.#memoryRef(), data };
    try {
      await home.patch(configMapType, this.#memoryRef(), {
        kind: 'json',
        body: [{ op: 'add', path: '/data', value: data }],
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await home.create(configMapType, object);
      log.debug('lease verdicts remembered', { verdicts: data });
    }
  }

  #memoryRef(): { name: string; namespace: string } {
    return { name: memoryName, namespace: this.#options.systemNamespace };
  }
}

function formatMicroTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}
