// The effect of an expired lease on a member's records, by the policy of the clusterset or of the service.

import type { StalenessPolicy } from '../../kinds/cluster-set.ts';
import type { ServiceShard } from '../../kinds/service-shard.ts';
import type { LeaseVerdict } from './lease-monitor.ts';

const words: ReadonlyMap<string, StalenessPolicy> = new Map([
  ['withdraw', 'Withdraw'],
  ['notready', 'NotReady'],
  ['keep', 'Keep'],
]);

/** In any case, with or without dashes; undefined for anything else. */
export function parseStaleness(text: string | undefined): StalenessPolicy | undefined {
  return text === undefined ? undefined : words.get(text.toLowerCase().replaceAll('-', ''));
}

export interface MemberStatus {
  /** Whether the cluster's shard takes part in the merge. */
  readonly isCounted: boolean;
  /** Whether its endpoints may be offered as ready. */
  readonly isTrusted: boolean;
  /** Whether new connections go elsewhere while those that are open go on. */
  readonly isDraining: boolean;
}

export function memberStatus(verdict: LeaseVerdict, policy: StalenessPolicy): MemberStatus {
  const isDraining = false;
  if (verdict === 'alive' || policy === 'Keep') return { isCounted: true, isTrusted: true, isDraining };
  return { isCounted: policy === 'NotReady', isTrusted: false, isDraining };
}

/** Ready endpoints of a record that are offered to others: none while its cluster is not trusted. */
export function offeredEndpoints(
  { spec }: ServiceShard,
  { verdict, policy }: { readonly verdict: LeaseVerdict; readonly policy: StalenessPolicy },
): number | undefined {
  return memberStatus(verdict, spec.onStale ?? policy).isTrusted ? spec.readyEndpoints : 0;
}
