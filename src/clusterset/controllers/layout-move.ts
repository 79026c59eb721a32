// Moves this member from one layout of records to the other while the clusterset runs. It publishes in both layouts until
// every member reads the one that the clusterset asks for, and then removes what lies in the other. Each member finds that
// out at the broker by itself: from heartbeats, which say what their members read, and from the leases of older agents.

import type { Log } from '../../base/log.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import { leaseType } from '../../kube/objects/lease.ts';
import { isPublishedIn, type Members } from '../copies/members.ts';
import type { Cluster } from '../kinds/cluster.ts';
import type { RecordLayout } from '../kinds/cluster-set.ts';
import { type Heartbeat, heartbeatType } from '../kinds/heartbeat.ts';
import { listHeartbeats, readMemberLeases } from '../members/read-lease.ts';
import { hasOlderShards } from '../members/sources.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';

export interface LayoutMoveOptions {
  readonly log: Log;
  readonly broker: Client;
  readonly members: Members;
  readonly clusterId: string;
  /** This member's namespace at the broker. */
  readonly namespace: string;
  /** The layout in the ClusterSet. */
  readonly wanted: () => RecordLayout;
  /** The layouts that are published have changed. */
  readonly onChange: () => void;
}

/** Checks, one each five seconds, after which a member that has never run is looked for again at the latest. */
const waitChecksMax = 12;

export class LayoutMove {
  readonly #options: LayoutMoveOptions;
  /** The target of the last check; undefined before the first. */
  #target: RecordLayout | undefined;
  /** Whether all members read it. */
  #isOver = false;
  /** Whether a heartbeat of ours is left where nobody is to read one. */
  #hasHeartbeat = false;
  #isChecking = false;
  /** Checks in a row at which all our records lay in the wanted layout too. */
  #publishedChecks = 0;
  /** Members that were found to read AllNamespaces: each is looked for once. */
  readonly #readers = new Set<string>();
  /** Members of which neither a heartbeat nor a lease was found, and when they are looked for again. */
  readonly #absent = new Map<string, { readonly waitChecks: number; readonly dueCheck: number }>();
  #checks = 0;

  constructor(options: LayoutMoveOptions) {
    this.#options = options;
  }

  /** In which layouts this member publishes, records and lease alike. */
  layouts(): ReadonlySet<RecordLayout> {
    const isMoving = this.#target !== undefined && !this.isDone;
    return isMoving ? both : only[this.#options.wanted()];
  }

  get isDone(): boolean {
    return this.#isOver && this.#target === this.#options.wanted();
  }

  /** Looks at the broker whether the move is over. Throws if it cannot be asked. */
  async check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      await this.#check(this.#options.wanted());
    } finally {
      this.#isChecking = false;
    }
  }

  async #check(target: RecordLayout): Promise<void> {
    const { onChange, log } = this.#options;
    const wasDone = this.isDone;
    const isNews = this.#target !== target;
    if (isNews) this.#publishedChecks = 0;
    if (!wasDone) {
      const isOver = await this.#doAllRead(target);
      this.#target = target;
      this.#isOver = isOver;
      if (isNews && !isOver) log.info('publishing in both layouts of records until all members read one', { target });
      if (isOver && !isNews) log.info('all members read one layout of records', { target });
    }
    if (wasDone && target === 'AllNamespaces' && (await this.#hasOlderMember())) {
      this.#isOver = false;
      this.#options.members.needOwnSlices();
      log.info('an older agent has joined: publishing in both layouts of records', { target });
    }
    if (isNews || wasDone !== this.isDone) onChange();
    // Leftovers harm no reader, so they delay nothing.
    if (this.isDone)
      await this.#tidy(target).catch((error: unknown) => log.warn('records of another layout are left', { error }));
  }

  async #doAllRead(target: RecordLayout): Promise<boolean> {
    const { broker, namespace } = this.#options;
    const ref = { namespace, name: memberLeaseName };
    const haveReadersSeen = this.#haveReadersSeen(target);
    if (target === 'PerMember') {
      this.#hasHeartbeat = (await getOrUndefined(broker, heartbeatType, ref).catch(unlessForbidden)) !== undefined;
      return !this.#hasHeartbeat || (haveReadersSeen && (await this.#doAllReadPerMember()));
    }
    // The lease is the last to go. A new member has none, and nobody misses its records yet: it looks for older agents at
    // its next check. Members that begin together have heartbeats by then, and none reads the leases of all.
    const lease = await getOrUndefined(broker, leaseType, ref);
    return lease === undefined || (haveReadersSeen && (await this.#doAllReadShared()));
  }

  /**
   * Records of both layouts travel on different watches. The older ones go only after readers have had the time from one check
   * to the next to see the new ones; else a reader that sees the removal first has no endpoints for a moment.
   */
  #haveReadersSeen(target: RecordLayout): boolean {
    const own = this.#options.members.get(this.#options.clusterId);
    const isPublished = own !== undefined && isPublishedIn(target, own);
    this.#publishedChecks = isPublished ? this.#publishedChecks + 1 : 0;
    return this.#publishedChecks > 1;
  }

  /** Whether a member that is new to us has the Lease of an agent from before there were layouts. */
  async #hasOlderMember(): Promise<boolean> {
    const { broker, members, clusterId } = this.#options;
    this.#checks += 1;
    // Also one that went back to such an agent and has left its heartbeat.
    if (members.all().some(({ id, shards }) => id !== clusterId && hasOlderShards(shards))) return true;
    const unknown = members.all().filter(({ id, cluster }) => id !== clusterId && this.#isDue(readerKey(cluster)));
    const keys = new Map(unknown.map(({ id, cluster }) => [id, readerKey(cluster)]));
    for (const [id, lease] of await readMemberLeases(broker, unknown, {})) {
      const key = keys.get(id)!;
      if (lease === undefined) this.#waitLonger(key);
      else if (lease.kind === heartbeatType.kind) this.#readers.add(key);
      else return true;
    }
    return false;
  }

  #isDue(key: string): boolean {
    return !this.#readers.has(key) && (this.#absent.get(key)?.dueCheck ?? 0) <= this.#checks;
  }

  /** A member that was invited and has never run is looked for less and less often: every other member does the same. */
  #waitLonger(key: string): void {
    const waitChecks = Math.min(waitChecksMax, 2 * (this.#absent.get(key)?.waitChecks ?? 0.5));
    this.#absent.set(key, { waitChecks, dueCheck: this.#checks + waitChecks });
  }

  async #doAllReadShared(): Promise<boolean> {
    const { broker, members, clusterId } = this.#options;
    if (members.reads !== 'AllNamespaces') return false;
    const heartbeats = await listHeartbeats(broker);
    for (const { id, cluster, shards } of members.all()) {
      const { namespace } = cluster.spec;
      const heartbeat = heartbeats.get(namespace);
      if (id === clusterId || (heartbeat?.spec?.reads === 'AllNamespaces' && !hasOlderShards(shards))) continue;
      // A member without heartbeat and lease has never run, and will begin with the present layout.
      if (heartbeat !== undefined) return false;
      if ((await getOrUndefined(broker, leaseType, { namespace, name: memberLeaseName })) !== undefined) return false;
    }
    return this.#publishedChecks > 1;
  }

  async #doAllReadPerMember(): Promise<boolean> {
    const { broker, members, clusterId } = this.#options;
    if (members.reads !== 'PerMember') return false;
    for (const { id, cluster } of members.all()) {
      const ref = { namespace: cluster.spec.namespace, name: memberLeaseName };
      if (id === clusterId) continue;
      const heartbeat = await getOrUndefined<Heartbeat>(broker, heartbeatType, ref);
      if (heartbeat !== undefined && heartbeat.spec?.reads !== 'PerMember') return false;
    }
    return this.#publishedChecks > 1;
  }

  /** Removes the lease of the other layout, after the records of that layout. */
  async #tidy(target: RecordLayout): Promise<void> {
    const { broker, members, clusterId, namespace } = this.#options;
    const own = members.get(clusterId);
    const ref = { namespace, name: memberLeaseName };
    if (own === undefined || members.reads !== target) return;
    if (target === 'AllNamespaces') {
      if (own.slices.isOpen && own.slices.hasSynced && own.slices.size === 0) {
        if ((await getOrUndefined(broker, leaseType, ref)) !== undefined) await deleteIfPresent(broker, leaseType, ref);
        members.releaseOwnSlices();
      }
    } else if (this.#hasHeartbeat && own.endpoints.hasSynced && own.endpoints.size === 0) {
      await deleteIfPresent(broker, heartbeatType, ref);
      this.#hasHeartbeat = false;
    }
  }
}

/** A cluster that leaves and joins again may come with another agent. */
function readerKey({ metadata }: Cluster): string {
  return `${metadata.name}/${metadata.uid}`;
}

/** A broker that was laid out before there were heartbeats has granted no right to them. */
function unlessForbidden(error: unknown): undefined {
  if (!isForbidden(error)) throw error;
}

const both: ReadonlySet<RecordLayout> = new Set(['PerMember', 'AllNamespaces']);
const only: Readonly<Record<RecordLayout, ReadonlySet<RecordLayout>>> = {
  PerMember: new Set(['PerMember']),
  AllNamespaces: new Set(['AllNamespaces']),
};
