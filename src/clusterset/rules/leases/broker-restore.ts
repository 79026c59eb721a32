// A member writes to its Lease when it noticed that the broker has another history than it knew. Pure.

import { formatTime } from '../../../kube/objects/conditions.ts';
import type { Lease } from '../../../kube/objects/lease.ts';

const restoredAnnotation = 'portolan.dev/broker-restored';
const shownMs = 3_600_000;

/** For an hour after it was noticed, so that people see it. */
export function restoredAnnotations(noticedMs: number | undefined, nowMs: number): Record<string, string> {
  if (noticedMs === undefined || nowMs - noticedMs > shownMs) return {};
  return { [restoredAnnotation]: formatTime(noticedMs) };
}

/** When the member noticed it, RFC 3339. */
export function restoreNoticed(lease: Lease | undefined): string | undefined {
  return lease?.metadata.annotations?.[restoredAnnotation];
}
