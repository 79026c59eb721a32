// The report of an xds process about certificates of its proxies that should have been renewed, in its Lease. Pure.

import { isObject } from '../../base/json.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { Life } from './proxy-files.ts';

export interface EndingCertificate extends Life {
  readonly proxy: string;
}

export const endingAnnotation = 'portolan.dev/xds-ending-certificates';
/** Those that end first are named. */
const namedMax = 50;

export function formatEnding(all: readonly EndingCertificate[]): string {
  return JSON.stringify(all.toSorted((one, other) => one.endMs - other.endMs).slice(0, namedMax));
}

/** Nothing for a Lease that says nothing, or nonsense. */
export function endingIn({ metadata }: Lease): EndingCertificate[] {
  try {
    const list: unknown = JSON.parse(metadata.annotations?.[endingAnnotation] ?? '[]');
    return Array.isArray(list) ? list.filter(isEnding) : [];
  } catch {
    return [];
  }
}

function isEnding(value: unknown): value is EndingCertificate {
  return (
    isObject(value) &&
    typeof value['proxy'] === 'string' &&
    [value['startMs'], value['endMs']].every((ms) => typeof ms === 'number' && Number.isFinite(ms))
  );
}
