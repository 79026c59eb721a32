// The ports of a Service of this cluster by number: the merge of a clusterset goes by number, and a port may have another
// name in the import than in the Service and its slices. Pure.

import type { Service } from '../kube/objects/service.ts';

/** Names of its TCP ports; empty for the unnamed one. */
export function portNamesOf({ spec }: Service): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const each of Array.isArray(spec?.ports) ? spec.ports : [])
    if (each && (each.protocol ?? 'TCP') === 'TCP') names.set(each.port, each.name ?? '');
  return names;
}
