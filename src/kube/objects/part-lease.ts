// Reads the Lease of a serving part: its name, node, mode and the age of its last report. Pure.

import { boundedName } from './bounded-name.ts';
import type { Lease } from './lease.ts';

export type PartName = 'proxy' | 'dns' | 'peering' | 'authority' | 'xds' | 'agent';

export const partLabel = 'portolan.dev/part';
export const partAnnotations = {
  node: 'portolan.dev/node',
  mode: 'portolan.dev/mode',
  version: 'portolan.dev/version',
  /** URL of its admin endpoint, as seen on its own machine. */
  admin: 'portolan.dev/admin',
  /** Its Pod, where it runs in one: then the API server's own proxy leads to it. */
  pod: 'portolan.dev/pod',
  /** On the Lease of a proxy: ids of clusters in other networks that its node cannot reach, with commas between them. */
  unreached: 'portolan.dev/unreached-clusters',
  /** Written by a process that followed the holder and has stopped; the holder's next renewal removes it. */
  replacedBy: 'portolan.dev/replaced-by',
  /** Rights that it was refused lately, as a JSON list. */
  missingRights: 'portolan.dev/missing-rights',
} as const;
export const partRenewMs = 5_000;
/** A part that has been silent for longer is taken for removed: long enough that a failure on Friday is seen on Monday. */
const partForgottenMs: number = 72 * 3_600_000;

/** A part is silent after two renewals that did not come, and the time that a late one may take. */
export function partLeaseSeconds(renewMs: number): number {
  return Math.ceil((2 * renewMs) / 1000) + lateSeconds;
}

const lateSeconds = 2;

export function partLeaseName(part: PartName, id: string): string {
  const plain = id
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .replace(/[^a-z0-9]+(?=\.|$)|(?<=^|\.)[^a-z0-9]+/g, '');
  return boundedName(`portolan-${part}-${plain === '' ? 'x' : plain}`);
}

export interface PartState {
  readonly kind: 'reported' | 'silent';
  readonly part: string;
  /** Name of the node, or empty. */
  readonly node: string;
  /** Such as `nftables` or `userspace` of a proxy; or empty. */
  readonly mode: string;
  readonly version: string;
  /** When it reported last, milliseconds since 1970; undefined if the Lease holds no valid time. */
  readonly reportedMs: number | undefined;
}

/** `nowMs` is wall time. A report from the future counts as one of now: its node's clock is ahead of the reader's. */
export function partState(lease: Lease, nowMs: number): PartState {
  const { labels, annotations } = lease.metadata;
  const parsedMs = Date.parse(lease.spec?.renewTime ?? '');
  const reportedMs = Number.isNaN(parsedMs) ? undefined : parsedMs;
  const seconds = lease.spec?.leaseDurationSeconds;
  const patienceMs = 1000 * (typeof seconds === 'number' && seconds > 0 ? seconds : partLeaseSeconds(partRenewMs));
  return {
    kind: reportedMs !== undefined && nowMs - reportedMs <= patienceMs ? 'reported' : 'silent',
    part: labels?.[partLabel] ?? '',
    node: annotations?.[partAnnotations.node] ?? '',
    mode: annotations?.[partAnnotations.mode] ?? '',
    version: annotations?.[partAnnotations.version] ?? '',
    reportedMs,
  };
}

/**
 * Whether the part has been silent for so long that it is taken for removed, or is silent and its successor has stopped. A
 * Lease without valid times stays.
 */
export function isForgotten(lease: Lease, nowMs: number): boolean {
  const { kind, reportedMs } = partState(lease, nowMs);
  if (kind === 'silent' && lease.metadata.annotations?.[partAnnotations.replacedBy] !== undefined) return true;
  const lastMs = reportedMs ?? Date.parse(lease.metadata.creationTimestamp ?? '');
  return nowMs - lastMs > partForgottenMs;
}
