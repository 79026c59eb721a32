// The stub zone of one federation for each resolver. Pure.

import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { Federation } from '../kinds/federation.ts';
import { type ResolverEndpoint, resolverOf } from '../rules/poster.ts';

export type StubZoneOrder =
  | {
      readonly kind: 'post';
      readonly to: ResolverEndpoint;
      readonly nameservers: readonly string[];
      readonly suffix: string;
    }
  | { readonly kind: 'delete'; readonly to: ResolverEndpoint }
  | { readonly kind: 'nothing' };

export interface StubZoneFacts {
  readonly federation: Federation | undefined;
  readonly cluster: Cluster | undefined;
  /** Where it was posted before, as far as is known. */
  readonly posted: ResolverEndpoint | undefined;
  /** Suffix of the federation's names, if the authority's differs from the Federation's. */
  readonly suffix?: string;
}

export function planStubZone({ federation, cluster, posted, suffix }: StubZoneFacts): readonly StubZoneOrder[] {
  const orders: StubZoneOrder[] = [];
  const to = isMember(federation, cluster) ? resolverOf(cluster).to : undefined;
  const nameservers = federation?.spec?.nameservers ?? [];
  const isWanted = to !== undefined && nameservers.length > 0;
  // A resolver that moved loses the zones at its old address.
  if (posted && (!isWanted || posted.endpoint !== to.endpoint)) orders.push({ kind: 'delete', to: posted });
  if (isWanted)
    orders.push({ kind: 'post', to, nameservers, suffix: suffix ?? federation?.spec?.suffix ?? 'federation' });
  return orders.length === 0 ? [{ kind: 'nothing' }] : orders;
}

export function isMember(federation: Federation | undefined, cluster: Cluster | undefined): boolean {
  if (!federation || !cluster) return false;
  const { clusters } = federation.spec ?? {};
  return clusters === undefined || clusters.includes(cluster.metadata.name);
}
