// Which zones of a server are answered from data that may be old, and why, for its status and its readiness. Pure.

import type { NameTable } from '../catalog/name-table.ts';
import type { Zone } from '../catalog/zones.ts';

export interface StaleZones {
  /** Names of zones whose watches fail at present, or that were not read since the start. */
  readonly stale: readonly string[];
  /** Empty if none is. */
  readonly staleWhy: string;
}

/** `leaseProblem` is the reason why the home does not take the Lease, which is often the same. */
export function staleZones(
  { table, zones }: { readonly table: NameTable; readonly zones: readonly Zone[] },
  leaseProblem: string,
): StaleZones {
  const stale = zones.filter(({ id }) => table.isStale(id) || !table.isReady(id)).map(({ name }) => name);
  if (stale.length === 0) return { stale, staleWhy: '' };
  return { stale, staleWhy: leaseProblem || 'a watch at the home fails or has not listed yet; see the log' };
}

/** One sentence for /readyz of a server that goes on answering. */
export function staleRemark({ stale, staleWhy }: StaleZones): string {
  return stale.length === 0 ? '' : `still answering ${stale.join(', ')} from what was read last: ${staleWhy}`;
}
