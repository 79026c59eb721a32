// Keeps requests that were turned away from displacing the rest of the audit log. Lines without a user go to a log of
// their own. A denied request is recorded at once; those of the same user that follow within a minute are counted, and
// their number is recorded with the last of them.

import type { Timer, Timers } from '../../base/world.ts';
import type { AuditEvent, AuditSink } from './audit.ts';

export interface AuditBudgetOptions {
  readonly timers: Timers;
  /** For requests of known users. */
  readonly identified: AuditSink;
  /** For all others. */
  readonly anonymous: AuditSink;
}

export interface AuditBudget extends AuditSink {
  /** Records what is counted. */
  close(): void;
}

export const repeatedAnnotation = 'portolan.dev/repeated';
const windowMs = 60_000;
/** What one user, or one address without one, is denied is told apart so many times in a minute. */
const kindsMax = 20;
const usersMax = 1000;

export function createAuditBudget(options: AuditBudgetOptions): AuditBudget {
  return new Budget(options);
}

interface Denied {
  last: AuditEvent;
  repeated: number;
}

class Budget implements AuditBudget {
  readonly #options: AuditBudgetOptions;
  readonly #denied = new Map<string, Map<string, Denied>>();
  #timer: Timer | undefined;

  constructor(options: AuditBudgetOptions) {
    this.#options = options;
  }

  record(event: AuditEvent): void {
    if (!isDenied(event)) return this.#sinkOf(event).record(event);
    const kinds = this.#kindsOf(event);
    const kind = `${event.responseStatus.code} ${event.verb} ${event.objectRef?.resource ?? ''}`;
    const key = kinds.has(kind) || kinds.size < kindsMax ? kind : 'others';
    const known = kinds.get(key);
    if (known !== undefined) {
      known.last = event;
      known.repeated += 1;
      return;
    }
    kinds.set(key, { last: event, repeated: 0 });
    this.#timer ??= this.#options.timers.after(windowMs, () => this.#tell());
    this.#sinkOf(event).record(event);
  }

  close(): void {
    this.#timer?.cancel();
    this.#tell();
  }

  #kindsOf(event: AuditEvent): Map<string, Denied> {
    const who = isAnonymous(event) ? `address ${event.sourceIPs[0]}` : `user ${event.user?.username}`;
    const key = this.#denied.has(who) || this.#denied.size < usersMax ? who : 'others';
    let kinds = this.#denied.get(key);
    if (kinds === undefined) this.#denied.set(key, (kinds = new Map()));
    return kinds;
  }

  #tell(): void {
    this.#timer = undefined;
    for (const kinds of this.#denied.values())
      for (const { last, repeated } of kinds.values())
        if (repeated > 0)
          this.#sinkOf(last).record({ ...last, annotations: { [repeatedAnnotation]: String(repeated) } });
    this.#denied.clear();
  }

  #sinkOf(event: AuditEvent): AuditSink {
    return isAnonymous(event) ? this.#options.anonymous : this.#options.identified;
  }
}

function isAnonymous({ user }: AuditEvent): boolean {
  return user === undefined || user.username === 'system:anonymous';
}

function isDenied({ responseStatus: { code } }: AuditEvent): boolean {
  return code === 401 || code === 403 || code === 429;
}
