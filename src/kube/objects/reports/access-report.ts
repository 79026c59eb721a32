// What a node proxy reports in its Lease about access: whether calls that no export allows are refused there. Pure.

import { isObject } from '../../../base/json.ts';
import type { Lease } from '../lease.ts';

export const accessAnnotation = 'portolan.dev/access';

/** On the Lease of a discovery server that applies ServiceAccessPolicies at gateways. */
export const callersAnnotation = 'portolan.dev/applies-callers';

/** Connections of one cluster to one port that were refused, or would be. */
export interface Refusal {
  readonly from: string;
  /** `namespace/name`, or an address that no Service has. */
  readonly service: string;
  /** Such as `8080/tcp`. */
  readonly port: string;
  /** The export names the caller's cluster, and a ServiceAccessPolicy does not. */
  readonly byPolicy?: true;
  readonly packets: number;
  /** RFC 3339: when the count was seen to rise. */
  readonly lastAt: string;
}

export interface AccessReport {
  readonly mode: string;
  readonly isEnforced: boolean;
  readonly reason: string;
  /** Empty if it is enforced. */
  readonly message: string;
  /** Ports of Pods with a node's own address that no export names, which stay open. */
  readonly uncovered?: number;
  /** It applies ServiceAccessPolicies. */
  readonly knowsCallers?: boolean;
  /** The most frequent ones. */
  readonly refused: readonly Refusal[];
}

const refusedMax = 50;
const textMax = 500;

/** Undefined for a proxy that reports nothing, or nonsense. */
export function readAccessReport({ metadata }: Lease): AccessReport | undefined {
  try {
    const value: unknown = JSON.parse(metadata.annotations?.[accessAnnotation] ?? '');
    if (!isObject(value) || typeof value['isEnforced'] !== 'boolean') return undefined;
    const { uncovered, refused } = value;
    return {
      mode: textIn(value['mode']),
      isEnforced: value['isEnforced'],
      reason: textIn(value['reason']),
      message: textIn(value['message']),
      ...(typeof uncovered === 'number' ? { uncovered } : {}),
      ...(value['knowsCallers'] === true ? { knowsCallers: true } : {}),
      refused: Array.isArray(refused) ? refused.slice(0, refusedMax).flatMap(refusalIn) : [],
    };
  } catch {
    return undefined;
  }
}

function refusalIn(value: unknown): Refusal[] {
  if (!isObject(value) || typeof value['packets'] !== 'number' || !Number.isFinite(value['packets'])) return [];
  const [from, service, port, lastAt] = ['from', 'service', 'port', 'lastAt'].map((key) => textIn(value[key]));
  const byPolicy = value['byPolicy'] === true ? { byPolicy: true as const } : {};
  return [{ from: from!, service: service!, port: port!, ...byPolicy, packets: value['packets'], lastAt: lastAt! }];
}

function textIn(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, textMax) : '';
}
