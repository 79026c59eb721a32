// The report of one xds process to the leading one, in its Lease: the complaints of its proxies, cut to fit. Pure.

import { isObject } from '../../base/json.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { Complaint } from './verdicts.ts';

export const complaintsAnnotation = 'portolan.dev/xds-complaints';
const bytesMax = 64 * 1024;
const messageLengthMax = 300;

export function formatComplaints(complaints: Iterable<Complaint>): string {
  const parts: string[] = [];
  let bytes = 2;
  for (const { cause, reason, message } of complaints) {
    const text = JSON.stringify({ cause, reason, message: message.slice(0, messageLengthMax) });
    bytes += text.length + 1;
    if (bytes > bytesMax) break;
    parts.push(text);
  }
  return `[${parts.join(',')}]`;
}

/** Nothing for a Lease that says nothing, or nonsense. */
export function complaintsIn({ metadata }: Lease): Complaint[] {
  try {
    const list: unknown = JSON.parse(metadata.annotations?.[complaintsAnnotation] ?? '[]');
    return Array.isArray(list) ? list.filter(isComplaint) : [];
  } catch {
    return [];
  }
}

function isComplaint(value: unknown): value is Complaint {
  if (!isObject(value) || !isObject(value['cause'])) return false;
  const { kind, namespace, name, at } = value['cause'];
  return [kind, namespace, name, at, value['message']].every((text) => typeof text === 'string');
}
