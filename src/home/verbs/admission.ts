// The last look of a kind at a write, and what it adds to the commit. A write that loses a race to another one is tried
// again from the beginning; every race has a winner, so this ends.

import type { AnyObject } from '../../kube/objects/object.ts';
import { type Call, contextOf, type Engine } from '../model/call.ts';
import type { Admission } from '../model/kind.ts';
import { StatusError } from '../model/status.ts';
import { refuseForeignBlocks } from './owner-references.ts';

export type AdmissionOf = Pick<Admission, 'operation' | 'object' | 'previous'>;

/** Throws what the kind throws. The object may have been changed afterwards. */
export async function admit(engine: Engine, call: Call, asked: AdmissionOf): Promise<Admission> {
  const admission: Admission = {
    ...contextOf(engine, call),
    subresource: call.subresource,
    ...asked,
    alsoCompare: [],
    alsoWrite: [],
  };
  if (asked.operation !== 'delete') refuseForeignBlocks(engine, call, asked);
  await call.served.kind.behaviour.admit?.(admission);
  return admission;
}

/** Whether anything keeps an object that is being deleted. */
export function isHeld(object: AnyObject): boolean {
  if ((object.metadata.finalizers?.length ?? 0) > 0) return true;
  return namespaceFinalizers(object).length > 0;
}

// Namespaces alone have a second list of finalizers: what empties them is named there.
export function namespaceFinalizers(object: AnyObject): readonly string[] {
  if (object.kind !== 'Namespace' || object.apiVersion !== 'v1') return [];
  return (object['spec'] as { finalizers?: string[] } | undefined)?.finalizers ?? [];
}

export const again: unique symbol = Symbol('again');

const attemptsMax = 100;

export async function tryUntilDone<T>(what: string, attempt: () => Promise<T | typeof again>): Promise<T> {
  for (let count = 0; count < attemptsMax; count++) {
    const result = await attempt();
    if (result !== again) return result;
  }
  const message = `${what}: other writes came first ${attemptsMax} times in a row; try again later`;
  throw new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: 1 } });
}
