// The ports of a Service of this cluster by number: the merge of a clusterset goes by number, and a port may have another
// name in the import than in the Service and its slices. Pure.

import type { Service } from '../kube/objects/service.ts';

export type CarriedProtocol = 'TCP' | 'UDP';

/** Names of its TCP and UDP ports, by `portKey`; empty for the unnamed one. */
export function portNamesOf({ spec }: Service): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const each of Array.isArray(spec?.ports) ? spec.ports : []) {
    const protocol = each?.protocol ?? 'TCP';
    if (each && (protocol === 'TCP' || protocol === 'UDP')) names.set(portKey(protocol, each.port), each.name ?? '');
  }
  return names;
}

export function portKey(protocol: CarriedProtocol, port: number): string {
  return `${protocol} ${port}`;
}
