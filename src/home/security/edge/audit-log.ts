// The audit log of a home: requests of known users in one file, all others in a smaller one beside it, its state for
// health and metrics, and whether writes need it.

import type { Log } from '../../../base/log.ts';
import type { Metrics } from '../../../base/metrics.ts';
import type { Timers } from '../../../base/world.ts';
import type { AuditSink } from '../audit.ts';
import { createAuditBudget } from '../audit-budget.ts';
import { openAuditFile } from './audit-file.ts';

export interface AuditLogOptions {
  readonly path: string;
  /** Writes are refused while their lines cannot be written. */
  readonly isRequired: boolean;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly timers: Timers;
}

export interface AuditLog extends AuditSink {
  /** What keeps lines from being written; undefined if nothing does. */
  problem(): string | undefined;
  close(): Promise<void>;
}

const anonymousLimits = { fileBytesMax: 10 * 1024 * 1024, oldFilesMax: 1, waitingBytesMax: 1024 * 1024 };

export function openAuditLog({ path, isRequired, log, metrics, timers }: AuditLogOptions): AuditLog {
  const identified = openAuditFile({ path, log });
  const anonymous = openAuditFile({ path: `${path}.anonymous`, log, ...anonymousLimits });
  const budget = createAuditBudget({ timers, identified, anonymous });
  metrics.gauge({
    name: 'audit_log_writable',
    help: '1 while lines of the audit log are written.',
    collect: (gauge) => gauge.set(identified.problem() === undefined ? 1 : 0),
  });
  metrics.gauge({
    name: 'audit_log_lost_lines',
    help: 'Lines of the audit log that were dropped since the start.',
    collect: (gauge) => gauge.set(identified.lost + anonymous.lost),
  });
  return {
    record: (event) => budget.record(event),
    problem: () => identified.problem(),
    refusal: () => {
      const problem = isRequired ? identified.problem() : undefined;
      return problem && `${problem}; no writes are taken until it can be (--audit-required)`;
    },
    close: async () => {
      budget.close();
      await Promise.all([identified.close(), anonymous.close()]);
    },
  };
}
