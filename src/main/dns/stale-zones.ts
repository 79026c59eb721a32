// Which zones of a server are answered from data that may be old, and why, and whether it keeps a copy for the next start; for
// its status and its readiness. Pure.

import type { NameTable } from '../../catalog/names/name-table.ts';
import type { Zone } from '../../catalog/names/zones.ts';

export interface StaleZones {
  /** Names of zones whose watches fail at present, or that were not read since the start. */
  readonly stale: readonly string[];
  /** Empty if none is. */
  readonly staleWhy: string;
  /** Why names cannot be copied to disk for the next start; empty if they are, or need not be. */
  readonly copyProblem: string;
}

export interface StaleZonesRequest {
  readonly table: NameTable;
  readonly zones: readonly Zone[];
  /** Why the home does not take the Lease, which is often the reason for old zones too. */
  readonly leaseProblem: string;
  readonly copyProblem: string;
}

export function staleZones({ table, zones, leaseProblem, copyProblem }: StaleZonesRequest): StaleZones {
  const stale = zones.filter(({ id }) => table.isStale(id) || !table.isReady(id)).map(({ name }) => name);
  const why = leaseProblem || 'a watch at the home fails or has not listed yet; see the log';
  return { stale, staleWhy: stale.length === 0 ? '' : why, copyProblem };
}

/** For /readyz of a server that goes on answering: a line for each. */
export function staleRemark({ stale, staleWhy, copyProblem }: StaleZones): string {
  return [
    ...(stale.length === 0 ? [] : [`still answering ${stale.join(', ')} from what was read last: ${staleWhy}`]),
    ...(copyProblem === '' ? [] : [`names are not copied to disk for the next start: ${copyProblem}`]),
  ].join('\n');
}
