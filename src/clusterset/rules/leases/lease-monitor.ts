// Judges which members live, by when this reader last saw their leases change. Pure: time comes in with each call.
//
// Only time during which our own renewals at the broker succeeded is counted. While the broker is away all clocks
// stand still, and no member is condemned because we could not look. Timestamps inside leases are never read.

export interface LeaseTimes {
  /** A lease unchanged for this long is stale. */
  readonly leaseMs: number;
  /** Two of our own renewals further apart than this prove nothing about the time between them. */
  readonly renewalGapMsMax: number;
  /** A lease that keeps coming and going must stay this long before it is trusted again; doubled with each return. */
  readonly holdDownMs: number;
  readonly holdDownMsMax: number;
  /** After living this long without a break, earlier breaks are forgotten. */
  readonly calmMs: number;
}

export type LeaseVerdict = 'alive' | 'stale';

/** Facts about a member that must survive a restart. */
export interface LeaseRecord {
  readonly verdict: LeaseVerdict;
  /** How often it came back lately. */
  readonly returns: number;
  /** The lease as it was last seen; undefined if it never was. */
  readonly token: string | undefined;
  /** How long it must still stay before it is trusted; undefined unless it is held down. */
  readonly heldMs: number | undefined;
  /** Since when its agent gets no answer from its home, by its own words; undefined if it does. */
  readonly homeAwaySince?: string | undefined;
}

export interface LeaseSight {
  readonly cluster: string;
  /** Changes with each renewal; undefined if there is no lease, which is no sign of life. */
  readonly token: string | undefined;
  readonly nowMs: number;
  /** How long it had not changed already when this run first saw it. */
  readonly unchangedMs?: number;
  /** Whether it was read now and then, and not watched: then `unchangedMs` counts at each sight. */
  readonly isRead?: boolean;
  /** Set if this renewal vouches for nothing: it does not count as one. */
  readonly homeAwaySince?: string | undefined;
}

interface LeaseState {
  /** Changes with each renewal; its content does not matter. Undefined until this run has seen it. */
  token: string | undefined;
  /** The moment of the last change, on the counted clock. */
  changedAtMs: number;
  verdict: LeaseVerdict;
  /** When the verdict became `alive`, on the counted clock. */
  aliveSinceMs: number;
  /** How often it came back lately. */
  returns: number;
  /** Set while a lease has come back and is not trusted yet. */
  trustedFromMs: number | undefined;
  /** Set while its renewals vouch for nothing. */
  homeAwaySince: string | undefined;
}

export class LeaseMonitor {
  readonly #readTimes: () => LeaseTimes;
  readonly #leases = new Map<string, LeaseState>();
  #countedMs = 0;
  #renewedAtMs: number | undefined;

  /** Times are asked for each time they are needed: the clusterset may change them. */
  constructor(times: () => LeaseTimes) {
    this.#readTimes = times;
  }

  get #times(): LeaseTimes {
    return this.#readTimes();
  }

  /** Our own renewal has been acknowledged by the broker at this monotonic time. */
  ownRenewed(nowMs: number): void {
    const gapMs = nowMs - (this.#renewedAtMs ?? nowMs);
    if (gapMs <= this.#times.renewalGapMsMax) this.#countedMs += gapMs;
    this.#renewedAtMs = nowMs;
    for (const lease of this.#leases.values()) this.#review(lease);
  }

  ownRenewalFailed(): void {
    this.#renewedAtMs = undefined;
  }

  /** Restores a record of an earlier run. `aliveMs` is how long it had been alive, if it was. */
  recall(cluster: string, record: LeaseRecord & { readonly aliveMs?: number }): void {
    this.#leases.set(cluster, {
      token: record.token,
      changedAtMs: this.#countedMs,
      verdict: record.verdict,
      aliveSinceMs: this.#countedMs - (record.aliveMs ?? 0),
      returns: record.returns,
      trustedFromMs: record.heldMs === undefined ? undefined : this.#countedMs + record.heldMs,
      homeAwaySince: record.homeAwaySince,
    });
  }

  /** The lease of a member as it is at the broker now. */
  seen({ cluster, token, nowMs, unchangedMs = 0, isRead = false, homeAwaySince }: LeaseSight): void {
    const lease = this.#leases.get(cluster) ?? this.#firstSight(cluster, this.#countedAt(nowMs));
    if (token === undefined) return;
    lease.homeAwaySince = homeAwaySince;
    if (lease.token === token || homeAwaySince !== undefined) {
      if (isRead || lease.token === undefined)
        lease.changedAtMs = Math.min(lease.changedAtMs, this.#countedAt(nowMs) - unchangedMs);
      lease.token = token;
      return;
    }
    const isFirst = lease.token === undefined;
    lease.token = token;
    lease.changedAtMs = this.#countedAt(nowMs) - (isFirst || isRead ? unchangedMs : 0);
    if (lease.verdict === 'stale' && lease.trustedFromMs === undefined) this.#comesBack(lease);
  }

  /** An observer watches its lease and does not report it: as good as a change seen now, but for one that is stale. */
  vouched(cluster: string, nowMs: number): void {
    const lease = this.#leases.get(cluster) ?? this.#firstSight(cluster, this.#countedAt(nowMs));
    lease.changedAtMs = this.#countedAt(nowMs);
  }

  /** Members whose lease has been unchanged for that long, whatever the verdict. */
  silentFor(silentMs: number): string[] {
    const isSilent = (lease: LeaseState) => this.#countedMs - lease.changedAtMs >= silentMs;
    return [...this.#leases].filter(([, lease]) => isSilent(lease)).map(([id]) => id);
  }

  forget(cluster: string): void {
    this.#leases.delete(cluster);
  }

  /** Still called alive, but unchanged for the whole lease time: look once more, then condemn. */
  suspects(): string[] {
    return [...this.#leases].filter(([, lease]) => lease.verdict === 'alive' && this.#isOld(lease)).map(([id]) => id);
  }

  /** Does nothing if the lease was seen to change in the meantime. */
  condemn(cluster: string): void {
    const lease = this.#leases.get(cluster);
    if (lease === undefined || lease.verdict === 'stale' || !this.#isOld(lease)) return;
    lease.verdict = 'stale';
    lease.trustedFromMs = undefined;
  }

  /** A member never seen is alive: we have no reason to think otherwise. */
  verdict(cluster: string): LeaseVerdict {
    return this.#leases.get(cluster)?.verdict ?? 'alive';
  }

  /** Undefined for a member that is not known. */
  record(cluster: string): LeaseRecord | undefined {
    const lease = this.#leases.get(cluster);
    if (lease === undefined) return undefined;
    const { verdict, returns, token, trustedFromMs, homeAwaySince } = lease;
    return {
      verdict,
      returns,
      token,
      heldMs: trustedFromMs === undefined ? undefined : Math.max(0, trustedFromMs - this.#countedMs),
      homeAwaySince,
    };
  }

  // Time since our last renewal may turn out not to count; a change seen in it is then a little too young, never too old.
  #countedAt(nowMs: number): number {
    return this.#countedMs + nowMs - (this.#renewedAtMs ?? nowMs);
  }

  #firstSight(cluster: string, atMs: number): LeaseState {
    const lease: LeaseState = {
      token: undefined,
      changedAtMs: atMs,
      verdict: 'alive',
      aliveSinceMs: atMs,
      returns: 0,
      trustedFromMs: undefined,
      homeAwaySince: undefined,
    };
    this.#leases.set(cluster, lease);
    return lease;
  }

  #comesBack(lease: LeaseState): void {
    const { holdDownMs, holdDownMsMax } = this.#times;
    lease.returns += 1;
    if (lease.returns === 1) this.#trust(lease);
    else lease.trustedFromMs = lease.changedAtMs + Math.min(holdDownMsMax, holdDownMs * 2 ** (lease.returns - 2));
  }

  #trust(lease: LeaseState): void {
    lease.verdict = 'alive';
    lease.aliveSinceMs = this.#countedMs;
    lease.trustedFromMs = undefined;
  }

  #review(lease: LeaseState): void {
    if (lease.verdict === 'alive') {
      if (this.#countedMs - lease.aliveSinceMs >= this.#times.calmMs && !this.#isOld(lease)) lease.returns = 0;
      return;
    }
    if (lease.trustedFromMs === undefined) return;
    if (this.#isOld(lease)) lease.trustedFromMs = undefined;
    else if (this.#countedMs >= lease.trustedFromMs) this.#trust(lease);
  }

  #isOld(lease: LeaseState): boolean {
    return this.#countedMs - lease.changedAtMs >= this.#times.leaseMs;
  }
}
