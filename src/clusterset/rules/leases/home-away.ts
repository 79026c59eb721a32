// A member whose agent gets no answer from its own home goes on renewing its lease, to show that it is there, and marks the
// renewals: they vouch for nothing. Readers count the time since the last renewal that did, by its revision. Pure.

import { formatTime } from '../../../kube/objects/conditions.ts';
import type { Lease } from '../../../kube/objects/lease.ts';

const homeAwayAnnotation = 'portolan.dev/home-away-since';
/** Revision of the last renewal that vouched; 0 if there was none. */
const vouchedAnnotation = 'portolan.dev/vouched-revision';

export interface HomeAway {
  /** RFC 3339, by the member's own clock: for people. */
  readonly since: string;
  readonly vouchedRevision: number;
}

export function homeAwayAnnotations(sinceMs: number | undefined, vouchedRevision: number): Record<string, string> {
  if (sinceMs === undefined) return {};
  return { [homeAwayAnnotation]: formatTime(sinceMs), [vouchedAnnotation]: String(vouchedRevision) };
}

/** Undefined if the renewal vouches. A revision that makes no sense counts as none. */
export function homeAwayOf(lease: Lease | undefined): HomeAway | undefined {
  const annotations = lease?.metadata.annotations;
  const sinceMs = Date.parse(annotations?.[homeAwayAnnotation] ?? '');
  if (Number.isNaN(sinceMs)) return undefined;
  const revision = Number(annotations?.[vouchedAnnotation]);
  return { since: formatTime(sinceMs), vouchedRevision: revision > 0 ? revision : 0 };
}

/** Revision by which the silence of a lease is measured. */
export function vouchedRevisionOf(lease: Lease | undefined): number {
  return homeAwayOf(lease)?.vouchedRevision ?? Number(lease?.metadata.resourceVersion);
}
