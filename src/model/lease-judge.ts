// Judges which members live, by when this reader last saw their leases change. Pure: time comes in with each call.
//
// Only time during which our own renewals at the broker succeeded is counted. When the broker is away all clocks stand
// still, and nobody is condemned because we could not look. Timestamps inside leases are never read.

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

interface LeaseState {
  /** Changes with each renewal; what it says is nobody's business. */
  token: string;
  /** The moment of the last change, on the counted clock. */
  changedAtMs: number;
  verdict: LeaseVerdict;
  /** When the verdict became `alive`, on the counted clock. */
  aliveSinceMs: number;
  /** How often it came back lately. */
  returns: number;
  /** Set while a lease has come back and is not trusted yet. */
  trustedFromMs: number | undefined;
}

export class LeaseJudge {
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
    const gapMs = this.#renewedAtMs === undefined ? 0 : nowMs - this.#renewedAtMs;
    if (gapMs <= this.#times.renewalGapMsMax) this.#countedMs += gapMs;
    this.#renewedAtMs = nowMs;
    for (const lease of this.#leases.values()) this.#review(lease);
  }

  ownRenewalFailed(): void {
    this.#renewedAtMs = undefined;
  }

  /** The lease of a member as it is at the broker now. `condemnedToken` is what an earlier run last judged stale. */
  seen(sight: { cluster: string; token: string; nowMs: number; condemnedToken?: string }): void {
    const { cluster, token, nowMs, condemnedToken } = sight;
    const lease = this.#leases.get(cluster);
    if (lease === undefined) {
      this.#leases.set(cluster, this.#firstSight(token, this.#countedAt(nowMs), token === condemnedToken));
      return;
    }
    if (lease.token === token) return;
    lease.token = token;
    lease.changedAtMs = this.#countedAt(nowMs);
    if (lease.verdict === 'stale' && lease.trustedFromMs === undefined) this.#comesBack(lease);
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

  /** What a later run needs in order not to trust a dead member again just because it is new itself. */
  condemned(): Record<string, string> {
    const stale = [...this.#leases].filter(([, lease]) => lease.verdict === 'stale');
    return Object.fromEntries(stale.map(([cluster, lease]) => [cluster, lease.token]));
  }

  // Time since our last renewal may turn out not to count; a change seen in it is then a little too young, never too old.
  #countedAt(nowMs: number): number {
    return this.#countedMs + (this.#renewedAtMs === undefined ? 0 : nowMs - this.#renewedAtMs);
  }

  #firstSight(token: string, atMs: number, wasCondemned: boolean): LeaseState {
    return {
      token,
      changedAtMs: atMs,
      verdict: wasCondemned ? 'stale' : 'alive',
      aliveSinceMs: atMs,
      returns: 0,
      trustedFromMs: undefined,
    };
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
