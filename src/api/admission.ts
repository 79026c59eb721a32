// The last look of a kind at a write, and what it adds to the commit.

import type { AnyObject } from '../model/object.ts';
import { type Call, contextOf, type Engine } from './call.ts';
import type { Admission } from './kind.ts';

export type AdmissionOf = Pick<Admission, 'operation' | 'object' | 'previous'>;

/** Throws what the kind throws. The object may have been changed afterwards. */
export async function admit(engine: Engine, call: Call, asked: AdmissionOf): Promise<Admission> {
  const admission: Admission = { ...contextOf(engine, call), ...asked, alsoCompare: [], alsoWrite: [] };
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
