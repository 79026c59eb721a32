// What a node proxy reports in its Lease about access: whether calls that no export allows are refused there. Pure.

import { isObject } from '../../../base/json.ts';
import type { Lease } from '../lease.ts';

export const accessAnnotation = 'portolan.dev/access';

/** Connections of one cluster to one port that were refused, or would be. */
export interface Refusal {
  readonly from: string;
  /** `namespace/name`, or an address that no Service has. */
  readonly service: string;
  /** Such as `8080/tcp`. */
  readonly port: string;
  readonly packets: number;
}

export interface AccessReport {
  readonly mode: string;
  readonly isEnforced: boolean;
  readonly reason: string;
  /** Empty if it is enforced. */
  readonly message: string;
  /** Ports of Pods with a node's own address that no export names, which stay open. */
  readonly uncovered?: number;
  /** The most frequent ones. */
  readonly refused: readonly Refusal[];
}

/** Undefined where access is open, or the report makes no sense. */
export function readAccessReport({ metadata }: Lease): AccessReport | undefined {
  try {
    const value: unknown = JSON.parse(metadata.annotations?.[accessAnnotation] ?? '');
    if (!isObject(value) || typeof value['mode'] !== 'string') return undefined;
    const refused = Array.isArray(value['refused']) ? value['refused'].filter(isRefusal) : [];
    return {
      mode: value['mode'],
      isEnforced: value['isEnforced'] === true,
      reason: String(value['reason'] ?? ''),
      message: String(value['message'] ?? ''),
      ...(typeof value['uncovered'] === 'number' ? { uncovered: value['uncovered'] } : {}),
      refused,
    };
  } catch {
    return undefined;
  }
}

function isRefusal(value: unknown): value is Refusal {
  if (!isObject(value)) return false;
  const { from, service, port, packets } = value;
  return [from, service, port].every((text) => typeof text === 'string') && typeof packets === 'number';
}
